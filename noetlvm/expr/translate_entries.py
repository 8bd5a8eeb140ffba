"""What the translation has on its stack: Python text that is yet to be used, and texts being collected."""

from __future__ import annotations

from noetlvm.record import Record

SHORT = 64
"""Items of a list, or characters of a text, up to which Python compares at no cost to speak of; pieces of a text."""


def _is_short(value: object) -> bool:
    return len(value) <= SHORT if isinstance(value, str) else value is None or isinstance(value, (int, float))


class UnstructuredError(Exception):
    """The code is no nest of blocks, or nests too deeply; the interpreter runs it."""


class StatementNeededError(Exception):
    """The code at hand cannot be a Python expression."""


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
    """It is what a name holds, or a field of that: nothing inside it is undefined."""

    @property
    def is_short(self) -> bool:
        """Tell whether it is a constant that anything can be compared with at once, or a short list of such."""
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
        """The pieces are in a list of that name, for want of knowing them all."""


def entries_of(arguments: tuple[str | StackEntry, ...]) -> list[StackEntry]:
    """Return those arguments that lay on the stack."""
    return [argument for argument in arguments if isinstance(argument, StackEntry)]


def call_text(at: int, function: str, *arguments: str | StackEntry) -> str:
    """Return the call of an operation, its first line marked with the instruction."""
    texts = (argument.text if isinstance(argument, StackEntry) else argument for argument in arguments)
    return f"{function}(#{at}\n{', '.join(texts)})"


def tuple_text(parts: list[StackEntry]) -> str:
    """Return a tuple of parts."""
    return f"({''.join(part.text + ', ' for part in parts)})"
