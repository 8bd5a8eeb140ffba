"""Builds the stack code of one expression: instructions, labels, local variables, and where each was written."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from noetlvm.bytecode.isa import EXPRESSION, Operand
from noetlvm.bytecode.program import Expression, Instruction


class Label(NamedTuple):
    """A place in the code that a jump may name before it is known."""

    number: int


class StackCode:
    """Code under construction."""

    def __init__(self) -> None:
        self._instructions: list[Instruction] = []
        self._offsets: list[int] = []
        self._places: list[int] = []
        self._slots = 0
        self.locate: Callable[[int], int] = int
        """From an offset of what is being lowered to the offset that is kept for it."""

    def emit(self, name: str, *operands: object, at: int) -> None:
        """Add an instruction that was written at the offset `at`."""
        self._instructions.append(Instruction(EXPRESSION[name], operands))
        self._offsets.append(self.locate(at))

    def label(self) -> Label:
        """Make a label that stands nowhere yet."""
        self._places.append(-1)
        return Label(len(self._places) - 1)

    def place(self, label: Label) -> None:
        """Let a label stand before the next instruction."""
        self._places[label.number] = len(self._instructions)

    def slot(self) -> int:
        """Take a local variable. None is taken twice, so that each keeps one type of value."""
        self._slots += 1
        return self._slots - 1

    def finish(self) -> tuple[Expression, tuple[int, ...]]:
        """Return the code with its labels resolved, and the offset of each instruction."""
        return Expression(tuple(self._resolved(i) for i in self._instructions), self._slots), tuple(self._offsets)

    def _resolved(self, instruction: Instruction) -> Instruction:
        if Operand.TARGET not in instruction.opcode.operands:
            return instruction
        operands = tuple(self._places[o.number] if isinstance(o, Label) else o for o in instruction.operands)
        return Instruction(instruction.opcode, operands)
