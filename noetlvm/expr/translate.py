"""Verified expression code to one Python function: the fast way to evaluate.

The function is made of source text, but nothing of a bundle ever becomes part of that text: constants, names and the
functions to call are bound to `k0`, `k1`, … and only those words, our own operations and small numbers are written.
Code is followed along its structure. Straight code, `and`, `or` and `… if … else …` become nested Python expressions,
`if` and `for` blocks become statements. Code without that structure is left to the interpreter; our compiler makes
almost none, but a bundle may come from the assembler.

Every operation that can fail stands on a line of its own that ends in `#` and its instruction, so that an error's line
number leads back to the instruction at no cost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from noetlvm.bytecode.isa import OpcodeName
from noetlvm.bytecode.program import ExpressionCode
from noetlvm.expr.errors import Fuel
from noetlvm.expr.interpret import Scope, price
from noetlvm.expr.translate_instructions import STRAIGHT, collect
from noetlvm.expr.translate_writer import StackEntry, StatementNeededError, UnstructuredError, Writer
from noetlvm.expr.values import Data, Undefined
from noetlvm.record import changed

LOOPS_MAX = 16
"""How deep for blocks may nest; Python allows twenty."""

MARGIN_MAX = 80
"""How deep blocks of all kinds may nest; Python allows a hundred."""


def translate(expression: ExpressionCode) -> Callable[[Scope, Fuel], Data] | None:
    """Return a function of a scope and fuel, or None if the code cannot be written as Python's blocks."""
    try:
        return _Translation(expression).function()
    except (UnstructuredError, RecursionError):
        # A chain of a thousand branches nests as deep here; it runs rarely enough for the interpreter.
        return None


