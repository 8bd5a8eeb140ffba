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
        self._slots_in_use = 0
        self._slots = 0
        self.locate: Callable[[int], int] = _same
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
        """Take a local variable."""
        self._slots_in_use += 1
        self._slots = max(self._slots, self._slots_in_use)
        return self._slots_in_use - 1

    @property
    def slots_in_use(self) -> int:
        return self._slots_in_use

    def give_back(self, slots_in_use: int) -> None:
        """Return to an earlier number of local variables; what was stored in the others is never read again."""
        self._slots_in_use = slots_in_use

    def finish(self) -> tuple[Expression, tuple[int, ...]]:
        """Return the code with its labels resolved, and the offset of each instruction."""
        return Expression(tuple(self._resolved(i) for i in self._instructions), self._slots), tuple(self._offsets)

    def _resolved(self, instruction: Instruction) -> Instruction:
        if Operand.TARGET not in instruction.opcode.operands:
            return instruction
        operands = tuple(self._places[o.number] if isinstance(o, Label) else o for o in instruction.operands)
        return Instruction(instruction.opcode, operands)


def _same(offset: int) -> int:
    return offset
