"""Verified expression code to one Python function: the fast way to evaluate.

The function is made of source text, but nothing of a bundle ever becomes part of that text: constants, names and the
functions to call are bound to `k0`, `k1`, … and only those words, our own operations and small numbers are written.
Code is followed along its structure. Straight code, `and`, `or` and `… if … else …` become nested Python expressions,
`if` and `for` blocks become statements. Code without that structure is left to the interpreter; our compiler makes
almost none, but a bundle may be written by hand.

Every operation that can fail stands on a line of its own that ends in `#` and its instruction, so that an error's line
number leads back to the instruction at no cost.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import NoReturn

from noetlvm.bytecode.program import Expression
from noetlvm.expr import operations, values
from noetlvm.expr.calls import call_with_words, named
from noetlvm.expr.errors import PYTHON_ERRORS, ExpressionError, from_python
from noetlvm.expr.fuel import Fuel
from noetlvm.expr.interpret import Price, Scope, price
from noetlvm.expr.values import Data, Undefined
from noetlvm.record import Record, changed

NESTING_MAX = 16
"""How deep a Python expression may nest before a part of it gets a variable."""

LOOPS_MAX = 16
"""How deep for blocks may nest; Python allows twenty."""

MARGIN_MAX = 80
"""How deep blocks of all kinds may nest; Python allows a hundred."""

SHORT_TEXT = 4_096
"""Characters up to which a text may be made before it is paid for."""

SHORT = 64
"""Items of a list, or characters of a text, up to which Python compares at no cost to speak of; pieces of a text."""


def _is_short(value: object) -> bool:
    return len(value) <= SHORT if isinstance(value, str) else value is None or isinstance(value, (int, float))


class _UnstructuredError(Exception):
    """The code is no nest of blocks, or nests too deeply; the interpreter runs it."""


class _StatementNeededError(Exception):
    """The code at hand cannot be a Python expression."""


class _Entry(Record):
    """What lies on the stack, as Python text."""

    text: str
    depth: int = 0
    """How deep the text nests; 0 is a variable or constant, which may be written twice."""
    boolean: bool = False
    constant: object = _StatementNeededError
    """The value of a constant; else this class, which no constant can be."""
    slot: int | None = None
    """The local variable that it reads."""
    iterator: bool = False
    loop: str | None = None
    """For the value of `loop`: the iterator's variable."""
    chain: str | None = None
    """For `(a and b)`, `and`: so that a further operand nests no deeper."""

    @property
    def is_short(self) -> bool:
        """Tell whether it is a constant that anything can be compared with at once, or a short list of such."""
        if isinstance(self.constant, list):
            return len(self.constant) <= SHORT and all(_is_short(value) for value in self.constant)
        return _is_short(self.constant)


class _Text:
    """A text that is being collected."""

    __slots__ = ("is_list", "name", "pieces")

    def __init__(self, name: str) -> None:
        self.name = name
        self.pieces: list[tuple[str, str]] = []
        """Variables and constants, each with the text of its length."""
        self.is_list = False
        """The pieces are in a list of that name, for want of knowing them all."""


def translate(expression: Expression) -> Callable[[Scope, Fuel], Data] | None:
    """Return a function of a scope and fuel, or None if the code has no structure that Python has."""
    try:
        return _Translation(expression).function()
    except (_UnstructuredError, RecursionError):
        # A chain of a thousand branches nests as deep here; it runs rarely enough for the interpreter.
        return None


