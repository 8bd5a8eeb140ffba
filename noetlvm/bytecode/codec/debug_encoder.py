"""Writes the debug map. Addresses are not written: they follow from the code, in the order of `addresses`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noetlvm.bytecode.addresses import addresses
from noetlvm.bytecode.codec import layout, writer
from noetlvm.bytecode.codec.writer import EncodingError
from noetlvm.bytecode.limits import OPERAND_MAX
from noetlvm.bytecode.program import Mark

if TYPE_CHECKING:
    from noetlvm.bytecode.addresses import Address
    from noetlvm.bytecode.program import DebugEntry, DebugMap, Program


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