class _Translation:
    """Follows the code along its blocks."""

    def __init__(self, expression: ExpressionCode) -> None:
        self._code = expression.code
        self._slots = expression.slots
        self._writer = Writer()
        self._headers: list[tuple[int, list[StackEntry]]] = []
        """The for blocks around: where each begins, and the stack there."""

    def function(self) -> Callable[[Scope, Fuel], Data]:
        """Write the whole function and let Python compile it."""
        last = len(self._code) - 1
        self._begin()
        self._range(0, last)
        if self._code[last].opcode.name != "RETURN" or len(self._writer.stack) != 1:
            raise UnstructuredError
        self._writer.line(f"return {self._writer.stack[0].text}")
        return self._writer.compiled()

    def _begin(self) -> None:
        for slot in range(self._slots):
            self._writer.line(f"v{slot} = {self._writer.constant(Undefined('a variable that was not set'))}")
        self._writer.pay(0, price(self._code))
        read = Counter(str(i.operands[0]) for i in self._code if i.opcode.name == "NAME")
        for name in (name for name, count in read.items() if count > 1):
            self._writer.namespaces[name] = self._writer.variable()
            self._writer.line(f"{self._writer.namespaces[name]} = {self._writer.read(name)}")

    # ---- following the code

    def _range(self, start: int, end: int) -> None:
        at = start
        while at < end:
            instruction = self._code[at]
            branch = BRANCHES.get(instruction.opcode.name)
            if branch:
                at = branch(self, at, end, *instruction.operands)
            else:
                STRAIGHT[instruction.opcode.name](self._writer, at, *instruction.operands)
                at += 1

    def jump(self, at: int, end: int, target: int) -> int:
        """A jump outside of any known block can only begin the next round of a for block."""
        if at != end - 1:
            raise UnstructuredError
        self._continue(target)
        return end

    def _continue(self, target: int) -> None:
        if not self._headers or self._headers[-1] != (target, self._writer.stack):
            raise UnstructuredError
        self._writer.line("continue")

    def branch(self, at: int, end: int, target: int, *, wanted: bool, keep: bool) -> int:
        """Follow a branch to where both ways meet; return that place."""
        condition = self._writer.pop()
        if target <= at:
            if keep:
                raise UnstructuredError
            return self._next_round(at, condition, target, wanted)
        # The code between is run if the branch is not taken.
        stop, meet = self._sides(at, target)
        if max(target, meet) > end:
            raise UnstructuredError
        before = list(self._writer.stack)
        try:
            self._as_expression(condition, (at + 1, stop), (target, meet), wanted, keep)
        except StatementNeededError:
            if self._writer.pure:
                raise
            self._writer.stack = before
            self._as_statement(condition, (at + 1, stop), (target, meet), wanted, keep)
        return meet

    def _sides(self, at: int, target: int) -> tuple[int, int]:
        """Return where the first side ends and where both meet: a side that ends in a jump ahead has a second side."""
        last = self._code[target - 1]
        if last.opcode.name == "JUMP" and target - 1 > at:
            meet = last.operands[0]
            assert isinstance(meet, int)
            if meet > target:
                return target - 1, meet
        return target, target

    def _next_round(self, at: int, condition: StackEntry, target: int, wanted: bool) -> int:
        self._writer.stack.append(condition)
        self._writer.settle()
        settled = self._writer.stack.pop()
        self._writer.line(f"if {'' if wanted else 'not '}{settled.text}:")
        self._writer.margin += 1
        self._continue(target)
        self._writer.margin -= 1
        return at + 1

    def _as_expression(
        self, condition: StackEntry, first: tuple[int, int], second: tuple[int, int], wanted: bool, keep: bool
    ) -> None:
        """Make one Python expression of both sides, if each does nothing but push a value."""
        pure, self._writer.pure = self._writer.pure, True
        below = list(self._writer.stack)
        try:
            self._range(*first)
            one = self._pushed(below)
            self._writer.stack = [*below, condition] if keep else list(below)
            self._range(*second)
            other = self._pushed(below)
        finally:
            self._writer.pure = pure
        self._writer.stack = below
        if keep and other is not condition:
            raise StatementNeededError
        if keep:
            self._chain("or" if wanted else "and", condition, one)
            return
        yes, no = (other, one) if wanted else (one, other)
        text = f"({yes.text} if {condition.text} else {no.text})"
        self._writer.push(text, condition, one, other, boolean=one.boolean and other.boolean)

    def _chain(self, word: str, first: StackEntry, rest: StackEntry) -> None:
        """Push `first and rest`; what is a chain already takes one more operand."""
        text = rest.text[1:-1] if rest.chain == word else rest.text
        depth = max(first.depth + 1, rest.depth + (rest.chain != word))
        self._writer.push(f"({first.text} {word} {text})", changed(rest, depth=depth - 1))
        self._writer.stack[-1] = changed(self._writer.stack[-1], chain=word, boolean=first.boolean and rest.boolean)

    def _pushed(self, below: list[StackEntry]) -> StackEntry:
        stack = self._writer.stack
        if len(stack) != len(below) + 1 or stack[:-1] != below or stack[-1].iterator:
            raise StatementNeededError
        return stack[-1]

    def _as_statement(
        self, condition: StackEntry, first: tuple[int, int], second: tuple[int, int], wanted: bool, keep: bool
    ) -> None:
        collect(self._writer)
        self._writer.stack.append(condition)
        self._writer.settle()
        condition = self._writer.stack.pop()
        below = list(self._writer.stack)
        one, after_one = self._side(first, below)
        other, after_other = self._side(second, [*below, condition] if keep else below)
        if len(after_one) != len(after_other):
            raise UnstructuredError
        self._meet(one, after_one, other, after_other)
        self._writer.line(f"if {'not ' if wanted else ''}{condition.text}:")
        self._writer.lines += one or [" " * (self._writer.margin + 2) + "pass"]
        if other:
            self._writer.line("else:")
            self._writer.lines += other

    def _side(self, bounds: tuple[int, int], stack: list[StackEntry]) -> tuple[list[str], list[StackEntry]]:
        """Return the lines of one side and the stack after it."""
        self._enter()
        lines, self._writer.lines = self._writer.lines, []
        self._writer.stack = list(stack)
        self._range(*bounds)
        self._writer.settle()
        made, self._writer.lines = self._writer.lines, lines
        self._writer.margin -= 1
        return made, self._writer.stack

    def _meet(
        self, one: list[str], after_one: list[StackEntry], other: list[str], after_other: list[StackEntry]
    ) -> None:
        """Assign the values in which both sides differ to the same variables."""
        margin = " " * (self._writer.margin + 2)
        self._writer.stack = []
        for left, right in zip(after_one, after_other, strict=True):
            if left == right:
                self._writer.stack.append(left)
                continue
            if left.iterator or right.iterator:
                raise UnstructuredError
            name = self._writer.variable()
            one.append(f"{margin}{name} = {left.text}")
            other.append(f"{margin}{name} = {right.text}")
            self._writer.stack.append(StackEntry(name, boolean=left.boolean and right.boolean))

    def _enter(self) -> None:
        self._writer.margin += 1
        if self._writer.margin > MARGIN_MAX or len(self._headers) > LOOPS_MAX:
            raise UnstructuredError

    def rounds(self, at: int, end: int, target: int) -> int:
        """Write a for block: from its NEXT to the jump back before the target."""
        back = self._code[target - 1]
        if not at < target <= end or back.opcode.name != "JUMP" or back.operands[0] != at:
            raise UnstructuredError
        collect(self._writer)
        self._writer.settle()
        iterator = self._writer.stack[-1]
        if not iterator.iterator:
            raise UnstructuredError
        below = list(self._writer.stack)
        name = self._writer.variable()
        self._writer.line(f"for {iterator.text}.index0, {name} in enumerate({iterator.text}.items):")
        self._enter()
        self._writer.pay(at, price(self._code[at:target]))
        self._writer.stack.append(StackEntry(name))
        self._headers.append((at, below))
        self._range(at + 1, target - 1)
        self._writer.settle()
        if self._writer.stack != below:
            raise UnstructuredError
        self._headers.pop()
        self._writer.margin -= 1
        self._writer.stack.pop()
        self._writer.push(f"(len({iterator.text}.items) > 0)", boolean=True)
        return target


def _branch(wanted: bool, keep: bool) -> Callable[..., int]:
    return lambda t, at, end, target: t.branch(at, end, target, wanted=wanted, keep=keep)


BRANCHES: dict[OpcodeName, Callable[..., int]] = {
    "JUMP": _Translation.jump,
    "JUMP_IF": _branch(True, keep=False),
    "JUMP_UNLESS": _branch(False, keep=False),
    "KEEP_IF": _branch(True, keep=True),
    "KEEP_UNLESS": _branch(False, keep=True),
    "NEXT": _Translation.rounds,
}
"""Instructions that branch; each returns the next instruction."""