class _Translation:
    """The function under construction."""

    def __init__(self, expression: Expression) -> None:
        self._code = expression.code
        self._slots = expression.slots
        self._targets = {i.operands[0] for i in self._code if i.opcode.name in _BRANCHES}
        self._names: dict[str, object] = dict(_OPERATIONS)
        self._constants: dict[tuple[type, object], str] = {}
        self._namespaces: dict[str, str] = {}
        """Namespaces that are read more than once, each with the variable that holds it."""
        self._variables = 0
        self._lines: list[str] = []
        self._margin = 1
        self._pure = False
        self._texts: list[_Text] = []
        self._headers: list[tuple[int, list[_Entry]]] = []
        self.stack: list[_Entry] = []

    def function(self) -> Callable[[Scope, Fuel], Data]:
        """Write the whole function and let Python compile it."""
        last = len(self._code) - 1
        self._begin()
        self._range(0, last)
        if self._code[last].opcode.name != "RETURN" or len(self.stack) != 1:
            raise _UnstructuredError
        self._line(f"return {self.stack[0].text}")
        return self._compiled()

    def _begin(self) -> None:
        for slot in range(self._slots):
            self._line(f"v{slot} = {self.constant(Undefined('a variable that was not set'))}")
        self._pay(0, price(self._code))
        read = Counter(str(i.operands[0]) for i in self._code if i.opcode.name == "NAME")
        for name in (name for name, count in read.items() if count > 1):
            self._namespaces[name] = self.variable()
            self._line(f"{self._namespaces[name]} = {self._read(name)}")

    def _read(self, name: str) -> str:
        return f"scope.get({self.constant(name)}, {self.constant(Undefined(name))})"

    def _compiled(self) -> Callable[[Scope, Fuel], Data]:
        body = "\n".join(self._lines)
        source = f"def evaluate(scope, fuel):\n try:\n{body}\n except errors as error:\n  failed(error)\n"
        marks = [re.search(r"#(\d+)$", line) for line in source.split("\n")]
        places = [int(mark[1]) if mark else None for mark in marks]

        def failed(error: Exception) -> NoReturn:
            raise from_python(error, _place(error.__traceback__, places)) from None

        namespace = self._names | {"failed": failed}
        # The text holds only our own words: see the module's docstring. It was made from verified code.
        exec(compile(source, "<expression>", "exec"), namespace)
        return namespace["evaluate"]  # type: ignore[return-value]

    # ---- writing

    def _line(self, text: str) -> None:
        if self._pure:
            raise _StatementNeededError
        self._lines.append(" " * (self._margin + 1) + text)

    def variable(self) -> str:
        self._variables += 1
        return f"t{self._variables}"

    def constant(self, value: object) -> str:
        """Return the word that a value is bound to."""
        key = (type(value), value if isinstance(value, (str, int)) else id(value))
        if key not in self._constants:
            self._constants[key] = f"k{len(self._constants)}"
            self._names[self._constants[key]] = value
        return self._constants[key]

    def push(self, text: str, *parts: _Entry, boolean: bool = False) -> None:
        """Push an expression made of parts; one that nests too deeply goes into a variable first."""
        depth = 1 + max((part.depth for part in parts), default=0)
        self.stack.append(_Entry(text, depth, boolean))
        if depth > NESTING_MAX:
            self.settle()

    def call(self, at: int, function: str, *arguments: str | _Entry, boolean: bool = False) -> None:
        """Push the call of an operation that may fail."""
        self.push(_call_text(at, function, *arguments), *_entries(arguments), boolean=boolean)

    def pop(self) -> _Entry:
        if not self.stack or self.stack[-1].iterator:
            raise _UnstructuredError
        return self.stack.pop()

    def pop_many(self, count: int) -> list[_Entry]:
        return [self.pop() for _ in range(count)][::-1]

    def settle(self) -> None:
        """Evaluate everything on the stack, in order, into variables."""
        for index, entry in enumerate(self.stack):
            if entry.depth:
                name = self.variable()
                self._line(f"{name} = {entry.text}")
                self.stack[index] = _Entry(name, boolean=entry.boolean)

    def _pay(self, at: int, cost: Price) -> None:
        self._line(f"fuel.steps -= {cost.steps}")
        if cost.bytes:
            self._line(f"fuel.bytes -= {cost.bytes}")
        self._line(f"if fuel.steps < 0{' or fuel.bytes < 0' if cost.bytes else ''}: fuel.run_out()  #{at}")

    # ---- following the code

    def _range(self, start: int, end: int) -> None:
        at = start
        while at < end:
            instruction = self._code[at]
            branch = _BRANCHES.get(instruction.opcode.name)
            if branch:
                at = branch(self, at, end, *instruction.operands)
            else:
                _STRAIGHT[instruction.opcode.name](self, at, *instruction.operands)
                at += 1

    def is_read(self, at: int) -> bool:
        """Tell whether an instruction takes data: what a name holds or a field of it, whichever way it was reached."""
        first = at - 1
        while self._code[first].opcode.name == "ATTR":
            first -= 1
        read = self._code[first]
        # After a crash, secrets in `_prev` are undefined.
        is_data = read.opcode.name in ("NAME", "BARE") and read.operands[0] != "_prev"
        return is_data and self._targets.isdisjoint(range(first + 1, at + 1))

    def jump(self, at: int, end: int, target: int) -> int:
        """A jump that no block accounts for can only begin the next round."""
        if at != end - 1:
            raise _UnstructuredError
        self._continue(target)
        return end

    def _continue(self, target: int) -> None:
        if not self._headers or self._headers[-1] != (target, self.stack):
            raise _UnstructuredError
        self._line("continue")

    def branch(self, at: int, end: int, target: int, *, wanted: bool, keep: bool) -> int:
        """Follow a branch to where both ways meet; return that place."""
        condition = self.pop()
        if target <= at:
            if keep:
                raise _UnstructuredError
            return self._next_round(at, condition, target, wanted)
        # The code between is run if the branch is not taken.
        stop, meet = self._sides(at, target)
        if max(target, meet) > end:
            raise _UnstructuredError
        before = list(self.stack)
        try:
            self._as_expression(condition, (at + 1, stop), (target, meet), wanted, keep)
        except _StatementNeededError:
            if self._pure:
                raise
            self.stack = before
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

    def _next_round(self, at: int, condition: _Entry, target: int, wanted: bool) -> int:
        self.stack.append(condition)
        self.settle()
        settled = self.stack.pop()
        self._line(f"if {'' if wanted else 'not '}{settled.text}:")
        self._margin += 1
        self._continue(target)
        self._margin -= 1
        return at + 1

    def _as_expression(
        self, condition: _Entry, first: tuple[int, int], second: tuple[int, int], wanted: bool, keep: bool
    ) -> None:
        """Make one Python expression of both sides, if each does nothing but push a value."""
        pure, self._pure = self._pure, True
        below = list(self.stack)
        try:
            self._range(*first)
            one = self._pushed(below)
            self.stack = [*below, condition] if keep else list(below)
            self._range(*second)
            other = self._pushed(below)
        finally:
            self._pure = pure
        self.stack = below
        if keep and other is not condition:
            raise _StatementNeededError
        if keep:
            self._chain("or" if wanted else "and", condition, one)
            return
        yes, no = (other, one) if wanted else (one, other)
        text = f"({yes.text} if {condition.text} else {no.text})"
        self.push(text, condition, one, other, boolean=one.boolean and other.boolean)

    def _chain(self, word: str, first: _Entry, rest: _Entry) -> None:
        """Push `first and rest`; what is a chain already takes one more operand."""
        text = rest.text[1:-1] if rest.chain == word else rest.text
        depth = max(first.depth + 1, rest.depth + (rest.chain != word))
        self.push(f"({first.text} {word} {text})", changed(rest, depth=depth - 1))
        self.stack[-1] = changed(self.stack[-1], chain=word, boolean=first.boolean and rest.boolean)

    def _pushed(self, below: list[_Entry]) -> _Entry:
        if len(self.stack) != len(below) + 1 or self.stack[:-1] != below or self.stack[-1].iterator:
            raise _StatementNeededError
        return self.stack[-1]

    def _as_statement(
        self, condition: _Entry, first: tuple[int, int], second: tuple[int, int], wanted: bool, keep: bool
    ) -> None:
        self._collect()
        self.stack.append(condition)
        self.settle()
        condition = self.stack.pop()
        below = list(self.stack)
        one, after_one = self._side(first, below)
        other, after_other = self._side(second, [*below, condition] if keep else below)
        if len(after_one) != len(after_other):
            raise _UnstructuredError
        self._meet(one, after_one, other, after_other)
        self._line(f"if {'not ' if wanted else ''}{condition.text}:")
        self._lines += one or [" " * (self._margin + 2) + "pass"]
        if other:
            self._line("else:")
            self._lines += other

    def _side(self, bounds: tuple[int, int], stack: list[_Entry]) -> tuple[list[str], list[_Entry]]:
        """Return the lines of one side and the stack after it."""
        self._enter()
        lines, self._lines = self._lines, []
        self.stack = list(stack)
        self._range(*bounds)
        self.settle()
        made, self._lines = self._lines, lines
        self._margin -= 1
        return made, self.stack

    def _meet(self, one: list[str], after_one: list[_Entry], other: list[str], after_other: list[_Entry]) -> None:
        """Let both sides leave what they differ in in the same variables."""
        margin = " " * (self._margin + 2)
        self.stack = []
        for left, right in zip(after_one, after_other, strict=True):
            if left == right:
                self.stack.append(left)
                continue
            if left.iterator or right.iterator:
                raise _UnstructuredError
            name = self.variable()
            one.append(f"{margin}{name} = {left.text}")
            other.append(f"{margin}{name} = {right.text}")
            self.stack.append(_Entry(name, boolean=left.boolean and right.boolean))

    def _enter(self) -> None:
        self._margin += 1
        if self._margin > MARGIN_MAX or len(self._headers) > LOOPS_MAX:
            raise _UnstructuredError

    def rounds(self, at: int, end: int, target: int) -> int:
        """Write a for block: from its NEXT to the jump back before the target."""
        back = self._code[target - 1]
        if not at < target <= end or back.opcode.name != "JUMP" or back.operands[0] != at:
            raise _UnstructuredError
        self._collect()
        self.settle()
        iterator = self.stack[-1]
        if not iterator.iterator:
            raise _UnstructuredError
        below = list(self.stack)
        name = self.variable()
        self._line(f"for {iterator.text}.index0, {name} in enumerate({iterator.text}.items):")
        self._enter()
        self._pay(at, price(self._code[at:target]))
        self.stack.append(_Entry(name))
        self._headers.append((at, below))
        self._range(at + 1, target - 1)
        self.settle()
        if self.stack != below:
            raise _UnstructuredError
        self._headers.pop()
        self._margin -= 1
        self.stack.pop()
        self.push(f"(len({iterator.text}.items) > 0)", boolean=True)
        return target

    # ---- instructions with a way of their own

    def const(self, _at: int, value: object) -> None:
        self.stack.append(_Entry(self.constant(value), boolean=isinstance(value, bool), constant=value))

    def name(self, _at: int, name: str) -> None:
        if name in self._namespaces:
            self.stack.append(_Entry(self._namespaces[name]))
        else:
            self.push(self._read(name))

    def local(self, _at: int, slot: int) -> None:
        self.stack.append(_Entry(f"v{slot}", slot=slot))

    def store(self, _at: int, slot: int) -> None:
        # What was read of this variable, but not used yet, must be read before it changes.
        self.stack = [changed(entry, depth=1, slot=None) if entry.slot == slot else entry for entry in self.stack]
        self.settle()
        self._line(f"v{slot} = {self.pop().text}")

    def loop(self, _at: int, depth: int) -> None:
        iterators = [entry for entry in self.stack if entry.iterator]
        if depth >= len(iterators):
            raise _UnstructuredError
        name = iterators[-1 - depth].text
        self.stack.append(_Entry(f"loop_fields({name})", 1, loop=name))

    def attribute(self, _at: int, name: str) -> None:
        value = self.pop()
        key, missing = self.constant(name), self.constant(Undefined(name))
        if value.loop and name in _LOOP_FIELDS:
            self.push(_LOOP_FIELDS[name].format(loop=value.loop))
            return
        # Nearly every field is one of a mapping; the rest is left to the operation.
        held, asked = self._asked(value)
        self.push(f"({held}.get({key}, {missing}) if type({asked}) is dict else attr({held}, {key}))", value)

    def _asked(self, value: _Entry) -> tuple[str, str]:
        """Return a value's variable, and the text that gives it its value where it is asked for the first time."""
        if not value.depth:
            return value.text, value.text
        name = self.variable()
        return name, f"{name} := {value.text}"

    def arithmetic(self, at: int, opcode: str) -> None:
        """Add, subtract or multiply: whole numbers of a good length at once, the rest by the operation."""
        left, right = self.pop_many(2)
        (one, asked_one), (other, asked_other), result = self._asked(left), self._asked(right), self.variable()
        operation = _call_text(at, self.constant(operations.BINARY[opcode]), "fuel", one, other)
        # Both are evaluated before either is looked at, as on the stack.
        are_whole = f"(type({asked_one}) is int) & (type({asked_other}) is int)"
        is_short = f"shortest < ({result} := {one} {_ARITHMETIC[opcode]} {other}) < longest"
        self.push(f"({result} if {are_whole} and {is_short} else {operation})", left, right)

    def mapping(self, at: int, count: int) -> None:
        parts = self.pop_many(2 * count)
        if all(type(key.constant) is str for key in parts[::2]):
            pairs = ", ".join(f"{key.text}: {value.text}" for key, value in zip(parts[::2], parts[1::2], strict=True))
            self.push(f"{{{pairs}}}", *parts)
            return
        self.push(_call_text(at, "mapping", "fuel", _tuple(parts)), *parts)

    def compare(self, at: int, op: str) -> None:
        left, right = self.pop_many(2)
        if _is_cheap(op, left, right):
            self.push(f"({left.text} {_PYTHON_COMPARISONS[op]} {right.text})", left, right, boolean=True)
        else:
            self.call(at, self.constant(operations.COMPARE[op]), "fuel", left, right, boolean=True)

    def truth(self, _at: int) -> None:
        value = self.pop()
        if value.boolean:
            self.stack.append(value)
        else:
            self.push(f"guard({value.text})", value, boolean=True)

    def invoke(self, at: int, opcode: str, name: str, count: int, words: list[str], spread: int) -> None:
        arguments = self.pop_many(count + len(words) + (spread & 1) + (spread >> 1))
        value = self.pop() if opcode != "CALL" else _Entry("None")
        row = named(opcode, name)
        boolean = opcode == "TEST"
        if not words and not spread and row.signature.problem(count) is None:
            self.call(at, self.constant(row.function), "fuel", value, *arguments, boolean=boolean)
            return
        held = _call_text(
            at, "call", "fuel", self.constant(row), value, _tuple(arguments), self.constant(words), str(spread)
        )
        self.push(held, value, *arguments, boolean=boolean)

    def dup(self, _at: int) -> None:
        self.settle()
        value = self.pop()
        self.stack += (value, value)

    def rotate(self, _at: int) -> None:
        a, b, c = self.pop_many(3)
        self.stack += (a, b, c)
        self.settle()
        a, b, c = self.pop_many(3)
        self.stack += (c, a, b)

    def swap(self, _at: int) -> None:
        self.settle()
        a, b = self.pop_many(2)
        self.stack += (b, a)

    def drop(self, _at: int) -> None:
        self.settle()
        self.pop()

    def text_begin(self, _at: int) -> None:
        self._collect()
        self.settle()
        if self._pure:
            raise _StatementNeededError
        self._texts.append(_Text(self.variable()))

    def text_emit(self, at: int) -> None:
        value = self.pop()
        self.settle()
        held, asked = self._asked(value)
        piece = self.variable()
        converted = _call_text(at, "text", "fuel", held)
        self._line(f"{piece} = {held} if type({asked}) is str else {converted}")
        self._add(piece, f"len({piece})")

    def text_constant(self, _at: int, text: str) -> None:
        self.settle()
        if self._pure:
            raise _StatementNeededError
        self._add(self.constant(text), str(len(text)))

    def _add(self, piece: str, length: str) -> None:
        text = self._texts[-1]
        if text.is_list:
            self._line(f"{text.name}.append({piece})")
        else:
            text.pieces.append((piece, length))

    def _collect(self) -> None:
        """From here on, add the pieces of the open text to a list: a block may add any number of them."""
        if self._texts and not self._texts[-1].is_list:
            text = self._texts[-1]
            self._line(f"{text.name} = [{', '.join(piece for piece, _ in text.pieces)}]")
            text.is_list = True

    def text_end(self, at: int) -> None:
        self.settle()
        if self._pure:
            raise _StatementNeededError
        text = self._texts.pop()
        name = self.variable()
        if text.is_list or not 0 < len(text.pieces) <= SHORT:
            pieces = text.name if text.is_list else f"[{', '.join(piece for piece, _ in text.pieces)}]"
            self._line(f"{name} = {_call_text(at, 'joined', 'fuel', pieces)}")
        else:
            self._short_text(at, name, text.pieces)
        self.stack.append(_Entry(name))

    def _short_text(self, at: int, name: str, pieces: list[tuple[str, str]]) -> None:
        """Join pieces whose number is known: a short text at once, a long one by the operation."""
        length = self.variable()
        self._line(f"{length} = {' + '.join(size for _, size in pieces)}")
        listed = f"[{', '.join(piece for piece, _ in pieces)}]"
        self._line(f"if {length} > {SHORT_TEXT}: {name} = {_call_text(at, 'joined', 'fuel', listed)}")
        self._line("else:")
        margin = " "
        self._line(f"{margin}{name} = f'{''.join(f'{{{piece}}}' for piece, _ in pieces)}'")
        self._line(f"{margin}fuel.bytes -= {length} if {name}.isascii() else 4 * {length}")
        self._line(f"{margin}if fuel.bytes < 0: fuel.run_out()  #{at}")

    def iterate(self, at: int) -> None:
        value = self.pop()
        self.settle()
        name = self.variable()
        self._line(f"{name} = {_call_text(at, 'for_loop', 'fuel', value)}")
        self.stack.append(_Entry(name, iterator=True))

    def unpack(self, at: int, count: int) -> None:
        value = self.pop()
        self.settle()
        names = [self.variable() for _ in range(count)]
        self._line(f"[{', '.join(names)}] = {_call_text(at, 'unpack', 'fuel', value, str(count))}")
        self.stack += (_Entry(name) for name in reversed(names))


