"""The addresses of a program: one for each piece of code, in one fixed order. The debug map follows it."""

from __future__ import annotations

from collections.abc import Iterator

from noetlvm.bytecode.isa import Operand
from noetlvm.bytecode.program import ExpressionCode, Instruction, Pipeline, PlaybookCode, Program, Transition
from noetlvm.record import Record


class Address(Record):
    """A place in a program."""

    name: str
    code: tuple[Instruction, ...]
    """The code at the address; empty for a step or an arc, which are places without code of their own."""

    @property
    def marks(self) -> int:
        """How many places in the source belong to it."""
        return len(self.code) or 1


def addresses(program: Program) -> Iterator[Address]:
    """Yield every address: steps in order, each with its gate, loops, arcs and pipeline."""
    for index, playbook in enumerate(program.playbooks):
        prefix = "" if index == 0 else f"{playbook.path}#"
        yield from _of_playbook(playbook, prefix)


def _of_playbook(playbook: PlaybookCode, prefix: str) -> Iterator[Address]:
    for step in playbook.steps:
        yield from _of_step(step, prefix + step.name)


def _of_step(step: Transition, name: str) -> Iterator[Address]:
    yield Address(name, ())
    yield from _expression(f"{name}/admit", step.admit)
    for level, loop in enumerate(step.loops, 1):
        yield from _expression(f"{name}/loop.{level}/in", loop.collection)
    for number, arc in enumerate(step.arcs, 1):
        yield Address(f"{name}/arc.{number}", ())
        yield from _expression(f"{name}/arc.{number}/when", arc.guard)
        yield from _expression(f"{name}/arc.{number}/args", arc.args)
    if step.pipeline:
        yield from _pipeline(f"{name}/tool", step.pipeline)


def _pipeline(name: str, pipeline: Pipeline) -> Iterator[Address]:
    yield Address(name, pipeline.code)
    for at, instruction in enumerate(pipeline.code):
        for index, (kind, value) in enumerate(zip(instruction.opcode.operands, instruction.operands, strict=True)):
            if kind in (Operand.EXPR, Operand.OPTIONAL_EXPR) and isinstance(value, ExpressionCode):
                yield Address(f"{name}.{at}.{index}", value.code)


def _expression(name: str, expression: ExpressionCode | None) -> Iterator[Address]:
    if expression is not None:
        yield Address(name, expression.code)
