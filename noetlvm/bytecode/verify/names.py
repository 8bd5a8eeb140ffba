"""What a plain name is, by what it names, and whether names are all different. The shapes are the language's (S5).

Texts of a bundle are pooled: one of two million letters may stand in thousands of places. So no name is looked at
letter by letter more than once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

NAME = re.compile(r"[^\W\d][\w-]*\Z")
"""Of a step or a credential: letters, digits, underscores and hyphens."""

VARIABLE = re.compile(r"[^\W\d]\w*\Z")
"""Of an iterator: it is read as `iter.name`."""

LABEL = re.compile(r"[^\W\d][\w-]*(\.[^\W\d][\w-]*)*\Z")
"""Of a task or a generated place: names joined by dots."""


class Plain:
    """Names that were found to be plain in one verification. Meeting one again costs the same however long it is."""

    __slots__ = ("_shape", "_texts")

    def __init__(self, shape: re.Pattern[str]) -> None:
        self._shape = shape
        self._texts: set[str] = set()

    def holds(self, text: str) -> bool:
        """Tell whether the text has the shape."""
        if text in self._texts:
            return True
        if not self._shape.match(text):
            return False
        self._texts.add(text)
        return True


def first_repeated(names: Iterable[str]) -> int | None:
    """Return the index of the first name that stands before already."""
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name in seen:
            return index
        seen.add(name)
    return None
