"""Proves that a debug map covers its program: each address once, in order, with a mark for each instruction."""

from __future__ import annotations

from noetlvm.bytecode.addresses import addresses
from noetlvm.bytecode.program import DebugEntry, DebugMap, Program
from noetlvm.bytecode.verify.codes import CheckError
from noetlvm.bytecode.verify.names import first_repeated


def check_debug(program: Program, debug: DebugMap) -> None:
    """Refuse a debug map that does not belong to the program. Offsets count entries, those of files count files."""
    files = debug.files
    repeated = first_repeated(files)
    if repeated is not None:
        raise CheckError("V106", repeated, f"`{files[repeated]}`")
    count = 0
    for index, address in enumerate(addresses(program)):
        count += 1
        if index >= len(debug.entries):
            raise CheckError("V100", index, f"`{address.name}`")
        entry = debug.entries[index]
        if entry.address != address.name:
            raise CheckError("V102", index, f"`{entry.address}` instead of `{address.name}`")
        if len(entry.marks) != address.marks:
            raise CheckError("V103", index, f"`{entry.address}` has {len(entry.marks)}, not {address.marks}")
        _check_marks(entry, index, len(files))
    if len(debug.entries) > count:
        raise CheckError("V101", count, f"`{debug.entries[count].address}`")


def _check_marks(entry: DebugEntry, index: int, files: int) -> None:
    for mark in entry.marks:
        if not 0 <= mark.file < files:
            raise CheckError("V104", index, f"file {mark.file} of {files}, at `{entry.address}`")
        if mark.line < 1 or mark.column < 1:
            raise CheckError("V105", index, f"{mark.line}:{mark.column}, at `{entry.address}`")
