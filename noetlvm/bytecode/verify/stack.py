"""Operands as what they are, and how many values an instruction takes. The operands have been checked before."""

from __future__ import annotations

from noetlvm.bytecode.isa import Operand
from noetlvm.bytecode.program import Instruction


def count_taken(instruction: Instruction) -> int:
    """Return how many values an instruction takes: the table's number and one for each unit of its counts."""
    opcode = instruction.opcode
    return opcode.pops + sum(_units(instruction, index) * factor for index, factor in opcode.counts)


def _units(instruction: Instruction, index: int) -> int:
    operand = instruction.operands[index]
    if isinstance(operand, list):
        return len(operand)
    count = integer(instruction, index)
    return count.bit_count() if instruction.opcode.operands[index] is Operand.SPREAD else count


def integer(instruction: Instruction, index: int) -> int:
    """Return an operand that is a target, count or slot."""
    value = instruction.operands[index]
    assert isinstance(value, int)
    return value


def text(instruction: Instruction, index: int) -> str:
    """Return an operand that is a word."""
    value = instruction.operands[index]
    assert isinstance(value, str)
    return value
