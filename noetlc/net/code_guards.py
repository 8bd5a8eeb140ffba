"""Guards as a bundle has them: formulas by symbolic execution of stack code.

Where the code branches on an operand both branches are followed, and the formula records the condition. Facts decide
what they can: at the end of a step run the boundary event is known. Code that collects text or loops is not followed;
as a whole it is one opaque operand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from noetlc.analysis.formulas import (
    HOLDS,
    NO_FACTS,
    UNDEFINED,
    Facts,
    Formula,
    Item,
    Known,
    OperandTest,
    Term,
    Truth,
    can_raise,
    compared,
    if_,
    is_defined,
    item_holds,
    item_is_true,
    item_text,
    listed,
    not_,
    operation_text,
)
from noetlvm.bytecode.program import ExpressionCode, Instruction
from noetlvm.bytecode.verify.operands import count_taken

_WAYS_MAX = 2048
"""Instructions followed for one guard, counting each branch; beyond that the guard is one opaque operand."""


def formula_of(guard: ExpressionCode | None, facts: Facts = NO_FACTS) -> Formula:
    """Return a guard's formula; a missing guard always holds."""
    if guard is None:
        return True
    return _SymbolicRun(guard.code, facts).formula()


def code_can_raise(guard: ExpressionCode, facts: Facts = NO_FACTS) -> bool:
    """Return whether evaluating a guard can fail (S81)."""
    run = _SymbolicRun(guard.code, facts)
    run.formula()
    return run.can_raise


class _NotFollowedError(Exception):
    """The guard has more branches than are followed, or an instruction that is not followed."""


class _SymbolicRun:
    """Follows every path through one guard. Paths that meet with equal stacks are followed once."""

    def __init__(self, code: tuple[Instruction, ...], facts: Facts) -> None:
        self._code = code
        self._facts = facts.items
        self._done: dict[tuple[int, tuple[Item, ...]], Formula] = {}
        self._left = _WAYS_MAX
        self.can_raise = False
        """An operation that was followed can fail, or one was not followed."""

    def formula(self) -> Formula:
        try:
            return self._from(0, ())
        except (_NotFollowedError, RecursionError):
            self.can_raise = True
            return OperandTest(listing(self._code), HOLDS)

    def _from(self, at: int, stack: tuple[Item, ...]) -> Formula:
        key = (at, stack)
        if key not in self._done:
            self._done[key] = self._run(at, stack)
        return self._done[key]

    def _run(self, at: int, stack: tuple[Item, ...]) -> Formula:
        while True:
            self._left -= 1
            if self._left < 0:
                raise _NotFollowedError
            instruction = self._code[at]
            name = instruction.opcode.name
            if name == "RETURN":
                return item_holds(stack[-1])
            if name == "JUMP":
                at = instruction.target
                continue
            if name in _BRANCHES:
                when_true, when_false = _BRANCHES[name](at, instruction.target, stack)
                test = item_is_true(stack[-1])
                if not isinstance(test, bool):
                    return if_(test, self._from(*when_true), self._from(*when_false))
                at, stack = when_true if test else when_false
                continue
            stack = self._step(instruction, stack)
            at += 1

    def _step(self, instruction: Instruction, stack: tuple[Item, ...]) -> tuple[Item, ...]:
        name = instruction.opcode.name
        if name in _STACK:
            return _STACK[name](stack)
        if instruction.opcode.pushes != 1 or name in _NOT_FOLLOWED:
            raise _NotFollowedError
        count = count_taken(instruction)
        below, taken = stack[: len(stack) - count], stack[len(stack) - count :]
        return (*below, self._apply(instruction, taken))

    def _apply(self, instruction: Instruction, taken: tuple[Item, ...]) -> Item:
        name = instruction.opcode.name
        if name == "TEST" and instruction.operands[0] in ("defined", "undefined"):
            return is_defined(instruction.operands[0] == "defined", taken[0])
        if name == "ITEM" and isinstance(taken[1], Known) and isinstance(taken[1].value, str):
            return self._path(name, instruction.operands, taken)
        self.can_raise = self.can_raise or can_raise(name, instruction.operands, taken)
        if name in _VALUES:
            return _VALUES[name](instruction.operands, taken)
        if name in ("NAME", "BARE", "ATTR", "ITEM"):
            return self._path(name, instruction.operands, taken)
        return Term(operation_text(name, instruction.operands, taken))

    def _path(self, name: str, operands: tuple[object, ...], taken: tuple[Item, ...]) -> Item:
        holder: Item | None
        if name == "ITEM":
            holder, key = taken
            if not isinstance(key, Known) or not isinstance(key.value, str):
                return Term(f"{item_text(holder)}[{item_text(key)}]")
            field: object = key.value
        else:
            holder, field = (taken[0] if taken else None), operands[0]
        if isinstance(holder, Known) and holder.value is UNDEFINED:
            return holder
        path = f"{item_text(holder)}.{field}" if holder is not None else str(field)
        return self._facts.get(path, Term(path)) if name != "BARE" else Term(path)


def listing(code: tuple[Instruction, ...]) -> str:
    """Write code as one text: equal texts are equal code."""
    return "; ".join(f"{i.opcode.name} {', '.join(map(repr, i.operands))}".rstrip() for i in code)


_Way: TypeAlias = tuple[int, tuple[Item, ...]]

_BRANCHES: dict[str, Callable[[int, int, tuple[Item, ...]], tuple[_Way, _Way]]] = {
    "JUMP_IF": lambda at, target, stack: ((target, stack[:-1]), (at + 1, stack[:-1])),
    "JUMP_UNLESS": lambda at, target, stack: ((at + 1, stack[:-1]), (target, stack[:-1])),
    "KEEP_IF": lambda at, target, stack: ((target, stack), (at + 1, stack[:-1])),
    "KEEP_UNLESS": lambda at, target, stack: ((at + 1, stack[:-1]), (target, stack)),
}
"""For each branch, the next instruction if the top is true and if it is false."""

_STACK: dict[str, Callable[[tuple[Item, ...]], tuple[Item, ...]]] = {
    "DUP": lambda stack: (*stack, stack[-1]),
    "ROT3": lambda stack: (*stack[:-3], stack[-1], stack[-3], stack[-2]),
    "SWAP": lambda stack: (*stack[:-2], stack[-1], stack[-2]),
    "POP": lambda stack: stack[:-1],
}

_NOT_FOLLOWED = frozenset({"LOCAL", "LOOP", "TEXT_END", "ITER", "APPEND"})


_VALUES: dict[str, Callable[[tuple[object, ...], tuple[Item, ...]], Item]] = {
    "CONST": lambda operands, taken: Known(operands[0]),
    "UNDEFINED": lambda operands, taken: Known(UNDEFINED),
    "NOT": lambda operands, taken: Truth(not_(item_is_true(taken[0]))),
    "TRUTH": lambda operands, taken: Truth(item_holds(taken[0])),
    "COMPARE": lambda operands, taken: compared(str(operands[0]), taken[0], taken[1]),
    "LIST": lambda operands, taken: listed(taken),
    "TUPLE": lambda operands, taken: listed(taken),
}