# ---- text


def _entries(arguments: tuple[str | _Entry, ...]) -> list[_Entry]:
    return [argument for argument in arguments if isinstance(argument, _Entry)]


def _call_text(at: int, function: str, *arguments: str | _Entry) -> str:
    texts = (argument.text if isinstance(argument, _Entry) else argument for argument in arguments)
    return f"{function}(#{at}\n{', '.join(texts)})"


def _tuple(parts: list[_Entry]) -> str:
    return f"({''.join(part.text + ', ' for part in parts)})"


def _is_cheap(op: str, left: _Entry, right: _Entry) -> bool:
    """Tell whether a comparison neither fails nor costs more than the instruction, so that Python may do it."""
    if op in ("==", "!="):
        return left.is_short or right.is_short
    return op in ("in", "not in") and isinstance(right.constant, list) and right.is_short


def _place(traceback: TracebackType | None, places: list[int | None]) -> int | None:
    """Return the instruction whose line the function stood on."""
    return places[traceback.tb_lineno - 1] if traceback else None


_PYTHON_COMPARISONS = {"==": "==", "!=": "!=", "in": "in", "not in": "not in"}

_ARITHMETIC = {"ADD": "+", "SUB": "-", "MUL": "*"}

_LOOP_FIELDS = {
    "index": "({loop}.index0 + 1)",
    "index0": "{loop}.index0",
    "first": "({loop}.index0 == 0)",
    "last": "({loop}.index0 + 1 == len({loop}.items))",
    "length": "len({loop}.items)",
}
"""Fields of `loop` that need no mapping of all of them."""

