"""Proves one pipeline: that each instruction finds its task in the state it needs, whichever way control came.

Between tasks there is no task; ENTER begins one, CALL gives it an outcome, and a directive ends it. Control may form
cycles; the machine bounds the number of rounds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from noetlvm.bytecode.isa import LABELLED, PIPELINE, Area, ControlFlow, OpcodeName, Operand
from noetlvm.bytecode.program import ExpressionCode, Instruction, Pipeline
from noetlvm.bytecode.verify.expressions import (
    BEFORE_CALL,
    DELAY,
    INPUTS,
    PATCH,
    PATCH_BEFORE_CALL,
    ROUNDS,
    RULE,
    Place,
)
from noetlvm.bytecode.verify.operands import CheckError, check_operands, check_sizes, integer, text
from noetlvm.language.names import ONE_LINE

_NONE = -1


class Plain:
    """Names that were found to be plain in one verification, so that a long name is checked once."""

    __slots__ = ("_shape", "_texts")

    def __init__(self, shape: re.Pattern[str]) -> None:
        self._shape = shape
        self._texts: set[str] = set()

    def holds(self, text: str) -> bool:
        """Return whether the text has the shape."""
        if text in self._texts:
            return True
        if not self._shape.match(text):
            return False
        self._texts.add(text)
        return True


class _Task(NamedTuple):
    """How far the current task is: where it was entered and called, if it was."""

    entered: int = _NONE
    called: int = _NONE


_BETWEEN = _Task()


class ExpressionUse(NamedTuple):
    """An expression in a pipeline: an operand of the instruction `at`."""

    at: int
    operand: int
    expression: ExpressionCode
    place: Place


def prove_pipeline(pipeline: Pipeline, labels: Plain, *, in_loop: bool) -> list[ExpressionUse]:
    """Prove a pipeline, or raise CheckError; return its expressions, which are not proven here.

    `labels` has those of the pipelines before.
    """
    code = pipeline.code
    check_sizes(code, pipeline.counters)
    for at, instruction in enumerate(code):
        check_operands(instruction, at, Area.PIPELINE, len(code), pipeline.counters)
    _check_labels(code, labels)
    tasks = _walk(code)
    uses: list[ExpressionUse] = []
    for at, instruction in enumerate(code):
        if at not in tasks:
            raise CheckError("V060", at, f"nothing leads to {instruction.opcode.name}")
        name = instruction.opcode.name
        if name in _USES:
            _check_values(instruction, at, in_loop)
            uses += _uses(instruction, at, tasks[at])
    return uses


def _check_labels(code: tuple[Instruction, ...], plain: Plain) -> None:
    seen: set[str] = set()
    for at, instruction in enumerate(code):
        if instruction.opcode.name not in LABELLED:
            continue
        label = text(instruction, 0)
        if not plain.holds(label):
            raise CheckError("V058", at, f"`{label}`")
        if label in seen:
            raise CheckError("V057", at, f"`{label}`")
        seen.add(label)


# ---- states


def _walk(code: tuple[Instruction, ...]) -> dict[int, _Task]:
    """Follow all paths; return the state before each instruction that is reached."""
    before: dict[int, _Task] = {0: _BETWEEN}
    waiting = [0]
    while waiting:
        at = waiting.pop()
        for target, task in _after(code, at, before[at]):
            known = before.get(target)
            if known is None:
                before[target] = task
                waiting.append(target)
            elif known != task:
                raise CheckError(
                    "V054", at, f"instruction {target} is reached {_described(known)} and {_described(task)}"
                )
    return before


def _after(code: tuple[Instruction, ...], at: int, task: _Task) -> Iterator[tuple[int, _Task]]:
    """Yield where control goes, and with which task."""
    instruction = code[at]
    name, need, target_operand, goes_on = _RULES[instruction.opcode.number]
    if need is not None and not _holds(need, task) and not _is_of_early_skip(code, at, task):
        raise CheckError(need.value, at, f"{name} stands {_described(task)}")
    if target_operand is not None:
        target = integer(instruction, target_operand)
        yield target, _arriving(code, target, _at_target(code, at, target, task))
    if goes_on:
        if at + 1 == len(code):
            raise CheckError("V059", at, f"{name} is the last instruction")
        yield at + 1, _arriving(code, at + 1, _performed(name, at, task))


def _is_of_early_skip(code: tuple[Instruction, ...], at: int, task: _Task) -> bool:
    """True for what a rule writes that skips its task before the call (S17)."""
    names = [instruction.opcode.name for instruction in code[at : at + 2]]
    return names == ["PATCH", "SKIP"] and task.entered != _NONE


def _arriving(code: tuple[Instruction, ...], target: int, task: _Task) -> _Task:
    """A task may be entered from anywhere, so the state before an ENTER does not count."""
    return _BETWEEN if code[target].opcode.name == "ENTER" else task


def _performed(name: str, at: int, task: _Task) -> _Task:
    if name == "ENTER":
        return _Task(at)
    return _Task(task.entered, at) if name == "CALL" else task


def _at_target(code: tuple[Instruction, ...], at: int, target: int, task: _Task) -> _Task:
    opcode = code[at].opcode
    if opcode.name == "RETRY":
        if target not in (task.entered + 1, task.called):
            raise CheckError("V056", at, f"it goes to instruction {target}, the CALL is instruction {task.called}")
        return _Task(task.entered)
    if opcode.flow is ControlFlow.BRANCH:
        return task
    if code[target].opcode.name not in _PLACES:
        raise CheckError("V055", at, f"{opcode.name} goes to instruction {target}, which is {code[target].opcode.name}")
    return _BETWEEN


_PLACES: frozenset[OpcodeName] = LABELLED | frozenset({"RESET", "ROUND", "GOTO", "END"})
"""Instructions that a directive may go to."""


class _Need(Enum):
    """What an instruction requires of the current task; the value is the code if it is not so."""

    BETWEEN = "V050"
    ENTERED = "V051"
    CALLED = "V052"
    TASK = "V053"


_NEEDS: dict[OpcodeName, _Need] = {
    "MARK": _Need.BETWEEN,
    "GOTO": _Need.BETWEEN,
    "RESET": _Need.BETWEEN,
    "ROUND": _Need.BETWEEN,
    "END": _Need.BETWEEN,
    "CALL": _Need.ENTERED,
    "ON_ERROR": _Need.CALLED,
    "PATCH": _Need.CALLED,
    "BIND": _Need.CALLED,
    "RETRY": _Need.CALLED,
    "CONTINUE": _Need.CALLED,
    "JUMP_TO": _Need.CALLED,
    "BREAK": _Need.CALLED,
    "SKIP": _Need.TASK,
    "FAIL": _Need.TASK,
}
"""ENTER and UNLESS require nothing."""


class _Rule(NamedTuple):
    """The properties of one opcode that the walk uses."""

    name: str
    need: _Need | None
    target_operand: int | None
    goes_on: bool
    """Control may come to the instruction that follows."""


_RULES: dict[int, _Rule] = {
    opcode.number: _Rule(
        name,
        _NEEDS.get(name),
        opcode.operands.index(Operand.TARGET) if Operand.TARGET in opcode.operands else None,
        opcode.flow in (ControlFlow.NEXT, ControlFlow.BRANCH),
    )
    for name, opcode in PIPELINE.items()
}


def _holds(need: _Need, task: _Task) -> bool:
    if need is _Need.BETWEEN:
        return task.entered == _NONE
    if need is _Need.TASK:
        return task.entered != _NONE
    return task.entered != _NONE and (task.called != _NONE) is (need is _Need.CALLED)


def _described(task: _Task) -> str:
    if task.entered == _NONE:
        return "between tasks"
    if task.called == _NONE:
        return f"before the CALL of the task of instruction {task.entered}"
    return f"after the CALL of instruction {task.called}"


# ---- values and expressions


def _check_values(instruction: Instruction, at: int, in_loop: bool) -> None:
    name, operands = instruction.opcode.name, instruction.operands
    if name == "CALL" and not ONE_LINE.match(text(instruction, 0)):
        raise CheckError("V062", at, f"`{operands[0]}`")
    if name == "RETRY" and operands[0] == 0:
        raise CheckError("V061", at, "the first attempt counts, so it is at least 1")
    if name == "PATCH" and operands == (None, None):
        raise CheckError("V063", at, "an expression for `iter`, for `ctx` or for both is needed")
    if name == "PATCH" and operands[0] is not None and not in_loop:
        raise CheckError("V064", at, "the step has no loop")


_USES: dict[OpcodeName, tuple[tuple[int, Place], ...]] = {
    "CALL": ((1, INPUTS), (2, INPUTS)),
    "UNLESS": ((0, RULE),),
    "PATCH": ((0, PATCH), (1, PATCH)),
    "RETRY": ((0, DELAY), (2, DELAY)),
    "ROUND": ((1, ROUNDS),),
}
"""The expressions of an instruction, by operand."""


_BEFORE_CALL = {RULE: BEFORE_CALL, PATCH: PATCH_BEFORE_CALL}


def _uses(instruction: Instruction, at: int, task: _Task) -> Iterator[ExpressionUse]:
    for operand, place in _USES[instruction.opcode.name]:
        expression = instruction.operands[operand]
        if isinstance(expression, ExpressionCode):
            yield ExpressionUse(
                at, operand, expression, _BEFORE_CALL.get(place, place) if task.called == _NONE else place
            )
