"""Writes the Python function that an expression becomes: lines, variables, constants, and the stack as text.

Nothing of a bundle becomes part of the text: a value is bound to `k0`, `k1`, … and only that word is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from types import CodeType, TracebackType
from typing import NoReturn

from noetlvm.expr import operations, values
from noetlvm.expr.calls import call_with_words
from noetlvm.expr.errors import PYTHON_ERRORS, ExpressionError, Fuel, from_python
from noetlvm.expr.interpret import Price, Scope
from noetlvm.expr.values import Data, Undefined
from noetlvm.record import Record, changed

TEXTS_RECENT = 512
"""Compiled texts that are remembered: expressions that differ in their values only, as most guards do, share one."""
SHORT = 64
"""Items of a list, characters of a text or pieces of a text up to which a comparison is not charged."""


def _is_short(value: object) -> bool:
    return len(value) <= SHORT if isinstance(value, str) else value is None or isinstance(value, (int, float))


class UnstructuredError(Exception):
    """The code is not structured in blocks, or nests too deeply; the interpreter runs it."""


class StatementNeededError(Exception):
    """Code that cannot be written as one Python expression."""


class StackEntry(Record):
    """What lies on the stack, as Python text."""

    text: str
    depth: int = 0
    """How deep the text nests; 0 is a variable or constant, which may be written twice."""
    boolean: bool = False
    constant: object = StatementNeededError
    """The value of a constant; else this class, which no constant can be."""
    slot: int | None = None
    """The local variable that it reads."""
    iterator: bool = False
    loop: str | None = None
    """For the value of `loop`: the iterator's variable."""
    chain: str | None = None
    """For `(a and b)`, `and`: so that a further operand nests no deeper."""
    is_data: bool = False
    """It is the value of a name or of a field: it contains nothing undefined."""

    @property
    def is_short(self) -> bool:
        """Return whether it is a constant that anything can be compared with at once, or a short list of such."""
        if isinstance(self.constant, list):
            return len(self.constant) <= SHORT and all(_is_short(value) for value in self.constant)
        return _is_short(self.constant)


class Text:
    """A text that is being collected."""

    __slots__ = ("is_list", "name", "pieces")

    def __init__(self, name: str) -> None:
        self.name = name
        self.pieces: list[tuple[str, str]] = []
        """Variables and constants, each with the text of its length."""
        self.is_list = False
        """Pieces are appended to the list variable of this name, because their number is known only at run time."""


def entries_of(arguments: tuple[str | StackEntry, ...]) -> list[StackEntry]:
    return [argument for argument in arguments if isinstance(argument, StackEntry)]


def call_text(at: int, function: str, *arguments: str | StackEntry) -> str:
    """Return the call of an operation, its first line marked with the instruction."""
    texts = (argument.text if isinstance(argument, StackEntry) else argument for argument in arguments)
    return f"{function}(#{at}\n{', '.join(texts)})"


def tuple_text(parts: list[StackEntry]) -> str:
    return f"({''.join(part.text + ', ' for part in parts)})"


NESTING_MAX = 16
"""How deep a Python expression may nest before a part of it gets a variable."""

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


class Writer:
    """The function under construction: its lines, its names, and what lies on the stack."""

    def __init__(self) -> None:
        self._names: dict[str, object] = dict(_OPERATIONS)
        self._constants: dict[tuple[type, object], str] = {}
        self._variables = 0
        self.namespaces: dict[str, str] = {}
        """Namespaces that are read more than once, each with the variable that holds it."""
        self.lines: list[str] = []
        self.margin = 1
        self.pure = False
        """Only an expression may be written: no line."""
        self.texts: list[Text] = []
        """The texts that have been begun, the innermost last."""
        self.stack: list[StackEntry] = []

    def line(self, text: str) -> None:
        if self.pure:
            raise StatementNeededError
        self.lines.append(" " * (self.margin + 1) + text)

    def variable(self) -> str:
        self._variables += 1
        return f"t{self._variables}"

    def constant(self, value: object) -> str:
        key = (type(value), value if isinstance(value, (str, int)) else id(value))
        if key not in self._constants:
            self._constants[key] = f"k{len(self._constants)}"
            self._names[self._constants[key]] = value
        return self._constants[key]

    def push(self, text: str, *parts: StackEntry, boolean: bool = False) -> None:
        """Push an expression made of parts; one that nests too deeply goes into a variable first."""
        depth = 1 + max((part.depth for part in parts), default=0)
        self.stack.append(StackEntry(text, depth, boolean))
        if depth > NESTING_MAX:
            self.settle()

    def call(self, at: int, function: str, *arguments: str | StackEntry, boolean: bool = False) -> None:
        """Push the call of an operation that may fail."""
        self.push(call_text(at, function, *arguments), *entries_of(arguments), boolean=boolean)

    def mark_data(self, is_data: bool) -> None:
        """Say whether what was just pushed is data that came from outside."""
        self.stack[-1] = changed(self.stack[-1], is_data=is_data)

    def pop(self) -> StackEntry:
        """Take a value off the stack."""
        if not self.stack or self.stack[-1].iterator:
            raise UnstructuredError
        return self.stack.pop()

    def pop_many(self, count: int) -> list[StackEntry]:
        """Take values off the stack; the top comes last."""
        return [self.pop() for _ in range(count)][::-1]

    def settle(self) -> None:
        """Evaluate everything on the stack, in order, into variables."""
        for index, entry in enumerate(self.stack):
            if entry.depth:
                name = self.variable()
                self.line(f"{name} = {entry.text}")
                self.stack[index] = StackEntry(name, boolean=entry.boolean, is_data=entry.is_data)

    def pay(self, at: int, cost: Price) -> None:
        """Write that the code from here on is paid for."""
        self.line(f"fuel.steps -= {cost.steps}")
        if cost.bytes:
            self.line(f"fuel.bytes -= {cost.bytes}")
        self.line(f"if fuel.steps < 0{' or fuel.bytes < 0' if cost.bytes else ''}: fuel.run_out()  #{at}")

    def read(self, name: str) -> str:
        return f"scope.get({self.constant(name)}, {self.constant(Undefined(name))})"

    def assigned(self, value: StackEntry) -> tuple[str, str]:
        """Return a value's variable, and the text that gives it its value where it is used first."""
        if not value.depth:
            return value.text, value.text
        name = self.variable()
        return name, f"{name} := {value.text}"

    def compiled(self) -> Callable[[Scope, Fuel], Data]:
        """Let Python compile the function."""
        body = "\n".join(self.lines)
        code, places = _compiled(
            f"def evaluate(scope, fuel):\n try:\n{body}\n except errors as error:\n  failed(error)\n"
        )

        def failed(error: Exception) -> NoReturn:
            raise from_python(error, _place(error.__traceback__, places)) from None

        namespace = self._names | {"failed": failed}
        exec(code, namespace)
        return namespace["evaluate"]  # type: ignore[return-value]


@lru_cache(TEXTS_RECENT)
def _compiled(source: str) -> tuple[CodeType, list[int | None]]:
    """Return the code of a text, and the instruction that each line belongs to."""
    marks = [re.search(r"#(\d+)$", line) for line in source.split("\n")]
    # The text holds only our own words: see the docstring of `translate`. It was made from verified code.
    return compile(source, "<expression>", "exec"), [int(mark[1]) if mark else None for mark in marks]


def _place(traceback: TracebackType | None, places: list[int | None]) -> int | None:
    """Return the instruction whose line the function stood on."""
    return places[traceback.tb_lineno - 1] if traceback else None
