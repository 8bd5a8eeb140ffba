"""How a step run can end, by its code: done, failed, or either.

A task can fail if its tool can, or if its inputs are computed; a pipeline that goes round can run out of fuel (S20,
S39); a loop can fail over what it is to go through (S23), and by a failed iteration unless it counts those (S27); and
whatever has a time limit can be too slow or too late.
"""

from __future__ import annotations

from collections.abc import Iterator

from noetlc.graph.guards import formula_of
from noetlc.net.conditions import verdict
from noetlc.net.net import LOOP_DONE, STEP_DONE, STEP_FAILED
from noetlc.net.operands import ERROR_OUTCOME, NO_OUTCOME, OK_OUTCOME, Facts
from noetlvm.bytecode.isa import Flow
from noetlvm.bytecode.program import Expression, Instruction, LoopHeader, Pipeline, Transition
from noetlvm.language.tool_kinds import find_kind

_DONE, _FAILED = -1, -2
_NONE, _OK, _ERROR = range(3)
_FACTS: tuple[Facts, ...] = (NO_OUTCOME, OK_OUTCOME, ERROR_OUTCOME)
_ENDS = {"END": _DONE, "BREAK": _DONE, "FAIL": _FAILED}

_State = tuple[int, int]
"""An instruction, and what is known of the outcome there."""


def events_of(step: Transition) -> tuple[str, ...]:
    """Return the boundary events that a step can have, the good one first."""
    done, failed = pipeline_ends(step.pipeline) if step.pipeline else (True, False)
    if step.loops:
        counts = _counts(step.loops)
        done = done or step.best_effort or not all(counts)
        failed = (failed and 0 not in counts and not step.best_effort) or None in counts
    failed = failed or "lifecycle" in step.settings
    ends = ((LOOP_DONE if step.loops else STEP_DONE, done), (STEP_FAILED, failed))
    return tuple(event for event, possible in ends if possible)


def pipeline_ends(pipeline: Pipeline) -> tuple[bool, bool]:
    """Tell whether a pipeline can end as done, and whether it can end as failed."""
    seen: set[_State] = {(0, _NONE)}
    waiting: list[_State] = [(0, _NONE)]
    ends: set[int] = set()
    while waiting:
        at, outcome = waiting.pop()
        instruction = pipeline.code[at]
        if instruction.opcode.name in _ENDS:
            ends.add(_ENDS[instruction.opcode.name])
            continue
        if _may_run_dry(instruction, at):
            ends.add(_FAILED)
        for state in _onward(instruction, at, outcome):
            if state not in seen:
                seen.add(state)
                waiting.append(state)
    return _DONE in ends, _FAILED in ends


def _onward(instruction: Instruction, at: int, outcome: int) -> Iterator[_State]:
    name = instruction.opcode.name
    if name == "CALL":
        yield at + 1, _OK
        if _can_fail(instruction):
            yield at + 1, _ERROR
    elif name == "ON_ERROR":
        yield (_target(instruction) if outcome == _ERROR else at + 1), outcome
    elif name == "UNLESS":
        guard = instruction.operands[0]
        assert isinstance(guard, Expression)
        holds = verdict(formula_of(guard, _FACTS[outcome]))
        if holds is not False:
            yield at + 1, outcome
        if not holds:
            yield _target(instruction), outcome
    else:
        if instruction.opcode.flow in (Flow.JUMP, Flow.BRANCH):
            yield _target(instruction), outcome
        if instruction.opcode.flow in (Flow.NEXT, Flow.BRANCH):
            yield at + 1, outcome


def _can_fail(call: Instruction) -> bool:
    kind = find_kind(str(call.operands[0]))
    computed = any(isinstance(operand, Expression) and not is_constant(operand) for operand in call.operands)
    return computed or kind is None or kind.can_fail


def _may_run_dry(instruction: Instruction, at: int) -> bool:
    """Tell whether control goes back here: round and round until the fuel is used up. Retries have their own limit."""
    if instruction.opcode.name == "ROUND":
        return True
    return instruction.opcode.flow is Flow.JUMP and _target(instruction) <= at


def _target(instruction: Instruction) -> int:
    target = instruction.operands[-1]
    assert isinstance(target, int)
    return target


def is_constant(expression: Expression) -> bool:
    """Tell whether code does nothing but give a constant."""
    return [instruction.opcode.name for instruction in expression.code] == ["CONST", "RETURN"]


def _counts(loops: tuple[LoopHeader, ...]) -> list[int | None]:
    """Return how often each loop goes round; None where that depends on data. What is in an empty one never begins."""
    found: list[int | None] = []
    for loop in loops:
        value = loop.collection.code[0].operands[0] if is_constant(loop.collection) else None
        found.append(len(value) if isinstance(value, list | dict) else None)
        if found[-1] == 0:
            break
    return found
