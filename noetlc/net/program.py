"""From a program to its nets: reads step summaries from code."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from noetlc.analysis.endings import ALWAYS_THERE, FailureCause, LoopFacts, Write, loop_failures
from noetlc.analysis.formulas import ERROR_OUTCOME, NO_FACTS, OK_OUTCOME, UNDEFINED, Facts, needed, verdict
from noetlc.net.code_guards import code_can_raise, formula_of, listing
from noetlc.net.net import NO_PIPELINE, ArcSummary, Net, PipelineEnds, StepSummary, Where, build_net
from noetlvm.bytecode.isa import ControlFlow, OpcodeName
from noetlvm.bytecode.program import (
    DebugMap,
    ExpressionCode,
    Instruction,
    LoopHeader,
    PlaybookCode,
    Program,
    Transition,
)
from noetlvm.language.tool_kinds import find_kind
from noetlvm.limits import Limits


def nets_of(program: Program) -> tuple[Net, ...]:
    """Return the net of each playbook of a program; the first is the main one's."""
    return tuple(
        program_net(playbook, program.debug, f"{playbook.path}#" if number else "")
        for number, playbook in enumerate(program.playbooks)
    )


def program_net(playbook: PlaybookCode, debug: DebugMap | None = None, prefix: str = "") -> Net:
    """Return the net of one playbook. `prefix` begins its addresses in the debug map."""
    places = _places(debug)
    tasks_max = Limits.of(playbook.executor).max_transitions
    steps = [_summary(step, places, prefix, tasks_max) for step in playbook.steps]
    return build_net(playbook.name, playbook.path, steps, playbook.entry_step, playbook.final_step)


def _places(debug: DebugMap | None) -> dict[str, Where]:
    if debug is None:
        return {}
    found: dict[str, Where] = {}
    for entry in debug.entries:
        if entry.construct in ("step", "arc") and entry.marks:
            mark = entry.marks[0]
            found[entry.address] = Where(debug.files[mark.file], mark.line, mark.column)
    return found


def _summary(step: Transition, places: dict[str, Where], prefix: str, tasks_max: int) -> StepSummary:
    address = prefix + step.name
    run = _follow(step, tasks_max) if step.pipeline else _Followed(NO_PIPELINE, ())
    sizes = _loop_sizes(step.loops)
    return StepSummary(
        name=step.name,
        ends=run.ends,
        loop_sizes=sizes,
        loop_failures=loop_failures(list(map(_loop_facts, step.loops, sizes)), _writes(run.code)),
        widths=tuple(loop.width if isinstance(loop.width, int) else None for loop in step.loops),
        best_effort=step.best_effort,
        has_limits="lifecycle" in step.settings,
        gate=formula_of(step.admit),
        drops_denied=step.drops_denied,
        inclusive=step.inclusive,
        arcs=tuple(
            ArcSummary(
                arc.target,
                listing(arc.guard.code) if arc.guard else None,
                partial(formula_of, arc.guard),
                arc.handles_failure,
                places.get(f"{address}/arc.{number}"),
            )
            for number, arc in enumerate(step.arcs, 1)
        ),
        reads=frozenset(key for expression in _expressions(step, run.code) for key in _keys_read(expression.code)),
        writes=frozenset(key for key, _ in _writes(run.code)),
        awaits=frozenset(_keys_awaited(step.admit)),
        has_tool=step.pipeline is not None,
        tools=tuple(dict.fromkeys(str(one.operands[0]) for one in run.code if one.opcode.name == "CALL")),
        where=places.get(address),
        pipeline=step.pipeline,
    )


# ---- how a step can end

_ENDS: dict[OpcodeName, bool] = {"END": True, "BREAK": True, "FAIL": False}
"""Whether the pipeline is done where it ends."""
_State = tuple[int, Facts]
"""An instruction, and what is known about the outcome there."""


class _Followed(NamedTuple):
    ends: PipelineEnds
    code: tuple[Instruction, ...]
    """The instructions that control can reach, in order."""


def _follow(step: Transition, tasks_max: int) -> _Followed:
    pipeline = step.pipeline
    assert pipeline is not None
    pending: list[_State] = [(0, NO_FACTS)]
    seen = set(pending)
    is_done = False
    failures: set[FailureCause] = set()
    while pending:
        at, outcome = pending.pop()
        instruction = pipeline.code[at]
        if instruction.opcode.name in _ENDS:
            is_done = is_done or _ENDS[instruction.opcode.name]
            failures |= set() if _ENDS[instruction.opcode.name] else {FailureCause.OUTCOME}
            continue
        failures.update(_failures_at(instruction, outcome))
        for state in _successors(instruction, at, outcome):
            if state[0] <= at and instruction.opcode.name != "RETRY":
                failures.add(FailureCause.FUEL)  # control goes back, so that rounds or fuel can run out (S20, S39)
            if state not in seen:
                seen.add(state)
                pending.append(state)
    code = tuple(pipeline.code[at] for at in sorted({at for at, _ in seen}))
    waits = step.settings.get("waits")
    entered = [one.operands[0] for one in code if one.opcode.name == "ENTER"]
    if sum(label not in (waits if isinstance(waits, list) else ()) for label in entered) > tasks_max:
        failures.add(FailureCause.FUEL)
    return _Followed(PipelineEnds(is_done, frozenset(failures)), code)