_OPERATIONS: dict[str, object] = {
    "__builtins__": {},
    "attr": operations.attr,
    "append": operations.append,
    "bare": operations.bare,
    "call": call_with_words,
    "concat": operations.concat,
    "cut": operations.cut,
    "dict": dict,
    "enumerate": enumerate,
    "errors": (*PYTHON_ERRORS, ExpressionError),
    "for_loop": operations.for_loop,
    "guard": values.guard,
    "int": int,
    "item": operations.item,
    "joined": operations.joined,
    "len": len,
    "longest": operations.INT_LIMIT,
    "loop_fields": operations.loop_fields,
    "mapping": operations.mapping,
    "negate": operations.negate,
    "positive": operations.positive,
    "require": operations.require,
    "require_whole": operations.require_whole,
    "shortest": -operations.INT_LIMIT,
    "str": str,
    "text": values.text,
    "type": type,
    "unpack": operations.unpack,
}
"""All that a translated function can name, besides its own constants."""


def _operation(function: str, count: int, *, fuel: bool = True) -> Callable[..., None]:
    """Return the writer of an instruction that pops so many values and calls an operation."""

    def write(translation: _Translation, at: int) -> None:
        parts = translation.pop_many(count)
        translation.call(at, function, *(["fuel"] if fuel else []), *parts)

    return write


