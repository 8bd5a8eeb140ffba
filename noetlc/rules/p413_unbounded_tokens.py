"""P413: a cycle that leaves a token behind on every round."""

from __future__ import annotations

from collections.abc import Iterator

from noetlc.analysis.model import Model
from noetlc.finding import Finding, Related, Severity
from noetlc.rules.rule import Rule


class UnboundedTokens(Rule):
    code = "P413"
    name = "unbounded-tokens"
    severity = Severity.WARNING
    summary = "A step on a cycle sends a token round and another one elsewhere, so tokens pile up."
    why = (
        "Every round adds a step run to those that are already under way. Nothing bounds their number but the number "
        "of rounds: a retry loop that also notifies floods the receiver, and one that forks doubles each time."
    )
    bad = """
    - step: start
      tool: {kind: http, url: https://example.org/jobs}
      next:
        spec: {mode: inclusive}
        arcs:
          - step: start
            when: "{{ event.result.data.more }}"
          - step: load
            when: "{{ event.name == 'step.done' }}"
    - step: load
      tool: {kind: noop}
    """
    good = """
    - step: start
      tool: {kind: http, url: https://example.org/jobs}
      next:
        arcs:
          - step: start
            when: "{{ event.result.data.more }}"
          - step: load
            when: "{{ event.name == 'step.done' }}"
    - step: load
      tool: {kind: noop}
    """
    covers = ("S31", "formal §8.2")

    def check(self, model: Model) -> Iterator[Finding]:
        found = model.net
        if found is None or not found.reach.cycles:
            return
        from noetlc.net.bounds import growths

        for growth in growths(found.reach):
            extra, stays = found.arc(growth.extra).step, found.arc(growth.stays).step
            if extra is None or stays is None:
                continue
            yield self.finding(
                extra.span,
                f"tokens pile up at `{extra.text}`: each round through `{found.name(growth.step)}` sends one there "
                f"and another round again",
                "write `mode: exclusive`, or give the two arcs guards that exclude each other",
                related=[Related(stays.span, "this arc leads round, and fires together with it")],
            )
