"""What a plain name is, by what it names, and whether names are all different. The shapes are the language's (S5)."""

from __future__ import annotations

import re
from collections.abc import Iterable

NAME = re.compile(r"[^\W\d][\w-]*\Z")
"""Of a step or a credential: letters, digits, underscores and hyphens."""

VARIABLE = re.compile(r"[^\W\d]\w*\Z")
"""Of an iterator: it is read as `iter.name`."""

LABEL = re.compile(r"[^\W\d][\w-]*(\.[^\W\d][\w-]*)*\Z")
"""Of a task or a generated place: names joined by dots."""


def first_repeated(names: Iterable[str]) -> int | None:
    """Return the index of the first name that stands before already."""
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name in seen:
            return index
        seen.add(name)
    return None
