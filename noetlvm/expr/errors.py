"""What can go wrong while an expression is evaluated. Nothing else comes out of an evaluation."""

from __future__ import annotations

from enum import StrEnum


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
    """Return the error that stands for one of Python's; one of our own only learns its place."""
    if isinstance(error, ExpressionError):
        if error.at is None:
            error.at = at
        return error
    kind = next((kind for python, kind in _KINDS if isinstance(error, python)), ErrorKind.VALUE)
    return ExpressionError(kind, str(error) or type(error).__name__, at)
