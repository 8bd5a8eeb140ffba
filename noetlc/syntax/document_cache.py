"""Caches of what is computed from texts of a document: parsed templates, their names, formulas and code.

Playbooks repeat their texts, and every rule and pass needs the same trees, so a cache must have room for a whole
document. With a fixed number of entries, a document with one text more would repeat all work at each pass.
What stays after a document is bounded: a process may read many of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import _lru_cache_wrapper, cache
from typing import TypeVar

ENTRIES_MAX = 4096
"""A cache with more entries is emptied when the next document begins."""

Key = TypeVar("Key")
Value = TypeVar("Value")

_caches: list[DocumentCache[object, object]] = []
_functions: list[_lru_cache_wrapper[object]] = []


class DocumentCache(dict[Key, Value]):
    """A mapping that is emptied when a document begins and it is large."""

    def __init__(self) -> None:
        super().__init__()
        _caches.append(self)  # type: ignore[arg-type]


def per_document(function: Callable[..., Value]) -> _lru_cache_wrapper[Value]:
    """Cache the results of a pure function like `functools.cache`, for one document."""
    cached = cache(function)
    _functions.append(cached)
    return cached


def begin_document() -> None:
    """Empty the caches that an earlier document has filled."""
    for mapping in _caches:
        if len(mapping) > ENTRIES_MAX:
            mapping.clear()
    for function in _functions:
        if function.cache_info().currsize > ENTRIES_MAX:
            function.cache_clear()
