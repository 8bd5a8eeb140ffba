"""Reads the pools and the code of a bundle: bytes to instructions whose operands are resolved.

Equal instructions become one object, which saves most of the time and memory. What an operand names must exist, be of
the right type and come up in the order of first use; whether the code is sound is the verifier's business.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from noetlvm.bytecode.codec import layout
from noetlvm.bytecode.codec.malformed import MalformedCode
from noetlvm.bytecode.codec.reader import ByteReader
from noetlvm.bytecode.isa import BACKOFFS, BY_NUMBER, COMPARISONS, NAMES, OPCODES, Area, Operand
from noetlvm.bytecode.limits import (
    CODE_BYTES_MAX,
    CODE_COST,
    CONSTANT_COST,
    INSTRUCTION_COST,
    NEW_INSTRUCTION_COST,
    SLOTS_MAX,
)
from noetlvm.bytecode.program import ExpressionCode, Instruction, Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from noetlvm.bytecode.program import Value

_NUMBER: Final = rb"[\x80-\xff]{0,5}[\x00-\x7f]"


def _instruction_pattern(area: Area) -> re.Pattern[bytes]:
    """Return what an instruction of a machine looks like: an opcode, and as many numbers as it has operands."""
    by_count: dict[int, list[bytes]] = {}
    for opcode in OPCODES:
        if opcode.area is area:
            by_count.setdefault(len(opcode.operands), []).append(b"\\x%02x" % opcode.number)
    return re.compile(
        b"|".join(b"[%s]%s" % (b"".join(numbers), _NUMBER * count) for count, numbers in by_count.items())
    )


_INSTRUCTION: Final = {area: _instruction_pattern(area) for area in Area}


class _Piece(NamedTuple):
    """An expression or pipeline that was surveyed: how many slots it has, and where its instructions are."""

    slots: int
    at: int
    end: int


class Pools:
    """The constants and expressions of a bundle, how far they have been used, and the code that uses them."""

    def __init__(self, reader: ByteReader) -> None:
        self.reader = reader
        self.constants: list[Value] = []
        self.expressions: list[ExpressionCode] = []
        self._constants_used = 0
        self._expressions_used = 0
        self._word_lists: set[int] = set()
        self._words: set[bytes] = set()
        """The bytes of instructions that were surveyed."""
        self._known: dict[bytes, Instruction] = {}
        """Those that have become instructions."""

    # -- sections

    def read_constants(self) -> None:
        """Read the section of constants, each there once."""
        reader = self.reader
        seen: set[object] = set()
        while reader.at < reader.end:
            at = reader.at
            reader.spend(CONSTANT_COST, "a constant")
            value = reader.value()
            # Equal bytes are equal constants; a text stands for itself, which saves a copy.
            key = value if type(value) is str else reader.data[at : reader.at]
            if key in seen:
                reader.fail(MalformedCode.CONSTANT_TWICE, f"the constant {len(self.constants)} is there before", at)
            seen.add(key)
            self.constants.append(value)

    def read_expressions(self) -> None:
        """Read the section of expressions, each there once."""
        for slots, code in self._codes(Area.EXPRESSION):
            self.expressions.append(ExpressionCode(code, slots))

    def read_pipelines(self) -> list[Pipeline]:
        """Read the section of pipelines; those of two steps may be alike."""
        return [Pipeline(code, counters) for counters, code in self._codes(Area.PIPELINE)]

    def check_all_used(self) -> None:
        """Refuse a pool with an entry that no code uses."""
        if self._constants_used < len(self.constants):
            self.reader.fail(MalformedCode.CONSTANT_UNUSED, f"the constant {self._constants_used} is never used")
        if self._expressions_used < len(self.expressions):
            self.reader.fail(MalformedCode.EXPRESSION_UNUSED, f"the expression {self._expressions_used} is never used")

    # -- code

    def _codes(self, area: Area) -> Iterator[tuple[int, tuple[Instruction, ...]]]:
        """Read a section of code: first the memory that each piece will take, then the instructions."""
        reader = self.reader
        seen: set[bytes] = set()
        pieces: list[_Piece] = []
        while reader.at < reader.end:
            at = reader.at
            reader.spend(CODE_COST, "code")
            start, end = reader.binary("a code")
            if area is Area.EXPRESSION:
                key = reader.data[start:end]
                if key in seen:
                    reader.fail(MalformedCode.EXPRESSION_TWICE, f"the expression {len(pieces)} is there before", at)
                seen.add(key)
            pieces.append(self._surveyed(start, end, area))
        for piece in pieces:
            yield piece.slots, self._instructions(piece, area)

    def _surveyed(self, start: int, end: int, area: Area) -> _Piece:
        """Find out how many instructions there are, and how many new ones, at C's speed; spend the memory for them."""
        reader, words = self.reader, self._words
        if end - start > CODE_BYTES_MAX:
            reader.fail(MalformedCode.TOO_LONG, f"code has at most {CODE_BYTES_MAX} bytes, not {end - start}", start)
        # Charge as if each byte were an instruction; the surplus is refunded below.
        reader.spend((end - start) * INSTRUCTION_COST, "code")
        slots, at = reader.varint(start, end)
        if slots > SLOTS_MAX:
            reader.fail(MalformedCode.OUT_OF_RANGE, f"code has at most {SLOTS_MAX} slots, not {slots}", start)
        before = len(words)
        cut = self._cut(at, end, area)
        words.update(cut)
        reader.memory += (end - start - len(cut)) * INSTRUCTION_COST
        reader.spend((len(words) - before) * NEW_INSTRUCTION_COST, "code")
        return _Piece(slots, at, end)

    def _cut(self, at: int, end: int, area: Area) -> list[bytes]:
        words: list[bytes] = _INSTRUCTION[area].findall(self.reader.data, at, end)
        if sum(map(len, words)) != end - at:
            self._fail_where_it_breaks(at, end, area)
        return words

    def _instructions(self, piece: _Piece, area: Area) -> tuple[Instruction, ...]:
        # The hot spot of loading. Most instructions have occurred before, and then no Python loop runs here.
        words = self._cut(piece.at, piece.end, area)
        known, at, reached = self._known, piece.at, 0
        for word in dict.fromkeys(words):
            if word not in known:
                place = words.index(word, reached)
                at += sum(map(len, words[reached:place]))
                reached = place
                known[word] = self._new_instruction(at, piece.end)
        return tuple(map(known.__getitem__, words))

    def _new_instruction(self, at: int, end: int) -> Instruction:
        opcode = BY_NUMBER[self.reader.data[at]]
        operands: list[object] = []
        place = at + 1
        for kind in opcode.operands:
            number, stop = self.reader.varint(place, end)
            operands.append(_RESOLVE[kind](self, number, place))
            place = stop
        return Instruction(opcode, tuple(operands))

    def _fail_where_it_breaks(self, at: int, end: int, area: Area) -> NoReturn:
        """Say what is wrong with the first bytes that are no instruction."""
        reader, pattern = self.reader, _INSTRUCTION[area]
        while word := pattern.match(reader.data, at, end):
            at = word.end()
        opcode = BY_NUMBER.get(reader.data[at])
        if opcode is None:
            reader.fail(MalformedCode.UNKNOWN_OPCODE, f"no instruction has the number {reader.data[at]}", at)
        if opcode.area is not area:
            reader.fail(
                MalformedCode.WRONG_MACHINE, f"{opcode.name} is {opcode.area} code and stands in {area} code", at
            )
        place = at + 1
        while True:
            # One of the operands is cut off or too long, so that this call raises.
            _, place = reader.varint(place, end)

    # -- what a number stands for; `at` is where it is written

    def constant(self, number: int, at: int) -> Value:
        """Return a constant; one that was not used before must be the next."""
        if number >= self._constants_used:
            if number >= len(self.constants):
                self.reader.fail(MalformedCode.NO_SUCH_CONSTANT, f"there is no constant {number}", at)
            if number > self._constants_used:
                expected = self._constants_used
                self.reader.fail(MalformedCode.CONSTANT_ORDER, f"the constant {number} is used before {expected}", at)
            self._constants_used += 1
        return self.constants[number]

    def text(self, number: int, at: int) -> str:
        value = self.constant(number, at)
        if type(value) is not str:
            self.reader.fail(MalformedCode.CONSTANT_TYPE, f"the constant {number} must be a text here", at)
        return value

    def optional_text(self, number: int, at: int) -> str | None:
        """Return a constant that is a text, or none for 0."""
        return self.text(number - 1, at) if number else None

    def mapping(self, number: int, at: int) -> dict[str, Value]:
        value = self.constant(number, at)
        if type(value) is not dict:
            self.reader.fail(MalformedCode.CONSTANT_TYPE, f"the constant {number} must be a mapping here", at)
        return value

    def words(self, number: int, at: int) -> Value:
        """Return a constant that is a list of texts."""
        value = self.constant(number, at)
        if number not in self._word_lists:
            if type(value) is not list or not all(type(word) is str for word in value):
                self.reader.fail(MalformedCode.CONSTANT_TYPE, f"the constant {number} must be a list of texts here", at)
            self._word_lists.add(number)
        return value

    def expression(self, number: int, at: int) -> ExpressionCode:
        """Return an expression; one that was not used before must be the next."""
        if number >= self._expressions_used:
            if number >= len(self.expressions):
                self.reader.fail(MalformedCode.NO_SUCH_EXPRESSION, f"there is no expression {number}", at)
            if number > self._expressions_used:
                expected = self._expressions_used
                self.reader.fail(
                    MalformedCode.EXPRESSION_ORDER, f"the expression {number} is used before {expected}", at
                )
            self._expressions_used += 1
        return self.expressions[number]

    def optional_expression(self, number: int, at: int) -> ExpressionCode | None:
        """Return an expression, or none for 0."""
        return self.expression(number - 1, at) if number else None

    def limit(self, number: int, at: int) -> int | ExpressionCode:
        """Return a number, or the expression that gives it."""
        return self.expression(number >> 1, at) if number & 1 else number >> 1

    def _plain(self, number: int, at: int) -> int:
        return number

    def _spread(self, number: int, at: int) -> int:
        if number > layout.SPREAD_BITS:
            self.reader.fail(MalformedCode.NO_SUCH_WORD, f"a spread is at most {layout.SPREAD_BITS}, not {number}", at)
        return number


def _word_of(words: tuple[str, ...]) -> Callable[[Pools, int, int], str]:
    def word(pools: Pools, number: int, at: int) -> str:
        if number >= len(words):
            pools.reader.fail(MalformedCode.NO_SUCH_WORD, f"{number} stands for none of {', '.join(words)}", at)
        return words[number]

    return word


_RESOLVE: Final[dict[Operand, Callable[[Pools, int, int], object]]] = {
    Operand.CONST: Pools.constant,
    Operand.WORDS: Pools.words,
    Operand.EXPR: Pools.expression,
    Operand.OPTIONAL_EXPR: Pools.optional_expression,
    Operand.LIMIT: Pools.limit,
    Operand.NAME: _word_of(NAMES),
    Operand.COMPARISON: _word_of(COMPARISONS),
    Operand.BACKOFF: _word_of(BACKOFFS),
    Operand.SPREAD: Pools._spread,
    **dict.fromkeys((Operand.TEXT, Operand.FILTER, Operand.TEST, Operand.FUNCTION, Operand.METHOD), Pools.text),
    **dict.fromkeys((Operand.TARGET, Operand.COUNT, Operand.SLOT), Pools._plain),
}
"""What an operand's number becomes."""
