"""The debug map of a bundle: from an address, a label or a line to the position in the source, and back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from noetlvm.bytecode.isa import LABELLED
from noetlvm.bytecode.program import DebugEntry, DebugMap, Instruction, Mark, Program

_LINE = re.compile(r"(?:(?P<file>.+):)?(?P<line>[0-9]+)\Z")
_BLOCK = re.compile(r"(choose|while|until)_[0-9]+")


class SourcePosition(NamedTuple):
    """An address in the code and its position in the source."""

    address: str
    construct: str
    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.construct} ({self.address})"

    def to_json(self) -> dict[str, Any]:
        return self._asdict()


def find(program: Program, wanted: str) -> list[SourcePosition]:
    """Find an address, `step/label` or a label alone; or all code of a line: `etl.yaml:12`."""
    line = _LINE.match(wanted)
    if line is not None:
        return list(_of_line(program, line["file"], int(line["line"])))
    known = list(everything(program))
    exact = [one for one in known if one.address == wanted]
    return exact or [one for one in known if one.address.endswith(f"/{wanted}")]


def _of_line(program: Program, file: str | None, line: int) -> Iterator[SourcePosition]:
    """Yield the code that was written in a line, each address once."""
    debug = program.debug
    for entry in debug.entries if debug else ():
        for mark in entry.marks:
            if debug and mark.line == line and file in (None, debug.files[mark.file]):
                yield _position(entry.address, entry.construct, mark, debug)
                break


def everything(program: Program) -> Iterator[SourcePosition]:
    """Yield every address and every label, in the order of the code; nothing for a bundle without a debug map."""
    if program.debug is None:
        return
    pipelines = dict(_pipelines(program))
    constructs = {entry.address: entry.construct for entry in program.debug.entries}
    for entry in program.debug.entries:
        yield _position(entry.address, entry.construct, entry.marks[0], program.debug)
        if entry.address in pipelines:
            yield from _labels(entry, pipelines[entry.address], constructs, program.debug)


def _pipelines(program: Program) -> Iterator[tuple[str, tuple[Instruction, ...]]]:
    for index, playbook in enumerate(program.playbooks):
        prefix = f"{playbook.path}#" if index else ""
        for step in playbook.steps:
            if step.pipeline is not None:
                yield f"{prefix}{step.name}/tool", step.pipeline.code


def _labels(
    entry: DebugEntry, code: tuple[Instruction, ...], constructs: dict[str, str], debug: DebugMap
) -> Iterator[SourcePosition]:
    step = entry.address.removesuffix("/tool")
    for number, (instruction, mark) in enumerate(zip(code, entry.marks, strict=True)):
        if instruction.opcode.name in LABELLED:
            label = str(instruction.operands[0])
            construct = _construct(entry.address, number, code, constructs) or _of_label(label)
            yield _position(f"{step}/{label}", construct, mark, debug)


def _construct(address: str, number: int, code: tuple[Instruction, ...], constructs: dict[str, str]) -> str | None:
    """Return the construct of the first expression after a label; there may be none before the next label."""
    for at in range(number, len(code)):
        if at > number and code[at].opcode.name in LABELLED:
            return None
        for index in range(len(code[at].operands)):
            if f"{address}.{at}.{index}" in constructs:
                return constructs[f"{address}.{at}.{index}"]
    return None


def _of_label(label: str) -> str:
    """Return the block that a generated label was made for: it has the block's word in it."""
    words = _BLOCK.findall(label)
    return str(words[-1]) if words else f"task {label}"


def _position(address: str, construct: str, mark: Mark, debug: DebugMap) -> SourcePosition:
    return SourcePosition(address, construct, debug.files[mark.file], mark.line, mark.column)
