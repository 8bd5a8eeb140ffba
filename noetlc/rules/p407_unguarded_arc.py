from collections.abc import Iterator

from noetlc.analysis.endings import FailureCause
from noetlc.analysis.formulas import STEP_FAILED, event_facts
from noetlc.analysis.guards import decide, names_read
from noetlc.analysis.model import Owner
from noetlc.rules.rule import Edit, Findings, Fix, Model, Rule, Severity
from noetlc.syntax import ast
from noetlc.syntax.span import Span

_EXPECTED = frozenset({FailureCause.OUTCOME, FailureCause.FUEL})
"""What an author of a playbook has to expect; a value that cannot be computed is a mistake in it."""


class UnguardedArc(Rule):
    severity = Severity.WARNING
    summary = "An arc from a step that can fail does not read `event`. One finding for each playbook."
    why = (
        "An arc without such a guard also fires after a failure. The next step runs without a result, and the "
        "execution still ends as failed, because no arc handled the failure."
    )
    example = """
      - step: fetch
        tool:
          - get: {kind: http, url: "https://example.org/items"}
        next:
          arcs:
            - step: report
    +         when: "{{ event.name == 'step.done' }}"
      - step: report
        tool: {kind: noop}
    """
    covers = ("S31", "formal §8.1")

    def check(self, model: Model) -> Findings:
        found = [
            (owner, arc)
            for owner, flow in model.flows.items()
            if owner.step and flow.is_certain and (flow.failures & _EXPECTED or owner.step.lifecycle is not None)
            for arc in _unguarded(owner, owner.step)
            if arc.step  # one without is an error of its own
        ]
        if not found:
            return
        (owner, arc), more = found[0], len(found) - 1
        target = arc.step.text if arc.step else ""
        others = f", and {more} more {'arc has' if more == 1 else 'arcs have'} no guard either" if more else ""
        edits = [edit for owner, arc in found for edit in _guard(model, owner, arc)]
        fix = Fix("add a guard on success to every arc without a guard", tuple(edits), safe=False) if edits else None
        yield self.finding(
            arc.step.span if arc.step else arc.key_span("step"),
            f"`{owner.name}` can fail, and this arc leads to `{target}` after a failure too{others}",
            f"write `when: \"{_success(owner)}\"`; an arc for `'step.failed'` handles the rest",
            fix=fix,
        )


def _unguarded(owner: Owner, step: ast.Step) -> Iterator[ast.Arc]:
    """Yield the arcs that fire after a failure without reading `event`."""
    for arc in step.arcs:
        holds = decide(arc.when, event_facts(STEP_FAILED, owner.name, bool(owner.loops)))
        if holds is not False and "event" not in names_read(arc.when):
            yield arc
        if holds and not step.is_inclusive:
            return


def _success(owner: Owner) -> str:
    return f"{{{{ event.name == '{'loop.done' if owner.loops else 'step.done'}' }}}}"


def _guard(model: Model, owner: Owner, arc: ast.Arc) -> Iterator[Edit]:
    """Yield the edit that adds `when` after `step`; an arc with a guard of its own is left to a person."""
    if arc.when is not None or arc.step is None:
        return
    text = model.source.text
    is_flow = text[arc.span.start : arc.span.start + 1] == "{"
    indent = model.source.position(arc.key_span("step").start)[1] - 1
    before = ", " if is_flow else "\n" + " " * indent
    yield Edit(Span(arc.step.span.end, arc.step.span.end), f'{before}when: "{_success(owner)}"')
