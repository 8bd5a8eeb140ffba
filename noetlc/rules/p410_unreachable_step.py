"""P410: a step that never runs."""

from __future__ import annotations

from collections.abc import Iterator

from noetlc.analysis.model import Model
from noetlc.finding import Finding, Severity
from noetlc.rules.rule import Rule

_WHY = {
    "gate": ("its admission rules never let a token in", "change the rules of `spec.policy.admit`"),
    "no-arc": ("no arc leads to it", "add `- step: {name}` to the `arcs` of the step before it, or remove it"),
    "arcs": ("no arc that can fire leads to it from a step that runs", "mend the arcs that lead to it, or remove it"),
    "no-end": ("the run never comes to rest before it", "give every cycle a way out"),
}
"""By why it never runs: what is wrong, and what to do."""


class UnreachableStep(Rule):
    code = "P410"
    name = "unreachable-step"
    severity = Severity.WARNING
    echoes = frozenset({"P211"})
    summary = "A step can never run, whatever the data."
    why = (
        "A step that was meant to run and does not is the quietest of failures: the run ends well, and the cleanup, "
        "the notification or the load never happened."
    )
    bad = """
    - step: start
      tool: {kind: noop}
      next:
        arcs:
          - step: publish
    - step: publish
      tool: {kind: noop}
    - step: cleanup
      tool: {kind: noop}
    """
    good = """
    - step: start
      tool: {kind: noop}
      next:
        arcs:
          - step: publish
    - step: publish
      tool: {kind: noop}
      next:
        arcs:
          - step: cleanup
    - step: cleanup
      tool: {kind: noop}
    """
    covers = ("S4", "S30", "S31")

    def check(self, model: Model) -> Iterator[Finding]:
        found = model.net
        if found is None:
            return
        from noetlc.net.completion import completion
        from noetlc.net.reachability import why_never

        final = found.net.final
        for step, source in zip(found.net.steps, found.steps, strict=True):
            if found.reach.runs(step.index) or source.step is None:
                continue
            if step.index == final and step.can_run and completion(found.net).can_end(found.net.entry):
                continue
            why, help = _WHY[why_never(found.reach, step).value]
            yield self.finding(source.step.span, f"`{step.name}` never runs: {why}", help.format(name=step.name))
