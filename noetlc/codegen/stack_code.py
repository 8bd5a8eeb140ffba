"""Builds the stack code of one expression: instructions, labels, local variables, and where each was written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from noetlvm.bytecode.isa import EXPRESSION, Operand
from noetlvm.bytecode.program import Expression, Instruction


class Label(NamedTuple):
    """A place in the code that a jump may name before it is known."""

    number: int


class Piece(NamedTuple):
    """Finished code that may become part of other code."""

    code: tuple[Instruction, ...]
    offsets: tuple[int, ...]
    """Where each instruction was written."""
    slots: int
    """How many local variables it uses."""
    is_movable: bool
    """It names neither targets nor slots, so it reads the same wherever it stands."""


class StackCode:
    """Code under construction."""

    def __init__(self) -> None:
        self._instructions: list[Instruction] = []
        self._offsets: list[int] = []
        self._places: list[int] = []
        self._slots = 0

    def emit(self, name: str, *operands: object, at: int) -> None:
        """Add an instruction that was written at the offset `at`."""
        self._instructions.append(Instruction(EXPRESSION[name], operands) if operands else _WITHOUT_OPERANDS[name])
        self._offsets.append(at)

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

    def splice(self, piece: Piece, offsets: Sequence[int]) -> None:
        """Add finished code; the offset of what it calls its offset n is `offsets[n]`."""
        self._offsets += [offsets[at] for at in piece.offsets]
        if piece.is_movable:
            self._instructions += piece.code
            return
        start, first_slot = len(self._instructions), self._slots
        self._instructions += [_moved(instruction, start, first_slot) for instruction in piece.code]
        self._slots += piece.slots

    def finish(self) -> Piece:
        """Return the code with its labels resolved."""
        code = tuple(self._resolved(instruction) for instruction in self._instructions)
        named = {kind for instruction in code for kind in instruction.opcode.operands}
        is_movable = not named & {Operand.TARGET, Operand.SLOT}
        return Piece(code, tuple(self._offsets), self._slots, is_movable)

    def _resolved(self, instruction: Instruction) -> Instruction:
        if not self._places or Operand.TARGET not in instruction.opcode.operands:
            return instruction
        operands = tuple(self._places[o.number] if isinstance(o, Label) else o for o in instruction.operands)
        return Instruction(instruction.opcode, operands)


_WITHOUT_OPERANDS = {name: Instruction(opcode) for name, opcode in EXPRESSION.items() if not opcode.operands}


def _moved(instruction: Instruction, start: int, first_slot: int) -> Instruction:
    """Return an instruction as it reads behind `start` others and `first_slot` local variables."""
    shifts = {Operand.TARGET: start, Operand.SLOT: first_slot}
    kinds = instruction.opcode.operands
    if not any(kind in shifts for kind in kinds):
        return instruction
    operands = tuple(
        value + shifts[kind] if kind in shifts and isinstance(value, int) else value
        for kind, value in zip(kinds, instruction.operands, strict=True)
    )
    return Instruction(instruction.opcode, operands)


def expression_of(piece: Piece) -> Expression:
    """Return finished code that ends in RETURN as an expression."""
    return Expression(piece.code, piece.slots)
