"""P411: an arc that waits for an ending its step never has, or that earlier arcs together leave nothing for."""

from __future__ import annotations

from collections.abc import Iterator

from noetlc.analysis.guards import covered
from noetlc.analysis.model import Model
from noetlc.finding import Finding, Severity
from noetlc.rules.rule import Rule
from noetlc.syntax import ast

_DONE_NAMES = ("step.done", "loop.done")


class DeadArc(Rule):
    code = "P411"
    name = "dead-arc"
    severity = Severity.WARNING
    echoes = frozenset({"P211"})
    summary = "An arc can never fire, because its step never ends that way or earlier arcs together take everything."
    why = (
        "The step behind the arc never gets a token from here. An error handler on a step that cannot fail looks like "
        "safety and is none; the failure that it was meant for happens somewhere else."
    )
    bad = """
    - step: start
      tool: {kind: noop}
      next:
        arcs:
          - step: report
            when: "{{ event.name == 'step.done' }}"
          - step: rescue
            when: "{{ event.name == 'step.failed' }}"
    - step: report
      tool: {kind: noop}
    - step: rescue
      tool: {kind: noop}
    """
    good = """
    - step: start
      tool: {kind: http, url: https://example.org}
      next:
        arcs:
          - step: report
            when: "{{ event.name == 'step.done' }}"
          - step: rescue
            when: "{{ event.name == 'step.failed' }}"
    - step: report
      tool: {kind: noop}
    - step: rescue
      tool: {kind: noop}
    """
    covers = ("S21", "S31", "S33")

    def check(self, model: Model) -> Iterator[Finding]:
        found = model.net
        if found is None:
            return
        for step, source in zip(found.net.steps, found.steps, strict=True):
            told = _told_elsewhere(source)
            for arc in step.arcs if found.reach.runs(step.index) else ():
                written = found.arc(arc)
                if arc.reason is None or written.step is None or id(written) in told:
                    continue
                if arc.reason.value == "event" and not step.can_fail and _asks_for_own_end(written):
                    yield self.finding(
                        written.step.span,
                        f"the arc to `{written.step.text}` never fires: `{step.name}` cannot fail",
                        "remove the arc, or put it on the step whose failure it is for",
                    )
                elif arc.reason.value == "shadowed":
                    yield self.finding(
                        written.step.span,
                        f"the arc to `{written.step.text}` never fires: the arcs before it take all that it would",
                        "put it first, or write `mode: inclusive` to take both",
                    )


def _told_elsewhere(step: ast.Step) -> set[int]:
    """Return the arcs that one earlier arc covers: those have a rule of their own."""
    arcs = (step.next.arcs or ()) if step.next else ()
    return {id(arc) for arc, _ in covered((arc, arc.when) for arc in arcs)}


def _asks_for_own_end(arc: ast.Arc) -> bool:
    """Tell whether no other ending of steps is asked for: a wrong one is a mistake that another rule tells of."""
    return arc.when is not None and not any(name in arc.when.text for name in _DONE_NAMES)
