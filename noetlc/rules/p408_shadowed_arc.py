"""P408: an arc that an earlier arc leaves nothing for."""

from __future__ import annotations

from collections.abc import Iterator

from noetlc.analysis.guards import OTHER_NAMES, covered
from noetlc.analysis.model import Model
from noetlc.finding import Finding, Related, Severity
from noetlc.rules.rule import Rule
from noetlc.syntax import ast
from noetlc.syntax.span import Span


class ShadowedArc(Rule):
    code = "P408"
    name = "shadowed-arc"
    severity = Severity.WARNING
    summary = "In an exclusive router an arc can never fire, because an earlier one takes all that it would."
    why = "The first arc that holds is taken, and no other. The step behind this arc never gets a token from here."
    bad = """
    - step: check
      tool: {kind: noop}
      next:
        arcs:
          - step: publish
          - step: review
            when: "{{ ctx.suspicious | default(false) }}"
    - step: publish
      tool: {kind: noop}
    - step: review
      tool: {kind: noop}
    """
    good = """
    - step: check
      tool: {kind: noop}
      next:
        arcs:
          - step: review
            when: "{{ ctx.suspicious | default(false) }}"
          - step: publish
    - step: publish
      tool: {kind: noop}
    - step: review
      tool: {kind: noop}
    """
    covers = ("S31", "formal §8.2", "brief §5.1")

    def check(self, model: Model) -> Iterator[Finding]:
        for step in model.steps:
            router = step.next
            mode = router.spec.mode if router and router.spec else None
            if router and (mode is None or mode.text == "exclusive"):
                readable = [arc for arc in router.arcs or () if arc.when or not _lost_guard(model, arc)]
                for arc, earlier in covered((arc, arc.when) for arc in readable):
                    yield self._shadowed(arc, earlier)

    def _shadowed(self, arc: ast.Arc, earlier: ast.Arc) -> Finding:
        target = arc.step.text if arc.step else ""
        taken = "always taken" if earlier.when is None else "taken whenever this one would be"
        return self.finding(
            _place(arc),
            f"the arc to `{target}` never fires: an earlier arc is {taken}",
            "put the special case before the general one, or write `mode: inclusive` to take both",
            related=[Related(_place(earlier), "this arc comes first")],
        )


def _lost_guard(model: Model, arc: ast.Arc) -> bool:
    """Tell whether the arc's condition was written and could not be read."""
    return model.is_told(arc.span, *(("arc", key) for key in ("when", *OTHER_NAMES)))


def _place(arc: ast.Arc) -> Span:
    return arc.step.span if arc.step else arc.key_span("step")
