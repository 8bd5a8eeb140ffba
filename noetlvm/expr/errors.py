"""What ends an evaluation early: errors, and fuel that runs out. Nothing else comes out of an evaluation."""

from __future__ import annotations

from enum import StrEnum
from typing import NoReturn


class ErrorKind(StrEnum):
    """What went wrong, in a word."""

    UNDEFINED = "undefined"
    """Something that does not exist was needed (S10)."""
    TYPE = "type"
    """A value of another type was needed, or a call does not fit."""
    VALUE = "value"
    """The type is right but not the value: a division by zero, an unknown filter name in `map`."""
    FUEL = "fuel"
    """It took too many steps."""
    SIZE = "size"
    """It would have made too much: text, items, digits, depth."""
    STORED = "stored"
    """A stored result that was read is missing or damaged (S46)."""


class ExpressionError(Exception):
    """The evaluation failed. `at` is the index of the instruction that failed, where it is known."""

    def __init__(self, kind: ErrorKind, message: str, at: int | None = None) -> None:
        self.kind = kind
        self.message = message
        self.at = at
        super().__init__(message)


class InternalError(Exception):
    """Checked mode found that the verifier let through what it must not. Never caught by the VM."""


PYTHON_ERRORS = (TypeError, ValueError, ArithmeticError, LookupError, RecursionError, MemoryError)
"""What Python itself raises when an operation does not fit its values; it leaves an evaluation as `ExpressionError`."""

_KINDS: tuple[tuple[type[BaseException], ErrorKind], ...] = (
    (RecursionError, ErrorKind.SIZE),
    (MemoryError, ErrorKind.SIZE),
    (TypeError, ErrorKind.TYPE),
)


def from_python(error: BaseException, at: int | None) -> ExpressionError:
    """Convert one of Python's errors; an `ExpressionError` only gets its place."""
    if isinstance(error, ExpressionError):
        if error.at is None:
            error.at = at
        return error
    kind = next((kind for python, kind in _KINDS if isinstance(error, python)), ErrorKind.VALUE)
    return ExpressionError(kind, str(error) or type(error).__name__, at)


DEFAULT_STEPS = 200_000
"""Steps of one evaluation; it takes some tens of milliseconds to use them up."""

DEFAULT_BYTES = 4 << 20
"""Bytes that one evaluation may make, including those it drops again."""

JSON_BYTES = 11 << 20
"""Bytes of JSON text besides, which one evaluation may make of its data: whole tables are passed on as JSON. With the
bytes above it stays under 16 MB."""

MAX_DEPTH = 128
"""How deep data may be nested that is printed, compared or used as a key."""

MAX_INT_BITS = 4_096
"""How long a whole number may become."""

NODE_STEPS = 3
"""Steps for each value inside of nested data that is printed, compared or used as a key."""

CALL_STEPS = 10
"""Steps for each item that a filter hands to another filter or test, or writes by itself."""


class Fuel:
    """What is left. One object for each evaluation, or for several that share a budget."""

    __slots__ = ("bytes", "json", "steps")

    def __init__(self, steps: int = DEFAULT_STEPS, bytes: int = DEFAULT_BYTES) -> None:
        self.steps = steps
        self.bytes = bytes
        self.json = JSON_BYTES

    def spend(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0:
            self.run_out()

    def make(self, size: int) -> None:
        self.bytes -= size
        if self.bytes < 0:
            self.run_out()

    def write_json(self, size: int) -> None:
        """Pay for JSON text; it is written in C, so that its cost follows the bytes."""
        self.json -= size
        if self.json < 0:
            self.bytes = -1
            self.run_out()

    def run_out(self) -> NoReturn:
        """Say which of the two is used up."""
        if self.bytes < 0:
            raise ExpressionError(
                ErrorKind.SIZE, "the expression makes too much data; make less of it, or use a `python` task"
            )
        raise ExpressionError(ErrorKind.FUEL, "the expression takes too many steps; do this work in a `python` task")