def _binary(opcode: str) -> Callable[..., None]:
    function = operations.BINARY[opcode]

    def write(translation: _Translation, at: int) -> None:
        left, right = translation.pop_many(2)
        translation.call(at, translation.constant(function), "fuel", left, right)

    return write


def _arithmetic(opcode: str) -> Callable[..., None]:
    return lambda t, at: t.arithmetic(at, opcode)


def _not(t: _Translation, _at: int) -> None:
    value = t.pop()
    t.push(f"(not {value.text})", value, boolean=True)


def _built(brackets: str) -> Callable[..., None]:
    def write(t: _Translation, _at: int, count: int) -> None:
        parts = t.pop_many(count)
        t.push(f"[{', '.join(part.text for part in parts)}]" if brackets == "[]" else _tuple(parts), *parts)

    return write


def _concat(t: _Translation, at: int, count: int) -> None:
    parts = t.pop_many(count)
    t.push(_call_text(at, "concat", "fuel", _tuple(parts)), *parts)


def _require(t: _Translation, at: int, field: str) -> None:
    value = t.pop()
    t.call(at, "require" if t.is_read(at) else "require_whole", value, t.constant(field))


def _call(opcode: str) -> Callable[..., None]:
    return lambda t, at, *operands: t.invoke(at, opcode, *operands)


