"""The one exception that a command shows its user as a message: wrong options, wrong configuration, unusable files."""

from __future__ import annotations

from collections.abc import Iterable

from noetlc.syntax.nearest import nearest


class CannotRun(Exception):  # noqa: N818 - it reads as what it says
    """The command cannot do what it was asked; the message says why and what to do. Exit code 2."""


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return ` Did you mean …?`, ready to append to a message, or nothing when no known word is close."""
    found = nearest(word, known)
    return f" Did you mean `{found}`?" if found else ""
