"""Whether an instruction's operands are what the table says: number, kind, range, values taken from the stack."""

from __future__ import annotations

from collections.abc import Callable
from reprlib import repr as shown
from typing import TypeAlias

from noetlvm.bytecode.isa import BACKOFFS, COMPARISONS, NAMES, OPCODES, Area, Operand
from noetlvm.bytecode.limits import CODE_MAX, OPERAND_MAX, SLOTS_MAX
from noetlvm.bytecode.program import ExpressionCode, Instruction
from noetlvm.bytecode.verify.uses import CheckError


def check_sizes(code: tuple[Instruction, ...], slots: int) -> None:
    """Refuse code that is empty, too long, or wants too many slots."""
    if not code:
        raise CheckError("V007", 0, "at least an instruction that ends it is needed")
    if len(code) > CODE_MAX:
        raise CheckError("V008", CODE_MAX, f"{len(code)} instructions, at most {CODE_MAX} may be")
    if not 0 <= slots <= SLOTS_MAX:
        raise CheckError("V009", 0, f"{slots}, at most {SLOTS_MAX} may be")


def check_operands(instruction: Instruction, at: int, area: Area, length: int, slots: int) -> None:
    """Refuse an instruction that the table does not allow in code of this length with so many slots."""
    opcode, operands = instruction.opcode, instruction.operands
    if opcode.area is not area:
        raise CheckError("V001", at, f"{opcode.name} is one of the {opcode.area} machine")
    checks = _CHECKS[opcode.number]
    if len(operands) != len(checks):
        raise CheckError("V002", at, f"{opcode.name} takes {len(checks)}, not {len(operands)}")
    for kind, check, value in zip(opcode.operands, checks, operands, strict=True):
        code = check(value, length, slots)
        if code is not None:
            raise CheckError(code, at, f"{opcode.name} takes a {kind}, not {shown(value)}")


_Check: TypeAlias = Callable[[object, int, int], "str | None"]
"""From an operand, the length of its code and the number of its slots to what is wrong with it."""


def _any(_value: object, _length: int, _slots: int) -> str | None:
    return None


def _text(value: object, _length: int, _slots: int) -> str | None:
    return None if isinstance(value, str) else "V003"


def _words(value: object, _length: int, _slots: int) -> str | None:
    return None if isinstance(value, list) and all(isinstance(word, str) for word in value) else "V003"


def _expression(value: object, _length: int, _slots: int) -> str | None:
    return None if isinstance(value, ExpressionCode) else "V003"


def _optional_expression(value: object, _length: int, _slots: int) -> str | None:
    return None if value is None or isinstance(value, ExpressionCode) else "V003"


def _count(value: object, _length: int, _slots: int) -> str | None:
    return None if type(value) is int and 0 <= value <= OPERAND_MAX else "V003"


def _target(value: object, length: int, _slots: int) -> str | None:
    if type(value) is not int:
        return "V003"
    return None if 0 <= value < length else "V004"


def _slot(value: object, _length: int, slots: int) -> str | None:
    if type(value) is not int:
        return "V003"
    return None if 0 <= value < slots else "V005"


def _spread(value: object, _length: int, _slots: int) -> str | None:
    if type(value) is not int:
        return "V003"
    return None if 0 <= value <= 3 else "V006"


def _word_of(table: tuple[str, ...]) -> _Check:
    allowed = frozenset(table)

    def check(value: object, _length: int, _slots: int) -> str | None:
        if not isinstance(value, str):
            return "V003"
        return None if value in allowed else "V006"

    return check


_BY_KIND: dict[Operand, _Check] = {
    Operand.CONST: _any,
    Operand.TEXT: _text,
    Operand.WORDS: _words,
    Operand.EXPR: _expression,
    Operand.OPTIONAL_EXPR: _optional_expression,
    Operand.TARGET: _target,
    Operand.COUNT: _count,
    Operand.SLOT: _slot,
    Operand.NAME: _word_of(NAMES),
    Operand.COMPARISON: _word_of(COMPARISONS),
    Operand.BACKOFF: _word_of(BACKOFFS),
    Operand.SPREAD: _spread,
    # Which of these exist is a question of calls, not of operands.
    Operand.FILTER: _text,
    Operand.TEST: _text,
    Operand.FUNCTION: _text,
    Operand.METHOD: _text,
}

_CHECKS: dict[int, tuple[_Check, ...]] = {
    opcode.number: tuple(_BY_KIND[kind] for kind in opcode.operands) for opcode in OPCODES
}


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