def _branch(wanted: bool, keep: bool) -> Callable[..., int]:
    return lambda t, at, end, target: t.branch(at, end, target, wanted=wanted, keep=keep)


_BRANCHES: dict[str, Callable[..., int]] = {
    "JUMP": _Translation.jump,
    "JUMP_IF": _branch(True, keep=False),
    "JUMP_UNLESS": _branch(False, keep=False),
    "KEEP_IF": _branch(True, keep=True),
    "KEEP_UNLESS": _branch(False, keep=True),
    "NEXT": _Translation.rounds,
}
"""Instructions that decide where to go on; each returns that place."""


def _stray_return(_t: _Translation, _at: int) -> None:
    raise _UnstructuredError


_STRAIGHT: dict[str, Callable[..., None]] = {
    "CONST": _Translation.const,
    "NAME": _Translation.name,
    "BARE": lambda t, at, name: t.call(at, "bare", "scope", t.constant(name)),
    "LOCAL": _Translation.local,
    "STORE": _Translation.store,
    "LOOP": _Translation.loop,
    "UNDEFINED": lambda t, at, name: t.stack.append(_Entry(t.constant(Undefined(name)))),
    "ATTR": _Translation.attribute,
    "ITEM": _operation("item", 2),
    "SLICE": _operation("cut", 4),
    "LIST": _built("[]"),
    "TUPLE": _built("()"),
    "MAP": _Translation.mapping,
    "APPEND": _operation("append", 2),
    "FILTER": _call("FILTER"),
    "TEST": _call("TEST"),
    "CALL": _call("CALL"),
    "METHOD": _call("METHOD"),
    "NOT": _not,
    "NEG": _operation("negate", 1, fuel=False),
    "POS": _operation("positive", 1, fuel=False),
    **{opcode: _binary(opcode) for opcode in operations.BINARY if opcode not in _ARITHMETIC},
    **{opcode: _arithmetic(opcode) for opcode in _ARITHMETIC},
    "CONCAT": _concat,
    "COMPARE": _Translation.compare,
    "TRUTH": _Translation.truth,
    "REQUIRE": _require,
    "DUP": _Translation.dup,
    "ROT3": _Translation.rotate,
    "SWAP": _Translation.swap,
    "POP": _Translation.drop,
    "RETURN": _stray_return,
    "TEXT_BEGIN": _Translation.text_begin,
    "EMIT": _Translation.text_emit,
    "EMIT_CONST": _Translation.text_constant,
    "TEXT_END": _Translation.text_end,
    "ITER": _Translation.iterate,
    "UNPACK": _Translation.unpack,
}
"""How each other instruction is written."""
