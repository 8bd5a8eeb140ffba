"""Builds the stack code of one expression: instructions, labels, local variables, and their source offsets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from noetlc.analysis.names import FOR_LOOP
from noetlc.syntax import template_ast as t
from noetlc.syntax.span import Span
from noetlvm.bytecode.isa import EXPRESSION, OpcodeName, Operand
from noetlvm.bytecode.program import ExpressionCode, Instruction


class LoweringError(Exception):
    """A construct that has no code. Lint reports it first, so in a checked playbook it is a compiler bug."""

    def __init__(self, span: Span, message: str, help: str) -> None:
        super().__init__(message)
        self.span = span
        self.message = message
        self.help = help

    def moved_to(self, span: Span) -> LoweringError:
        """Return the same error at another place: a template's own offsets become the file's."""
        return LoweringError(span, self.message, self.help)


class JumpLabel(NamedTuple):
    """A jump target whose address may not be known yet."""

    number: int


class CodeBlock(NamedTuple):
    """Finished code, which other code may splice in."""

    code: tuple[Instruction, ...]
    offsets: tuple[int, ...]
    """The source offset of each instruction."""
    slots: int
    """Number of local variables."""
    is_movable: bool
    """It has neither jump targets nor slots, so it needs no relocation."""


class StackCode:
    def __init__(self) -> None:
        self._instructions: list[Instruction] = []
        self._offsets: list[int] = []
        self._places: list[int] = []
        self._slots = 0

    def emit(self, name: OpcodeName, *operands: object, at: int) -> None:
        """Add an instruction whose source is at the offset `at`."""
        self._instructions.append(Instruction(EXPRESSION[name], operands) if operands else _WITHOUT_OPERANDS[name])
        self._offsets.append(at)

    def label(self) -> JumpLabel:
        """Make a label without an address."""
        self._places.append(-1)
        return JumpLabel(len(self._places) - 1)

    def place(self, label: JumpLabel) -> None:
        """Give a label the address of the next instruction."""
        self._places[label.number] = len(self._instructions)

    def slot(self) -> int:
        """Allocate a local variable. None is reused, so each holds one type of value."""
        self._slots += 1
        return self._slots - 1

    def splice(self, piece: CodeBlock, offsets: Sequence[int]) -> None:
        """Add finished code; `offsets` maps its source offsets to those of this code."""
        self._offsets += [offsets[at] for at in piece.offsets]
        if piece.is_movable:
            self._instructions += piece.code
            return
        start, first_slot = len(self._instructions), self._slots
        self._instructions += [_moved(instruction, start, first_slot) for instruction in piece.code]
        self._slots += piece.slots

    def finish(self) -> CodeBlock:
        code = tuple(self._resolved(instruction) for instruction in self._instructions)
        named = {kind for instruction in code for kind in instruction.opcode.operands}
        is_movable = not named & {Operand.TARGET, Operand.SLOT}
        return CodeBlock(code, tuple(self._offsets), self._slots, is_movable)

    def _resolved(self, instruction: Instruction) -> Instruction:
        if not self._places or Operand.TARGET not in instruction.opcode.operands:
            return instruction
        operands = tuple(self._places[o.number] if isinstance(o, JumpLabel) else o for o in instruction.operands)
        return Instruction(instruction.opcode, operands)


_WITHOUT_OPERANDS = {name: Instruction(opcode) for name, opcode in EXPRESSION.items() if not opcode.operands}


def _moved(instruction: Instruction, start: int, first_slot: int) -> Instruction:
    """Relocate an instruction behind `start` others and `first_slot` local variables."""
    shifts = {Operand.TARGET: start, Operand.SLOT: first_slot}
    kinds = instruction.opcode.operands
    if not any(kind in shifts for kind in kinds):
        return instruction
    operands = tuple(
        value + shifts[kind] if kind in shifts and isinstance(value, int) else value
        for kind, value in zip(kinds, instruction.operands, strict=True)
    )
    return Instruction(instruction.opcode, operands)


def expression_of(piece: CodeBlock) -> ExpressionCode:
    return ExpressionCode(piece.code, piece.slots)


class Slot(NamedTuple):
    """A variable of the template."""

    number: int


class ForBlock(NamedTuple):
    """The `loop` of a `for` block: the number of iterators below its own on the stack."""

    height: int


class TemplateScope:
    __slots__ = ("assigned", "loop", "outer", "slots")

    def __init__(self, outer: TemplateScope | None, loop: ForBlock | None = None) -> None:
        self.outer = outer
        self.loop = loop
        self.slots: dict[str, int] = {}
        self.assigned: set[str] = set()
        """Names that are assigned on every path to the current position."""

    def find(self, name: str) -> Slot | ForBlock | None:
        """Return the binding of a name, or None if it comes from outside the template."""
        frame: TemplateScope | None = self
        while frame is not None:
            if frame.loop is not None and name == FOR_LOOP:
                return frame.loop
            if name in frame.assigned:
                return Slot(frame.slots[name])
            frame = frame.outer
        return None


Parts: TypeAlias = tuple[t.Part, ...]


def target_names(target: t.Expression) -> Iterator[str]:
    """Yield the names that an assignment binds, in order."""
    for node in t.walk(target):
        if isinstance(node, t.Name):
            yield node.name


def possibly_assigned(parts: Parts) -> dict[str, None]:
    """Return the names that parts may assign in their own scope, in order."""
    found: dict[str, None] = {}
    for part in parts:
        if isinstance(part, t.Set | t.SetBlock):
            found.update(dict.fromkeys(target_names(part.target)))
        elif isinstance(part, t.If):
            for body in bodies(part):
                found.update(possibly_assigned(body))
    return found


def surely_assigned(parts: Parts) -> frozenset[str]:
    """Return the names that parts assign on every path."""
    found: set[str] = set()
    for part in parts:
        if isinstance(part, t.Set | t.SetBlock):
            found.update(target_names(part.target))
        elif isinstance(part, t.If):
            found |= frozenset.intersection(*(surely_assigned(body) for body in bodies(part)))
    return frozenset(found)


def bodies(part: t.If) -> list[Parts]:
    """Return the bodies of an `if`, its `else` last, present or not."""
    return [*(branch.body for branch in part.branches), part.otherwise]
