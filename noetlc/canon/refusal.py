"""What the canonical form cannot say without changing its meaning: told by a lint rule, never guessed around."""

from __future__ import annotations

from noetlc.syntax.span import Span


class Refusal(Exception):  # noqa: N818 - it says what happened, as CannotRun does
    """A construct that cannot be expanded: which rule tells of it, where, what is wrong, what to write instead."""

    def __init__(self, code: str, span: Span, message: str, help: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.span = span
        self.message = message
        self.help = help
