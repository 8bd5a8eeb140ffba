"""P412: a cycle of steps with no way out."""

from __future__ import annotations

from collections.abc import Iterator

from noetlc.analysis.model import Model
from noetlc.finding import Finding, Related, Severity
from noetlc.rules.rule import Rule

_NAMES_MAX = 6
"""Steps that the message names."""


class EndlessRun(Rule):
    code = "P412"
    name = "endless-run"
    severity = Severity.WARNING
    summary = "A run that comes to these steps can never end."
    why = (
        "Every way on leads back, however the guards turn out. The execution stays open until somebody cancels it, and "
        "what waits for its end waits too."
    )
    bad = """
    - step: start
      tool: {kind: http, url: https://example.org/jobs}
      next:
        arcs:
          - step: pause
    - step: pause
      tool: {kind: noop}
      next:
        arcs:
          - step: start
    """
    good = """
    - step: start
      tool: {kind: http, url: https://example.org/jobs}
      next:
        arcs:
          - step: pause
            when: "{{ event.result.data.pending }}"
    - step: pause
      tool: {kind: noop}
      next:
        arcs:
          - step: start
    """
    covers = ("S31", "S34")

    def check(self, model: Model) -> Iterator[Finding]:
        found = model.net
        if found is None or not found.reach.cycles:
            return
        from noetlc.net.completion import completion, trap_moves, traps

        for members in traps(found.reach, completion(found.net)):
            source = found.steps[members[0]].step
            if source is None:
                continue
            names = ", ".join(f"`{found.name(member)}`" for member in members[:_NAMES_MAX])
            rest = " and others" if len(members) > _NAMES_MAX else ""
            way = " → ".join(found.name(move.step) for move in trap_moves(found.reach, members[0]))
            yield self.finding(
                source.span,
                f"once a token is at {names}{rest}, the run can never end",
                "guard an arc, so that the branch ends when no arc holds, or add an arc that leads out",
                related=[Related(source.span, f"the way round: {way} → {found.name(members[0])}")],
            )
