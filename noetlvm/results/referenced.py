"""Finds the results that events refer to, directly or through other results: what garbage collection must keep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from noetlvm.data.encoding import decode
from noetlvm.data.references import Reference
from noetlvm.results.interface import ResultMissing, ResultStore
from noetlvm.store.interface import Reader


def referenced_keys(reader: Reader, results: ResultStore) -> set[str]:
    """Return the keys of all results that any event of any execution needs.

    A result that is missing keeps nothing alive. One that is damaged stops the search: what it refers to is unknown.
    """
    found: set[str] = set()
    for execution in reader.executions():
        for recorded in reader.events(execution.execution_id):
            _follow(recorded.event.data, results, found)
    return found


def _follow(value: Any, results: ResultStore, found: set[str]) -> None:
    waiting = list(_references(value))
    while waiting:
        key = waiting.pop()
        if key in found:
            continue
        found.add(key)
        try:
            data = results.get(key)
        except ResultMissing:
            continue
        waiting += _references(decode(data))


def _references(value: Any) -> Iterator[str]:
    """Return the keys of the references in plain data, at any depth."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if type(item) is Reference:
            yield item.key
        elif isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, (list, tuple)):
            waiting += item
