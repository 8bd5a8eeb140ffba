"""Builds the code of one pipeline: instructions, labels, expressions as operands, and their sources.

Code is optimised at the end: jumps to jumps are threaded, and unreachable instructions are removed, because the
verifier requires every instruction to be reachable.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from noetlc.codegen.expressions import Lowered
from noetlc.codegen.stack_code import JumpLabel
from noetlvm.bytecode.isa import PIPELINE, ControlFlow, Opcode, OpcodeName, Operand
from noetlvm.bytecode.program import Instruction, Pipeline
from noetlvm.record import Record


class InstructionOrigin(NamedTuple):
    """The source of an instruction: its offset in the file, and the construct there."""

    offset: int
    construct: str


class LoweredPipeline(Record):
    """A pipeline, the sources of its instructions, and its expression operands."""

    pipeline: Pipeline
    origins: tuple[InstructionOrigin, ...]
    operands: tuple[tuple[int, int, Lowered], ...]
    """Instruction, operand, expression."""


class _Line(NamedTuple):
    """An instruction whose targets are still labels."""

    opcode: Opcode
    operands: tuple[object, ...]
    origin: InstructionOrigin
    labels: tuple[JumpLabel, ...]
    """The labels with its address."""

    @property
    def target(self) -> JumpLabel | None:
        if self.opcode.flow in (ControlFlow.NEXT, ControlFlow.END):
            return None
        return next(operand for operand in self.operands if isinstance(operand, JumpLabel))

    @property
    def is_goto(self) -> bool:
        return self.opcode.name == "GOTO"


class PipelineCode:
    """Code under construction."""

    def __init__(self) -> None:
        self._lines: list[_Line] = []
        self._waiting: list[JumpLabel] = []
        self._labels = 0
        self._counters: dict[str, int] = {}

    def emit(self, name: OpcodeName, *operands: object, origin: InstructionOrigin) -> None:
        """Add an instruction. An expression is given as `Lowered`, a target as `JumpLabel`."""
        self._lines.append(_Line(PIPELINE[name], operands, origin, tuple(self._waiting)))
        self._waiting.clear()

    def label(self) -> JumpLabel:
        """Make a label without an address."""
        self._labels += 1
        return JumpLabel(self._labels - 1)

    def place(self, label: JumpLabel) -> None:
        """Give a label the address of the next instruction; there must be one."""
        self._waiting.append(label)

    def counter(self, name: str) -> int:
        """Return the round counter of that name."""
        return self._counters.setdefault(name, len(self._counters))

    def finish(self) -> LoweredPipeline:
        """Return the optimised code with its labels resolved."""
        lines = _optimised(self._lines)
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


def _operands(line: _Line, places: dict[JumpLabel, int]) -> Iterator[object]:
    for operand in line.operands:
        if isinstance(operand, JumpLabel):
            yield places[operand]
        elif isinstance(operand, Lowered):
            yield operand.expression
        else:
            yield operand


def _optimised(lines: list[_Line]) -> list[_Line]:
    """Return the same code without jumps to jumps and unreachable instructions."""
    while any(line.is_goto for line in lines):
        shorter = _without_empty_jumps(_reachable(_threaded(lines)))
        if len(shorter) == len(lines):
            return shorter
        lines = shorter
    return _reachable(lines)


def _threaded(lines: list[_Line]) -> list[_Line]:
    """Jump threading: a jump to a GOTO becomes a jump to its target."""
    places = {label: line for line in lines for label in line.labels}

    def final(label: JumpLabel) -> JumpLabel:
        seen = {label}
        while places[label].is_goto:
            target = places[label].target
            if target is None or target in seen:
                return label  # an endless loop of jumps is not changed
            seen.add(target)
            label = target
        return label

    return [
        line._replace(operands=tuple(final(o) if isinstance(o, JumpLabel) else o for o in line.operands))
        for line in lines
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
        if line.opcode.flow in (ControlFlow.NEXT, ControlFlow.BRANCH):
            waiting.append(index + 1)
    return [line for index, line in enumerate(lines) if index in reached]


def _without_empty_jumps(lines: list[_Line]) -> list[_Line]:
    """Remove each GOTO to the instruction that follows it; that one gets its labels."""
    found: list[_Line] = []
    moved: tuple[JumpLabel, ...] = ()
    for line, following in zip(lines, [*lines[1:], None], strict=True):
        labels = moved + line.labels
        if following is not None and line.is_goto and line.target in following.labels:
            moved = labels
            continue
        found.append(line._replace(labels=labels))
        moved = ()
    return found
