"""P407: an arc that is taken after a failure as after a success."""

from __future__ import annotations

from collections.abc import Iterator

from noetlc.analysis.formulas import STEP_FAILED, event_facts
from noetlc.analysis.guards import decide, names_read
from noetlc.analysis.model import Model, Owner
from noetlc.finding import Finding, Severity
from noetlc.rules.rule import Rule
from noetlc.syntax import ast


class UnguardedArc(Rule):
    code = "P407"
    name = "unguarded-arc"
    severity = Severity.NOTE
    summary = "An arc out of a step that can fail does not look at `event`."
    why = (
        "An arc without such a guard is taken after a failure too. The next step runs on results that are not there, "
        "and the execution still ends as failed, because nothing handled the failure."
    )
    bad = """
    - step: fetch
      tool:
        - get: {kind: http, url: "https://example.org/items"}
      next:
        arcs:
          - step: report
    - step: report
      tool: {kind: noop}
    """
    good = """
    - step: fetch
      tool:
        - get: {kind: http, url: "https://example.org/items"}
      next:
        arcs:
          - step: report
            when: "{{ event.name == 'step.done' }}"
    - step: report
      tool: {kind: noop}
    """
    covers = ("S31", "formal §8.1")

    def check(self, model: Model) -> Iterator[Finding]:
        for owner, flow in model.flows.items():
            router = owner.step.next if owner.step else None
            has_limit = owner.step is not None and owner.step.lifecycle is not None
            if router and flow.is_certain and (flow.can_fail or has_limit):
                yield from self._check_router(owner, router)

    def _check_router(self, owner: Owner, router: ast.Router) -> Iterator[Finding]:
        mode = router.spec.mode if router.spec else None
        is_exclusive = mode is None or mode.text == "exclusive"
        done = "loop.done" if owner.loops else "step.done"
        for arc in router.arcs or ():
            holds = decide(arc.when, event_facts(STEP_FAILED, owner.name, bool(owner.loops)))
            if holds is not False and "event" not in names_read(arc.when):
                target = arc.step.text if arc.step else ""
                yield self.finding(
                    arc.step.span if arc.step else arc.key_span("step"),
                    f"`{owner.name}` can fail, and goes on to `{target}` all the same",
                    f"write `when: \"{{{{ event.name == '{done}' }}}}\"`; an arc for `'step.failed'` handles the rest",
                )
            if is_exclusive and holds:
                return
