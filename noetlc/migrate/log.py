"""Collects what a migration did and what it could not do."""

from __future__ import annotations

from noetlc.migrate.constructs import Change
from noetlc.syntax.span import Span


class Log:
    """The changes of one file, in the order of their places."""

    def __init__(self) -> None:
        self._changes: dict[Change, None] = {}

    def add(self, code: str, span: Span | None, message: str) -> None:
        self._changes[Change(code, span or Span(0, 0), message)] = None

    @property
    def changes(self) -> tuple[Change, ...]:
        return tuple(sorted(self._changes, key=lambda change: (change.span, change.code)))
