"""Steps to transitions: the gate, the loops, the ways out, and the pipeline between them."""

from __future__ import annotations

from noetlc.codegen.expressions import Lowered, expression_reads, lower_guard, lower_value, lower_verdict
from noetlc.codegen.pipeline import Surroundings, lower_pipeline
from noetlc.codegen.plain_data import node_data, struct_data
from noetlc.codegen.visible import visible_names
from noetlc.syntax import ast, nodes
from noetlvm.bytecode.program import Arc, Expression, LoopHeader, Pipeline, Transition, Value
from noetlvm.language.scopes import Position
from noetlvm.record import Record

PARALLEL_WIDTH = 32
"""Iterations of a parallel loop that run at once, where the loop does not say (S24)."""


class Place(Record):
    """Where the code at one address was written: its construct, and an offset for each instruction."""

    construct: str
    offsets: tuple[int, ...]


class Written:
    """What a playbook's text tells of its code: filled while the code is made."""

    __slots__ = ("constructs", "places", "text")

    def __init__(self, text: str, constructs: dict[str, str]) -> None:
        self.text = text
        self.constructs = constructs
        """What the author wrote for a generated label, by `step/label`."""
        self.places: dict[str, Place] = {}
        """By the address of the code."""

    def note(self, address: str, construct: str, *offsets: int) -> None:
        """Keep where the code at an address was written."""
        self.places[address] = Place(construct, offsets)

    def expression(self, address: str, construct: str, lowered: Lowered) -> Expression:
        """Keep where an expression was written, and return it."""
        self.note(address, construct, *lowered.offsets)
        return lowered.expression


def lower_step(step: ast.Step, name: str, written: Written) -> Transition:
    """Return a step's transition; `name` is the step's address."""
    assert step.step is not None  # lint: every step has a name
    written.note(name, "step", step.step.span.start)
    policy = step.spec.policy if step.spec else None
    admit = policy.admit if policy else None
    router = step.next
    mode = router.spec.mode if router and router.spec else None
    failure = policy.failure if policy else None
    return Transition(
        name=step.step.text,
        admit=_admit(admit, f"{name}/admit", written),
        drops_denied=_is(admit.on_deny if admit else None, "drop"),
        loops=tuple(_loop(loop, level, name, written) for level, loop in enumerate(step.loops, 1)),
        best_effort=_is(failure.mode if failure else None, "best_effort"),
        pipeline=_pipeline(step, f"{name}/tool", written),
        inclusive=_is(mode, "inclusive"),
        arcs=tuple(_arc(arc, f"{name}/arc.{n}", written) for n, arc in enumerate(_arcs(step), 1)),
        settings=_settings(step),
    )


def _is(scalar: nodes.Scalar | None, word: str) -> bool:
    return scalar is not None and scalar.text == word


def _arcs(step: ast.Step) -> tuple[ast.Arc, ...]:
    return (step.next.arcs or ()) if step.next else ()


def _admit(admit: ast.Admit | None, address: str, written: Written) -> Expression | None:
    """Return one guard for all rules: the first that holds decides, and without one nobody is let in (S30)."""
    if admit is None:
        return None
    choices: list[tuple[nodes.Scalar | None, bool]] = []
    for rule in admit.rules or ():
        verdict = rule.else_.then if rule.else_ else rule.then
        allows = verdict is not None and verdict.allow is not None and verdict.allow.value is True
        choices.append((None if rule.else_ else rule.when, allows))
    if choices and choices[0] == (None, True):
        return None
    visible = visible_names(Position.ADMIT, in_loop=False)
    return written.expression(address, "admit", lower_verdict(choices, admit.span, written.text, visible))


def _loop(loop: ast.Loop, level: int, name: str, written: Written) -> LoopHeader:
    assert loop.in_ is not None  # lint: a loop has both
    assert loop.iterator is not None
    spec = loop.spec
    policy = spec.policy if spec else None
    mode = (spec.mode if spec else None) or (policy.mode if policy else None)
    width = (spec.max_in_flight if spec else None) or (policy.max_in_flight if policy else None)
    is_parallel = _is(mode, "parallel")
    visible = visible_names(Position.LOOP_IN, in_loop=level > 1)
    return LoopHeader(
        collection=written.expression(
            f"{name}/loop.{level}/in", "loop", lower_value(loop.in_, written.text, visible, "in")
        ),
        iterator=loop.iterator.text,
        parallel=is_parallel,
        width=_width(width) if is_parallel else 1,
        distributed=_is(policy.exec, "distributed") if policy and policy.exec else is_parallel,
        reducers=_reducers(policy.reducers if policy else None),
    )


def _width(scalar: nodes.Scalar | None) -> int:
    return scalar.value if scalar is not None and isinstance(scalar.value, int) else PARALLEL_WIDTH


def _reducers(reducers: ast.Reducers | None) -> tuple[tuple[str, str], ...]:
    entries = reducers.extra if reducers else ()
    return tuple(sorted((entry.key.text, str(node_data(entry.value))) for entry in entries))


def _arc(arc: ast.Arc, address: str, written: Written) -> Arc:
    assert arc.step is not None  # lint: an arc leads to a step
    written.note(address, "arc", arc.step.span.start)
    guard = args = None
    if arc.when is not None:
        visible = visible_names(Position.ARC_WHEN, in_loop=False)
        guard = written.expression(f"{address}/when", "arc", lower_guard(arc.when, written.text, visible))
    if arc.args is not None and arc.args.entries:
        visible = visible_names(Position.ARC_ARGS, in_loop=False)
        args = written.expression(f"{address}/args", "arc", lower_value(arc.args, written.text, visible, "args"))
    reads_event = guard is not None and expression_reads(guard, "event")
    return Arc(arc.step.text, guard, args, handles_failure=reads_event)


def _pipeline(step: ast.Step, address: str, written: Written) -> Pipeline | None:
    tasks = tuple(entry for entry in step.tool or () if isinstance(entry, ast.Task))
    if not tasks:
        return None
    assert step.step is not None
    prefix = f"{step.step.text}/"

    def construct_of(label: str) -> str:
        return written.constructs.get(prefix + label, f"task {label}")

    lowered = lower_pipeline(tasks, Surroundings(written.text, bool(step.loops), construct_of))
    written.note(address, "tool", *(origin.offset for origin in lowered.origins))
    for number, index, operand in lowered.operands:
        written.expression(f"{address}.{number}.{index}", lowered.origins[number].construct, operand)
    return lowered.pipeline


def _settings(step: ast.Step) -> dict[str, Value]:
    """Return what the runtime may obey besides: hints that are no part of the code."""
    policy = step.spec.policy if step.spec else None
    found = struct_data(policy, "admit", "failure")
    hints: dict[str, Value] = {
        "loops": _hints([_loop_hints(loop) for loop in step.loops]),
        "router": _router_hints(step.next),
        "arcs": _hints([node_data(arc.spec) if arc.spec else {} for arc in _arcs(step)]),
    }
    return found | {key: value for key, value in hints.items() if value}


def _hints(found: list[Value]) -> Value:
    return found if any(found) else []


def _loop_hints(loop: ast.Loop) -> Value:
    policy = loop.spec.policy if loop.spec else None
    return struct_data(policy, "exec", "mode", "max_in_flight", "reducers")


def _router_hints(router: ast.Router | None) -> Value:
    spec = router.spec if router else None
    policy: Value = struct_data(spec.policy if spec else None)
    rest: dict[str, Value] = struct_data(spec, "mode", "policy")
    return rest | {"policy": policy} if policy else rest