def _failures_at(instruction: Instruction, outcome: Facts) -> Iterator[FailureCause]:
    """Yield how an instruction can fail by itself: where inputs fail, the task's rules decide (S10)."""
    name = instruction.opcode.name
    expressions = [operand for operand in instruction.operands if isinstance(operand, ExpressionCode)]
    if name == "UNLESS" and any(code_can_raise(guard, outcome) for guard in expressions):
        yield FailureCause.GUARD
    if name == "PATCH" and any(map(_may_fail, expressions)):
        yield FailureCause.PATCH
    if name in ("RETRY", "ROUND") and any(map(_is_computed, expressions)):
        yield FailureCause.NUMBER


def _successors(instruction: Instruction, at: int, outcome: Facts) -> Iterator[_State]:
    name = instruction.opcode.name
    if name == "CALL":
        yield at + 1, OK_OUTCOME
        if _can_fail(instruction):
            yield at + 1, ERROR_OUTCOME
    elif name == "ON_ERROR":
        yield (instruction.target if outcome is ERROR_OUTCOME else at + 1), outcome
    elif name == "UNLESS":
        guard = instruction.operands[0]
        assert isinstance(guard, ExpressionCode)
        holds = verdict(formula_of(guard, outcome))
        if holds is not False:
            yield at + 1, outcome
        if not holds:
            yield instruction.target, outcome
    else:
        if instruction.opcode.flow in (ControlFlow.JUMP, ControlFlow.BRANCH):
            yield instruction.target, outcome
        if instruction.opcode.flow in (ControlFlow.NEXT, ControlFlow.BRANCH):
            yield at + 1, outcome


def _can_fail(call: Instruction) -> bool:
    """True if a task can fail: its tool can, its kind is unknown, or an input is computed and so may be undefined."""
    kind = find_kind(str(call.operands[0]))
    inputs = [operand for operand in call.operands if isinstance(operand, ExpressionCode)]
    return kind is None or kind.can_fail or any(map(_may_fail, inputs))


_BUILDS = frozenset({"CONST", "LIST", "RECORD", "RETURN"})


def _is_computed(expression: ExpressionCode) -> bool:
    return not {instruction.opcode.name for instruction in expression.code} <= _BUILDS


def _may_fail(expression: ExpressionCode) -> bool:
    """True if a value is computed and so may be undefined, other than one that is always there."""
    for at, instruction in enumerate(expression.code):
        name = instruction.opcode.name
        if name == "NAME" and instruction.operands[0] in ALWAYS_THERE:
            if expression.code[at + 1].opcode.name != "REQUIRE":
                return True
        elif name != "REQUIRE" and name not in _BUILDS:
            return True
    return False


def _loop_facts(loop: LoopHeader, size: int | None) -> LoopFacts:
    numbers = [part for part in (loop.width, loop.rate) if isinstance(part, ExpressionCode)]
    return LoopFacts(size, loop.parallel, any(map(_is_computed, numbers)), dict(loop.reducers))


def _loop_sizes(loops: tuple[LoopHeader, ...]) -> tuple[int | None, ...]:
    found: list[int | None] = []
    for loop in loops:
        code = loop.collection.code
        value = code[0].operands[0] if [one.opcode.name for one in code] == ["CONST", "RETURN"] else None
        found.append(len(value) if isinstance(value, list | dict) else None)
        if found[-1] == 0:
            break
    return tuple(found)


# ---- what a step reads, writes and calls


def _expressions(step: Transition, code: tuple[Instruction, ...]) -> Iterator[ExpressionCode]:
    found: list[object] = [step.admit]
    found += [part for loop in step.loops for part in (loop.collection, loop.width, loop.rate)]
    found += [part for arc in step.arcs for part in (arc.guard, arc.args)]
    found += [operand for one in code for operand in one.operands]
    return (expression for expression in found if isinstance(expression, ExpressionCode))


def _keys_read(code: tuple[Instruction, ...]) -> Iterator[str]:
    """Yield the keys of `ctx` that code may read. A bare name may be one of them (S11)."""
    yield from (str(one.operands[0]) for one in code if one.opcode.name == "BARE")
    yield from _keys_of_ctx(code)


def _keys_awaited(gate: ExpressionCode | None) -> Iterator[str]:
    """Yield the keys of `ctx` that must be there before a gate opens."""
    paths = {f"ctx.{key}" for key in _keys_of_ctx(gate.code)} if gate else set()
    return (path.removeprefix("ctx.") for path in needed(partial(formula_of, gate), paths))


def _keys_of_ctx(code: tuple[Instruction, ...]) -> Iterator[str]:
    for at, instruction in enumerate(code):
        if instruction.opcode.name == "NAME" and instruction.operands[0] == "ctx":
            yield from _key_after(code[at + 1 : at + 3])


def _key_after(following: tuple[Instruction, ...]) -> Iterator[str]:
    """`ctx.key` and `ctx['key']`; which key another `ctx[…]` reads depends on the run."""
    first, last = following[0], following[-1]
    is_item = first.opcode.name == "CONST" and (last.opcode.name == "ITEM" or last.opcode.name == "METHOD")
    if first.opcode.name == "ATTR" or is_item:
        yield str(first.operands[0])


def _writes(code: tuple[Instruction, ...]) -> Iterator[Write]:
    """Yield what the tasks write to `ctx`; the values only of a patch of constants."""
    for one in code:
        patch = one.operands[1] if one.opcode.name == "PATCH" else None
        if isinstance(patch, ExpressionCode):
            yield from _made(patch.code)


def _made(code: tuple[Instruction, ...]) -> Iterator[Write]:
    """Yield what a patch can write: the verifier proved that each RETURN follows what makes the mapping."""
    for before, instruction in pairwise(code):
        if instruction.opcode.name == "RETURN":
            made = before.operands[0]
            assert isinstance(made, list | dict)
            yield from made.items() if isinstance(made, dict) else ((str(key), UNDEFINED) for key in made)
