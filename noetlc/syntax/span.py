"""Positions in a file (offsets, and their lines and columns for people), and problems found at them.

Everything in the compiler carries a `Span` of two character offsets, because offsets are cheap and survive every
pass. Lines and columns are computed only for output.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from noetlvm.record import Record

_LINE_BREAK = re.compile(r"\r\n|\r|\n")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def lines_of(text: str) -> list[str]:
    """Return the lines with their breaks. Only these are breaks in YAML 1.2; `str.splitlines` knows more."""
    return _LINE.findall(text)


class Span(NamedTuple):
    """A half-open range of character offsets in one source text."""

    start: int
    end: int


class Position(NamedTuple):
    """A 1-based line and column; columns count characters, not bytes."""

    line: int
    column: int


def holds_any(span: Span, offsets: list[int]) -> bool:
    """True if one of some sorted offsets lies in a span, its end included."""
    at = bisect_left(offsets, span.start)
    return at < len(offsets) and offsets[at] <= span.end


class Source(Record, cached=True):
    """One file's path, as the user wrote it, and its decoded text."""

    path: str
    text: str

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in _LINE_BREAK.finditer(self.text))]

    def position(self, offset: int) -> Position:
        """Return the line and column of `offset`; past the end of the text means the end."""
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(self._line_starts, offset)
        return Position(line, offset - self._line_starts[line - 1] + 1)

    def line_text(self, line: int) -> str:
        """Return the text of a 1-based line without its line break."""
        starts = self._line_starts
        end = starts[line] if line < len(starts) else len(self.text)
        return self.text[starts[line - 1] : end].rstrip("\r\n")

    def line_start(self, line: int) -> int:
        """Return the offset at which a 1-based line begins."""
        return self._line_starts[line - 1]

    @property
    def line_count(self) -> int:
        return len(self._line_starts)


class ProblemKind(StrEnum):
    """Each kind is reported by one rule."""

    NOT_UTF8 = "not-utf8"
    YAML_SYNTAX = "yaml-syntax"
    TOO_LARGE = "too-large"
    EMPTY = "empty"
    MANY_DOCUMENTS = "many-documents"
    DUPLICATE_KEY = "duplicate-key"
    TAG = "tag"
    ALIAS = "alias"
    COMPLEX_KEY = "complex-key"
    NON_STRING_KEY = "non-string-key"
    MERGE_VALUE = "merge-value"
    UNKNOWN_KEY = "unknown-key"
    WRONG_TYPE = "wrong-type"


class Problem(Record):
    kind: ProblemKind
    span: Span
    message: str
    help: str
    object: str = ""
    """Grammar rule of the object that contains it, such as `step`."""
    key: str = ""
    """The key concerned, if there is one."""
    suggestion: str = ""
    """The known name that was probably meant."""
    other: Span | None = None
    """A second place: the first of two duplicates."""
