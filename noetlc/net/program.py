"""From a program to its nets: reads step summaries from code."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from noetlc.analysis.formulas import ERROR_OUTCOME, NO_FACTS, OK_OUTCOME, Facts, needed, verdict
from noetlc.net.code_guards import formula_of, listing
from noetlc.net.net import NO_PIPELINE, ArcSummary, Net, PipelineEnds, StepSummary, Where, build_net
from noetlvm.bytecode.isa import ControlFlow, OpcodeName
from noetlvm.bytecode.program import (
    DebugMap,
    ExpressionCode,
    Instruction,
    LoopHeader,
    Pipeline,
    PlaybookCode,
    Program,
    Transition,
)
from noetlvm.language.tool_kinds import find_kind


def nets_of(program: Program) -> tuple[Net, ...]:
    """Return the net of each playbook of a program; the first is the main one's."""
    return tuple(
        program_net(playbook, program.debug, f"{playbook.path}#" if number else "")
        for number, playbook in enumerate(program.playbooks)
    )


def program_net(playbook: PlaybookCode, debug: DebugMap | None = None, prefix: str = "") -> Net:
    """Return the net of one playbook. `prefix` begins its addresses in the debug map."""
    places = _places(debug)
    steps = [_summary(step, places, prefix) for step in playbook.steps]
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


def _summary(step: Transition, places: dict[str, Where], prefix: str) -> StepSummary:
    address = prefix + step.name
    run = _follow(step.pipeline) if step.pipeline else _Followed(NO_PIPELINE, ())
    return StepSummary(
        name=step.name,
        ends=run.ends,
        loop_sizes=_loop_sizes(step.loops),
        widths=tuple(loop.width if isinstance(loop.width, int) else None for loop in step.loops),
        best_effort=step.best_effort,
        has_limits="lifecycle" in step.settings,
        gate=formula_of(step.admit),
        drops_denied=step.drops_denied,
        inclusive=step.inclusive,
        arcs=tuple(
            ArcSummary(
                arc.target,
                listing(arc.guard.code) if arc.guard else "",
                partial(formula_of, arc.guard),
                arc.handles_failure,
                places.get(f"{address}/arc.{number}"),
            )
            for number, arc in enumerate(step.arcs, 1)
        ),
        reads=frozenset(key for expression in _expressions(step, run.code) for key in _keys_read(expression.code)),
        writes=frozenset(_keys_written(run.code)),
        awaits=frozenset(_keys_awaited(step.admit)),
        has_tool=step.pipeline is not None,
        tools=tuple(dict.fromkeys(str(one.operands[0]) for one in run.code if one.opcode.name == "CALL")),
        where=places.get(address),
        pipeline=step.pipeline,
    )


# ---- how a step can end

_DONE, _FAILED = -1, -2
_ENDS: dict[OpcodeName, int] = {"END": _DONE, "BREAK": _DONE, "FAIL": _FAILED}
_State = tuple[int, Facts]
"""An instruction, and what is known about the outcome there."""


class _Followed(NamedTuple):
    ends: PipelineEnds
    code: tuple[Instruction, ...]
    """The instructions that control can reach, in order."""


def _follow(pipeline: Pipeline) -> _Followed:
    pending: list[_State] = [(0, NO_FACTS)]
    seen = set(pending)
    ends: set[int] = set()
    while pending:
        at, outcome = pending.pop()
        instruction = pipeline.code[at]
        if instruction.opcode.name in _ENDS:
            ends.add(_ENDS[instruction.opcode.name])
            continue
        for state in _successors(instruction, at, outcome):
            if state[0] <= at and instruction.opcode.name != "RETRY":
                ends.add(_FAILED)  # control goes back, so that rounds or fuel can run out (S20, S39)
            if state not in seen:
                seen.add(state)
                pending.append(state)
    code = tuple(pipeline.code[at] for at in sorted({at for at, _ in seen}))
    return _Followed(PipelineEnds(_DONE in ends, _FAILED in ends), code)


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
    names = {instruction.opcode.name for expression in inputs for instruction in expression.code}
    return not names <= {"CONST", "LIST", "RECORD", "RETURN"} or kind is None or kind.can_fail


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


def _keys_written(code: tuple[Instruction, ...]) -> Iterator[str]:
    for one in code:
        patch = one.operands[1] if one.opcode.name == "PATCH" else None
        if isinstance(patch, ExpressionCode):
            yield from _keys_made(patch.code)


def _keys_made(code: tuple[Instruction, ...]) -> Iterator[str]:
    """Yield the keys that a patch can write: the verifier proved that each RETURN follows what makes the mapping."""
    for before, instruction in pairwise(code):
        if instruction.opcode.name == "RETURN":
            keys = before.operands[0]
            assert isinstance(keys, list | dict)
            yield from keys
