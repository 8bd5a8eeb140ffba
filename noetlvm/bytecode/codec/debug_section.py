"""Writes and reads the debug map.

It has no addresses of its own: they follow from the code, in the order of `addresses`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from noetlvm.bytecode.codec import layout, writer
from noetlvm.bytecode.codec.malformed import MalformedCode
from noetlvm.bytecode.codec.writer import EncodingError
from noetlvm.bytecode.limits import ADDRESS_COST, MARK_COST, NEW_MARK_COST, OPERAND_MAX
from noetlvm.bytecode.program import Address, DebugEntry, DebugMap, Mark, Program, addresses

if TYPE_CHECKING:
    from noetlvm.bytecode.codec.reader import ByteReader


_MOVE_MAX: Final = 8 * OPERAND_MAX + 7
"""The largest move: a signed number of lines, and two bits that mark it."""


def _signed(zigzag: int) -> int:
    return -(zigzag + 1 >> 1) if zigzag & 1 else zigzag >> 1


_ALONG: Final = [None if byte & 0x81 else _signed(byte >> 1) for byte in range(256)]
"""Columns that a one-byte mark moves, by its byte; None for a byte that begins a longer mark."""


def decode_debug(reader: ByteReader, program: Program) -> DebugMap:
    files = tuple(reader.text("the name of a file") for _ in range(reader.array("the list of files")))
    constructs = _constructs(reader)
    start, end = reader.binary("the marks")
    marks = _Marks(reader, start, end, len(files))
    entries: list[DebugEntry] = []
    used = 0
    for address in addresses(program):
        reader.spend(ADDRESS_COST + len(address.name) + MARK_COST * address.marks, "the debug map")
        at = marks.at
        number, marks.at = reader.varint(at, end)
        if number > used or number >= len(constructs):
            reader.fail(MalformedCode.CONSTRUCT_ORDER, f"the construct {number} is used where {used} is the next", at)
        used = max(used, number + 1)
        entries.append(DebugEntry(address.name, constructs[number], marks.read(address.marks)))
    if marks.at != end:
        reader.fail(MalformedCode.LEFT_OVER, f"{end - marks.at} bytes of marks belong to no code", marks.at)
    if used < len(constructs):
        reader.fail(MalformedCode.CONSTRUCT_UNUSED, f"the construct {used} is never used", start)
    return DebugMap(files, tuple(entries))


def _constructs(reader: ByteReader) -> list[str]:
    constructs: dict[str, None] = {}
    for _ in range(reader.array("the list of constructs")):
        at = reader.at
        construct = reader.text("a construct")
        if construct in constructs:
            reader.fail(MalformedCode.CONSTRUCT_TWICE, f"the construct {construct[:80]!r} is there before", at)
        constructs[construct] = None
    return list(constructs)


class _Marks:
    """Where the last mark was, and where the next is written."""

    def __init__(self, reader: ByteReader, at: int, end: int, files: int) -> None:
        self.reader = reader
        self.at = at
        self.end = end
        self.files = files
        self.last = Mark(0, 1, 1)

    def read(self, count: int) -> tuple[Mark, ...]:
        """Read this many marks. Most are one byte: they stay where the mark before was, or near it on its line."""
        data, end, at, last = self.reader.data, self.end, self.at, self.last
        result: list[Mark] = []
        for _ in range(count):
            columns = _ALONG[data[at]] if at < end and self.files else None
            if columns is None or last.column + columns < 1:
                self.at, self.last = at, last
                last = self._moved()
                at = self.at
            else:
                if columns:
                    self.reader.memory -= NEW_MARK_COST
                    last = Mark(last.file, last.line, last.column + columns)
                at += 1
            result.append(last)
        self.at, self.last = at, last
        return tuple(result)

    def _moved(self) -> Mark:
        reader, start, last = self.reader, self.at, self.last
        reader.spend(NEW_MARK_COST, "the debug map")
        move, self.at = reader.varint(start, self.end, _MOVE_MAX)
        if move & 1:
            file, line, column = self._far(move, start)
        else:
            file, line, column = last.file, last.line, last.column + _signed(move >> 1)
        if file >= self.files:
            reader.fail(MalformedCode.NO_SUCH_FILE, f"there is no file {file}: the debug map lists {self.files}", start)
        if not (1 <= line <= OPERAND_MAX and 1 <= column <= OPERAND_MAX):
            reader.fail(MalformedCode.NO_SUCH_PLACE, f"there is no line {line}, column {column}", start)
        return Mark(file, line, column)

    def _far(self, move: int, start: int) -> tuple[int, int, int]:
        """Read the rest of a move to another line or file."""
        file, line = self.last.file, self.last.line
        if move & 0b11 == layout.OTHER_FILE:
            file, line = move >> 2, self._number()
            stays = file == self.last.file
        else:
            line += _signed(move >> 2)
            stays = line == self.last.line
        if stays:
            self.reader.fail(
                MalformedCode.IDLE_MOVE, "a mark is written as a move to another line or file, and stays", start
            )
        return file, line, self._number()

    def _number(self) -> int:
        number, self.at = self.reader.varint(self.at, self.end)
        return number


def encode_debug(program: Program, debug: DebugMap) -> bytes:
    """Write the debug map of a program; it must have one entry for each address, in order."""
    places = list(addresses(program))
    if len(places) != len(debug.entries):
        raise EncodingError(f"the debug map has {len(debug.entries)} entries for {len(places)} addresses")
    constructs: dict[str, int] = {}
    result = bytearray()
    before = Mark(0, 1, 1)
    for place, entry in zip(places, debug.entries, strict=True):
        _check(place, entry, len(debug.files))
        writer.varint(result, constructs.setdefault(entry.construct, len(constructs)))
        for mark in entry.marks:
            _move(result, before, mark)
            before = mark
    files = writer.array([writer.text(file) for file in debug.files])
    return files + writer.array([writer.text(construct) for construct in constructs]) + writer.binary(bytes(result))


def _check(place: Address, entry: DebugEntry, files: int) -> None:
    if place.name != entry.address or place.marks != len(entry.marks):
        raise EncodingError(f"the debug map has {entry.address} of {len(entry.marks)} marks for {place.name}")
    for mark in entry.marks:
        if not (0 <= mark.file < files and 1 <= mark.line <= OPERAND_MAX and 1 <= mark.column <= OPERAND_MAX):
            raise EncodingError(f"the debug map has no place {mark} for {place.name}")


def _move(result: bytearray, before: Mark, mark: Mark) -> None:
    if mark.file != before.file:
        writer.varint(result, mark.file << 2 | layout.OTHER_FILE)
        writer.varint(result, mark.line)
        writer.varint(result, mark.column)
    elif mark.line != before.line:
        writer.varint(result, _zigzag(mark.line - before.line) << 2 | layout.OTHER_LINE)
        writer.varint(result, mark.column)
    else:
        writer.varint(result, _zigzag(mark.column - before.column) << 1)


def _zigzag(number: int) -> int:
    return number << 1 if number >= 0 else -number * 2 - 1
