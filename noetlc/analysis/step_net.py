"""A playbook's net straight from its source, for rules about steps and the ways between them. It reports nothing.

It is the net that `noetlc graph` makes of the compiled program, but for how steps end: here a step can fail unless it
is plain that it cannot.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from noetlc.analysis.guard_formulas import guard_formula
from noetlc.net.conditions import Formula, if_, verdict
from noetlc.net.net import LOOP_DONE, STEP_DONE, STEP_FAILED, Arc, Ending, Gate, Net, Reason, Step, StepKind
from noetlc.net.operands import event_facts
from noetlc.net.reachability import Reach, reach
from noetlc.net.routers import choices
from noetlc.syntax import ast
from noetlc.syntax.nodes import Scalar, scalars
from noetlvm.language.tool_kinds import find_kind
from noetlvm.record import Record

if TYPE_CHECKING:
    from noetlc.analysis.model import Model

_GATES = {True: Gate.OPEN, False: Gate.SHUT, None: Gate.UNSURE}
_UNREAD = (
    ("playbook", "workflow"),
    ("playbook", "executor"),
    ("step", "step"),
    ("step", "next"),
    ("step", "spec"),
    ("step", "tool"),
    ("step", "loop"),
    ("router", "arcs"),
    ("router", "spec"),
    ("arc", "step"),
    ("arc", "when"),
)
"""What could not be read leaves no net to speak of."""


class StepNet(Record):
    """A net, where tokens go in it, and the steps and arcs it was made of, in the same order."""

    net: Net
    reach: Reach
    steps: tuple[ast.Step, ...]

    def arc(self, arc: Arc) -> ast.Arc:
        """Return the source of an arc."""
        return _arcs(self.steps[arc.source])[arc.index]

    def name(self, step: int) -> str:
        return self.net.steps[step].name


def step_net(model: Model) -> StepNet | None:
    """Return a playbook's net; None where names or routers are not in order, which other rules tell of."""
    if not model.steps or model.is_told(model.playbook.span, *_UNREAD):
        return None
    numbers = {step.step.text: index for index, step in enumerate(model.steps) if step.step}
    targets = [arc.step.text if arc.step else "" for step in model.steps for arc in _arcs(step)]
    executor = model.playbook.executor
    spec = executor.spec if executor else None
    named = [scalar.text for scalar in (spec.entry_step, spec.final_step) if scalar] if spec else []
    if len(numbers) < len(model.steps) or not numbers.keys() >= {*targets, *named}:
        return None
    entry = spec.entry_step.text if spec and spec.entry_step else "start"
    net = Net(
        "",
        "",
        tuple(_step(index, step, numbers) for index, step in enumerate(model.steps)),
        numbers.get(entry, 0),
        numbers[spec.final_step.text] if spec and spec.final_step else None,
    )
    return StepNet(net, reach(net), model.steps)


def _arcs(step: ast.Step) -> tuple[ast.Arc, ...]:
    return (step.next.arcs or ()) if step.next else ()


def _step(index: int, step: ast.Step, numbers: dict[str, int]) -> Step:
    name = step.step.text if step.step else ""
    mode = step.next.spec.mode if step.next and step.next.spec else None
    inclusive = mode is not None and mode.text == "inclusive"
    events = (LOOP_DONE if step.loops else STEP_DONE, *([STEP_FAILED] if _may_fail(step) else []))
    endings = tuple(_ending(step, name, event, inclusive) for event in events)
    alive = {arc for ending in endings for choice in ending.choices for fired in choice for arc in fired}
    admit = step.spec.policy.admit if step.spec and step.spec.policy else None
    return Step(
        index,
        name,
        StepKind.LOOP if step.loops else StepKind.TOOL if step.tool else StepKind.ROUTING,
        inclusive,
        _GATES[verdict(_admission(admit))],
        admit is not None and admit.on_deny is not None and admit.on_deny.text == "drop",
        endings,
        tuple(_arc(index, number, arc, step, name, alive, numbers) for number, arc in enumerate(_arcs(step))),
    )


def _ending(step: ast.Step, name: str, event: str, inclusive: bool) -> Ending:
    facts = event_facts(event, name, bool(step.loops))
    return Ending(event, choices([guard_formula(arc.when, facts) for arc in _arcs(step)], inclusive))


def _arc(
    source: int, index: int, arc: ast.Arc, step: ast.Step, name: str, alive: set[int], numbers: dict[str, int]
) -> Arc:
    target = numbers[arc.step.text] if arc.step else 0
    reason = None if index in alive else _why_dead(arc, step, name)
    return Arc(source, index, target, "", False, None, reason)


def _why_dead(arc: ast.Arc, step: ast.Step, name: str) -> Reason:
    if verdict(guard_formula(arc.when)) is False:
        return Reason.CONSTANT
    own = (LOOP_DONE if step.loops else STEP_DONE, *([STEP_FAILED] if _may_fail(step) else []))
    held = [verdict(guard_formula(arc.when, event_facts(event, name, bool(step.loops)))) for event in own]
    return Reason.EVENT if all(holds is False for holds in held) else Reason.SHADOWED


def _admission(admit: ast.Admit | None) -> Formula:
    """Return the gate's formula: the first rule that matches decides, and without one nobody is let in (S30)."""
    formula: Formula = admit is None
    for rule in reversed((admit.rules or ()) if admit else ()):
        then = rule.else_.then if rule.else_ else rule.then
        allows = then is not None and then.allow is not None and then.allow.value is True
        formula = if_(True if rule.else_ else guard_formula(rule.when), allows, formula)
    return formula


def _may_fail(step: ast.Step) -> bool:
    """Tell whether a step can fail, as far as it is not plain that it cannot."""
    return bool(step.loops or step.lifecycle) or any(_entry_may_fail(entry) for entry in step.tool or ())


def _entry_may_fail(entry: ast.PipelineEntry) -> bool:
    if not isinstance(entry, ast.Task):
        return True
    kind = find_kind(entry.kind.text) if entry.kind else None
    if kind is None or kind.can_fail or any(scalar.is_template for scalar in _inputs(entry)):
        return True
    thens = [rule.else_.then if rule.else_ else rule.then for rule in entry.rules]
    return any(then is None or then.do is None or then.do.text not in ("continue", "skip", "break") for then in thens)


def _inputs(task: ast.Task) -> Iterator[Scalar]:
    for entry in (*task.extra, *(task.spec.extra if task.spec else ())):
        yield from scalars(entry.value)
