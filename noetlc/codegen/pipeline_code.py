"""Builds the code of one pipeline: instructions, labels, expressions as operands, and where each was written.

Code is written down plainly and tidied at the end: jumps to jumps go straight to where they lead, and what nothing
reaches is left out, because the verifier wants every instruction to be reachable.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from noetlc.codegen.expressions import Lowered
from noetlvm.bytecode.isa import PIPELINE, Flow, Opcode, Operand
from noetlvm.bytecode.program import Instruction, Pipeline
from noetlvm.record import Record


class Label(NamedTuple):
    """A place in the code that a jump may name before it is known."""

    number: int


class Origin(NamedTuple):
    """Where an instruction comes from: the offset in the file, and what the author wrote there."""

    offset: int
    construct: str


class LoweredPipeline(Record):
    """A pipeline, where its instructions come from, and where those of its operands do."""

    pipeline: Pipeline
    origins: tuple[Origin, ...]
    operands: tuple[tuple[int, int, Lowered], ...]
    """Instruction, operand, expression."""


class _Line(NamedTuple):
    """An instruction whose targets are still labels."""

    opcode: Opcode
    operands: tuple[object, ...]
    origin: Origin
    labels: tuple[Label, ...]
    """The labels that stand before it."""

    @property
    def target(self) -> Label | None:
        if self.opcode.flow in (Flow.NEXT, Flow.END):
            return None
        return next(operand for operand in self.operands if isinstance(operand, Label))

    @property
    def is_goto(self) -> bool:
        return self.opcode.name == "GOTO"


class PipelineCode:
    """Code under construction."""

    def __init__(self) -> None:
        self._lines: list[_Line] = []
        self._waiting: list[Label] = []
        self._labels = 0
        self._counters: dict[str, int] = {}

    def emit(self, name: str, *operands: object, origin: Origin) -> None:
        """Add an instruction. An expression is given as `Lowered`, a target as `Label`."""
        self._lines.append(_Line(PIPELINE[name], operands, origin, tuple(self._waiting)))
        self._waiting.clear()

    def label(self) -> Label:
        """Make a label that stands nowhere yet."""
        self._labels += 1
        return Label(self._labels - 1)

    def place(self, label: Label) -> None:
        """Let a label stand before the next instruction; there must be one."""
        self._waiting.append(label)

    def counter(self, name: str) -> int:
        """Return the round counter of that name."""
        return self._counters.setdefault(name, len(self._counters))

    def finish(self) -> LoweredPipeline:
        """Return the tidied code with its labels resolved."""
        lines = _tidied(self._lines)
        places = {label: index for index, line in enumerate(lines) for label in line.labels}
        code = tuple(Instruction(line.opcode, tuple(_operands(line, places))) for line in lines)
        operands = tuple(
            (number, index, operand)
            for number, line in enumerate(lines)
            for index, operand in enumerate(line.operands)
            if isinstance(operand, Lowered)
        )
        pipeline = Pipeline(code, self._counters_in_use(lines))
        return LoweredPipeline(pipeline, tuple(line.origin for line in lines), operands)

    def _counters_in_use(self, lines: list[_Line]) -> int:
        used = [
            value
            for line in lines
            for kind, value in zip(line.opcode.operands, line.operands, strict=True)
            if kind is Operand.SLOT and isinstance(value, int)
        ]
        return max(used, default=-1) + 1


def _operands(line: _Line, places: dict[Label, int]) -> Iterator[object]:
    for operand in line.operands:
        if isinstance(operand, Label):
            yield places[operand]
        elif isinstance(operand, Lowered):
            yield operand.expression
        else:
            yield operand


def _tidied(lines: list[_Line]) -> list[_Line]:
    """Return the same code without detours and unreachable instructions."""
    while any(line.is_goto for line in lines):
        tidier = _without_empty_jumps(_reachable(_threaded(lines)))
        if len(tidier) == len(lines):
            return tidier
        lines = tidier
    return _reachable(lines)


def _threaded(lines: list[_Line]) -> list[_Line]:
    """Let whatever leads to a GOTO lead to where that goes."""
    places = {label: line for line in lines for label in line.labels}

    def final(label: Label) -> Label:
        seen = {label}
        while places[label].is_goto:
            target = places[label].target
            if target is None or target in seen:
                return label  # an endless loop of jumps stays one
            seen.add(target)
            label = target
        return label

    return [
        line._replace(operands=tuple(final(o) if isinstance(o, Label) else o for o in line.operands)) for line in lines
    ]


def _reachable(lines: list[_Line]) -> list[_Line]:
    places = {label: index for index, line in enumerate(lines) for label in line.labels}
    reached: set[int] = set()
    waiting = [0]
    while waiting:
        index = waiting.pop()
        if index in reached:
            continue
        reached.add(index)
        line = lines[index]
        if line.target is not None:
            waiting.append(places[line.target])
        if line.opcode.flow in (Flow.NEXT, Flow.BRANCH):
            waiting.append(index + 1)
    return [line for index, line in enumerate(lines) if index in reached]


def _without_empty_jumps(lines: list[_Line]) -> list[_Line]:
    """Leave out each GOTO to the instruction that follows it; its labels move on to that one."""
    kept: list[_Line] = []
    moved: tuple[Label, ...] = ()
    for line, following in zip(lines, [*lines[1:], None], strict=True):
        labels = moved + line.labels
        if following is not None and line.is_goto and line.target in following.labels:
            moved = labels
            continue
        kept.append(line._replace(labels=labels))
        moved = ()
    return kept
