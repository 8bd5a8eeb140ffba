"""What the canonical form cannot say without changing its meaning: told like a finding, never guessed around."""

from __future__ import annotations

from noetlc.syntax.span import Span

NO_CODE = "C001"
"""The code under which the compiler tells of what it cannot say in other words."""


class Refusal(Exception):  # noqa: N818 - it says what happened, as CannotRun does
    """A construct that cannot be expanded: where, what is wrong, what to write instead."""

    def __init__(self, span: Span, message: str, help: str) -> None:
        super().__init__(message)
        self.span = span
        self.message = message
        self.help = help
