"""What the compiler cannot turn into code. Lint finds nearly all of it first; the rest is told in the same words."""

from __future__ import annotations

from noetlc.canon.refusal import Refusal
from noetlc.syntax.span import Span


class CannotLower(Refusal):
    """A construct that has no code."""

    def moved_to(self, span: Span) -> CannotLower:
        """Return the same, told of another place: a template's own offsets become the file's."""
        return CannotLower(span, self.message, self.help)
