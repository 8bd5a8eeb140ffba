"""What the compiler cannot turn into code. Lint finds it first, so of a checked playbook it is a defect of ours."""

from __future__ import annotations

from noetlc.syntax.span import Span


class CannotLower(Exception):  # noqa: N818 - it says what happened, as CannotRun does
    """A construct that has no code: where, why, what to write instead."""

    def __init__(self, span: Span, message: str, help: str) -> None:
        super().__init__(message)
        self.span = span
        self.message = message
        self.help = help

    def moved_to(self, span: Span) -> CannotLower:
        """Return the same, told of another place: a template's own offsets become the file's."""
        return CannotLower(span, self.message, self.help)
