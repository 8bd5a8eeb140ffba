"""Reads msgpack values one by one, from untrusted bytes.

A library would build everything first and return objects without offsets. This reader states the type it expects, so
that every refusal names a byte; it takes only the shortest form of each value, so that equal values have equal bytes;
and it counts what it makes before it makes it. It handles the values of the language, not programs.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Final, NoReturn

from noetlvm.bytecode.codec.malformed import MalformedCode
from noetlvm.bytecode.limits import (
    BIG_INTEGER_CHARS_MAX,
    COLLECTION_COST,
    DEPTH_MAX,
    MEMORY_BYTES_MAX,
    OPERAND_MAX,
    TEXT_BYTES_MAX,
    VALUE_COST,
)
from noetlvm.bytecode.program import MalformedBundleError, Value

BIG_INTEGER: Final = 1
"""The one extension type: an integer beyond 64 bits, as decimal digits."""

NAN_BITS: Final = 0x7FF8_0000_0000_0000

VARINT_BYTES_MAX: Final = 6
"""A number of more bytes is too large for any use."""

IN_CODE: Final = (MalformedCode.PADDED_OPERAND, MalformedCode.HUGE_OPERAND, MalformedCode.CUT_INSTRUCTION)
IN_FRAME: Final = (MalformedCode.PADDED_VALUE, MalformedCode.OUT_OF_RANGE, MalformedCode.TRUNCATED)
"""Codes for a LEB128 number that is padded, too large or cut off, by the kind of place it is in."""

# Kinds of value, named as an error message names them.
NULL, BOOLEAN, INTEGER, NEGATIVE, FLOAT = "null", "a boolean", "an integer", "a negative integer", "a float"
TEXT, BYTES, LIST, MAPPING, EXTENSION, FORBIDDEN = "text", "bytes", "a list", "a mapping", "an extension", "nothing"

_Head = tuple[str, int, int, int, int]
"""Kind, the number in the byte itself, how many bytes of number follow, and the least and greatest that fits there."""


def _heads() -> list[_Head]:
    heads: list[_Head] = [(FORBIDDEN, 0, 0, 0, 0)] * 256
    for first, count, kind in ((0x00, 128, INTEGER), (0x80, 16, MAPPING), (0x90, 16, LIST), (0xA0, 32, TEXT)):
        heads[first : first + count] = [(kind, number, 0, 0, 0) for number in range(count)]
    heads[0xE0:] = [(NEGATIVE, number, 0, 0, 0) for number in range(-32, 0)]
    heads[0xC0], heads[0xC2], heads[0xC3] = (NULL, 0, 0, 0, 0), (BOOLEAN, 0, 0, 0, 0), (BOOLEAN, 1, 0, 0, 0)
    heads[0xCB] = (FLOAT, 0, 8, 0, 2**64 - 1)
    # Each longer form is only for what the one before it cannot hold.
    for first, widths, kind, least in (
        (0xCC, (1, 2, 4, 8), INTEGER, 128),
        (0xC4, (1, 2, 4), BYTES, 0),
        (0xC7, (1, 2), EXTENSION, 0),
        (0xD9, (1, 2, 4), TEXT, 32),
        (0xDC, (2, 4), LIST, 16),
        (0xDE, (2, 4), MAPPING, 16),
    ):
        for byte, width in enumerate(widths, first):
            heads[byte] = (kind, 0, width, least, 256**width - 1)
            least = 256**width
    greatest = -33
    for byte, width in enumerate((1, 2, 4, 8), 0xD0):
        heads[byte] = (NEGATIVE, 0, width, -(256**width) // 2, greatest)
        greatest = -(256**width) // 2 - 1
    return heads


_HEADS: Final = _heads()


class ByteReader:
    """A place in a bundle, moving forwards. Each method reads one value and fails if it is of another type."""

    __slots__ = ("at", "data", "end", "memory", "section", "start")

    def __init__(self, data: bytes, section: str) -> None:
        self.data = data
        self.memory = MEMORY_BYTES_MAX
        self.open(section, 0, len(data))

    def open(self, section: str, start: int, end: int) -> None:
        """Go to a section: what follows is read from there, and errors count from its start."""
        self.section, self.start, self.at, self.end = section, start, start, end

    def close(self) -> None:
        """Refuse a section with bytes that are left over."""
        if self.at != self.end:
            self.fail(
                MalformedCode.LEFT_OVER, f"{self.end - self.at} bytes are left over; nothing may follow the last value"
            )

    def fail(self, fault: MalformedCode, reason: str, at: int | None = None) -> NoReturn:
        """Refuse the bundle on account of the byte at `at`."""
        raise MalformedBundleError(fault, self.section, (self.at if at is None else at) - self.start, reason)

    def spend(self, cost: int, what: str) -> None:
        """Count memory that is about to be used."""
        self.memory -= cost
        if self.memory < 0:
            self.fail(
                MalformedCode.TOO_MUCH, f"{what} would take more memory than the {MEMORY_BYTES_MAX} bytes a bundle may"
            )

    def array(self, what: str) -> int:
        """Read the head of a list: how many values follow."""
        return self._collection(self._expect(LIST, what), what, per_value=1)

    def record(self, what: str, fields: int) -> None:
        """Read the head of a list that has exactly this many values."""
        at = self.at
        count = self.array(what)
        if count != fields:
            self.fail(MalformedCode.WRONG_LENGTH, f"{what} has {fields} values, not {count}", at)

    def text(self, what: str) -> str:
        return self._text(self._expect(TEXT, what), 0)

    def flag(self, what: str) -> bool:
        return bool(self._expect(BOOLEAN, what))

    def number(self, what: str, greatest: int) -> int:
        """Read an integer from 0 to `greatest`."""
        at = self.at
        number = self._expect(INTEGER, what)
        if number > greatest:
            self.fail(MalformedCode.OUT_OF_RANGE, f"{what} is at most {greatest}, not {number}", at)
        return number

    def count(self, what: str) -> int:
        """Read a LEB128 number outside of code: how many there are of something, or which one it is."""
        at = self.at
        if at >= self.end:
            self.fail(MalformedCode.TRUNCATED, f"the bytes end where {what} should be")
        number = self.data[at]
        self.at = at + 1
        # Most are one byte.
        if number >= 0x80:
            number, self.at = self.varint(at, self.end, faults=IN_FRAME)
        return number

    def block(self, what: str) -> tuple[int, int]:
        """Read a length and as many bytes: return where they start and end, without a copy."""
        length = self.count(what)
        start = self.at
        self.at = self._stop(length)
        return start, self.at

    def binary(self, what: str) -> tuple[int, int]:
        """Read bytes: return where they start and end, without a copy."""
        length = self._expect(BYTES, what)
        start = self.at
        self.at = self._stop(length)
        return start, self.at

    def mapping(self, what: str) -> dict[str, Value]:
        return self._mapping(self._expect(MAPPING, what), 0)

    def is_null(self) -> bool:
        """Read a null if there is one."""
        if self.at < self.end and self.data[self.at] == 0xC0:
            self.at += 1
            return True
        return False

    def value(self, depth: int = 0) -> Value:
        at = self.at
        kind, number = self._head()
        make = _MAKE.get(kind)
        if make is None:
            self.fail(MalformedCode.WRONG_TYPE, f"{kind} cannot be a value of a playbook", at)
        return make(self, number, depth)

    def varint(
        self,
        at: int,
        end: int,
        greatest: int = OPERAND_MAX,
        faults: tuple[MalformedCode, MalformedCode, MalformedCode] = IN_CODE,
    ) -> tuple[int, int]:
        """Read a LEB128 number; return it and where it ends."""
        padded, huge, cut = faults
        number, stop = 0, min(end, at + VARINT_BYTES_MAX)
        for place in range(at, stop):
            byte = self.data[place]
            number |= (byte & 0x7F) << 7 * (place - at)
            if byte < 0x80:
                if byte == 0 and place > at:
                    self.fail(padded, f"there is a shorter form for {number}", at)
                if number > greatest:
                    self.fail(huge, f"a number here is at most {greatest}, not {number}", at)
                return number, place + 1
        if stop == at + VARINT_BYTES_MAX:
            self.fail(huge, f"a number here is at most {greatest}", at)
        return self.fail(cut, "the bytes end before a number does", at)

    # -- heads

    def _head(self) -> tuple[str, int]:
        at = self.at
        if at >= self.end:
            self.fail(MalformedCode.TRUNCATED, "the bytes end where a value should begin")
        kind, number, width, least, greatest = _HEADS[self.data[at]]
        if width:
            stop = at + 1 + width
            if stop > self.end:
                self.fail(MalformedCode.TRUNCATED, f"the bytes end inside the head of {kind}", at)
            number = int.from_bytes(self.data[at + 1 : stop], "big", signed=kind is NEGATIVE)
            if not least <= number <= greatest:
                self.fail(MalformedCode.PADDED_VALUE, f"{kind} has a shorter form for {number}", at)
            self.at = stop
            return kind, number
        if kind is FORBIDDEN:
            self.fail(MalformedCode.FORBIDDEN_TYPE, f"the byte 0x{self.data[at]:02x} begins no value of a bundle")
        self.at = at + 1
        return kind, number

    def _expect(self, wanted: str, what: str) -> int:
        at = self.at
        kind, number = self._head()
        if kind is not wanted:
            self.fail(MalformedCode.WRONG_TYPE, f"{what} must be {wanted}, not {kind}", at)
        return number

    def _stop(self, length: int) -> int:
        stop = self.at + length
        if stop > self.end:
            self.fail(MalformedCode.TRUNCATED, f"{length} bytes should follow, but only {self.end - self.at} do")
        return stop

    # -- values, once their head is read

    def _collection(self, count: int, what: str, per_value: int, depth: int = 0) -> int:
        if depth >= DEPTH_MAX:
            self.fail(MalformedCode.TOO_DEEP, f"lists and mappings nest at most {DEPTH_MAX} deep")
        # Each value takes at least one byte, so a count above the bytes that are left is refused before memory is used.
        if count * per_value > self.end - self.at:
            self.fail(
                MalformedCode.TRUNCATED,
                f"{what} should have {count} values, but only {self.end - self.at} bytes follow",
            )
        self.memory -= COLLECTION_COST + count * per_value * VALUE_COST
        if self.memory < 0:
            self.spend(0, what)
        return count

    def _list(self, count: int, depth: int) -> Value:
        self._collection(count, "a list", per_value=1, depth=depth)
        return [self.value(depth + 1) for _ in range(count)] if count else []

    def _mapping(self, count: int, depth: int) -> dict[str, Value]:
        self._collection(count, "a mapping", per_value=2, depth=depth)
        result: dict[str, Value] = {}
        for _ in range(count):
            at = self.at
            key = self.text("the key of a mapping")
            if key in result:
                self.fail(MalformedCode.DUPLICATE_KEY, f"the key {key[:80]!r} is there twice", at)
            result[key] = self.value(depth + 1)
        return result

    def _text(self, length: int, _depth: int) -> str:
        if length > TEXT_BYTES_MAX:
            self.fail(MalformedCode.TOO_LONG, f"a text has at most {TEXT_BYTES_MAX} bytes, not {length}")
        start, stop = self.at, self._stop(length)
        raw = self.data[start:stop]
        # One wide character makes every character of a text four bytes.
        self.spend(length if raw.isascii() else 4 * length, "a text")
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            self.fail(MalformedCode.BAD_TEXT, f"the text is not UTF-8: {error.reason}", start + error.start)
        self.at = stop
        return text

    def _float(self, bits: int, _depth: int) -> float:
        number: float = struct.unpack(">d", bits.to_bytes(8, "big"))[0]
        if number == number:
            return number
        if bits != NAN_BITS:
            self.fail(MalformedCode.BAD_FLOAT, f"NaN has the bits 0x{NAN_BITS:x}, not 0x{bits:x}", self.at - 9)
        # The same object every time, so that values that hold it compare equal.
        return math.nan

    def _big_integer(self, length: int, _depth: int) -> int:
        start = self.at
        if length > BIG_INTEGER_CHARS_MAX:
            self.fail(
                MalformedCode.TOO_LONG, f"an integer has at most {BIG_INTEGER_CHARS_MAX} characters, not {length}"
            )
        stop = self._stop(1 + length)
        if self.data[start] != BIG_INTEGER:
            self.fail(MalformedCode.FORBIDDEN_TYPE, f"the extension type {self.data[start]} is unknown")
        digits = self.data[start + 1 : stop]
        try:
            number = int(digits)
        except ValueError:
            self.fail(MalformedCode.BAD_INTEGER, "a large integer is written in decimal digits", start + 1)
        if str(number).encode() != digits or -(2**63) <= number < 2**64:
            self.fail(
                MalformedCode.BAD_INTEGER, "an extension is for integers beyond 64 bits, in plain digits", start + 1
            )
        self.spend(length, "an integer")
        self.at = stop
        return number


_MAKE: Final[dict[str, Callable[[ByteReader, int, int], Value]]] = {
    NULL: lambda _reader, _number, _depth: None,
    BOOLEAN: lambda _reader, number, _depth: bool(number),
    INTEGER: lambda _reader, number, _depth: number,
    NEGATIVE: lambda _reader, number, _depth: number,
    FLOAT: ByteReader._float,
    TEXT: ByteReader._text,
    LIST: ByteReader._list,
    MAPPING: ByteReader._mapping,
    EXTENSION: ByteReader._big_integer,
}
