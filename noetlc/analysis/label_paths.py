"""The names on the way to a position of a document: what a finding is about, however the lines around it move."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from noetlc.syntax.nodes import Mapping, Node, Scalar


class _Part(NamedTuple):
    """What stands in one stretch of a collection."""

    start: int
    end: int
    names: tuple[str, ...]
    value: Node


class LabelPaths:
    """Finds paths in one document. Each collection is sorted once, so that many findings take no quadratic time."""

    def __init__(self, root: Node | None) -> None:
        self._root = root
        self._parts: dict[int, list[_Part]] = {}

    def at(self, offset: int) -> str:
        """Return the path to what stands at `offset`, from the root."""
        names: list[str] = []
        node = self._root
        while node is not None and not isinstance(node, Scalar):
            found = self._part(node, offset)
            names.extend(found.names if found else ())
            node = found.value if found else None
        return ".".join(names)

    def _part(self, node: Node, offset: int) -> _Part | None:
        parts = self._parts.get(id(node))
        if parts is None:
            parts = self._parts[id(node)] = sorted(_parts(node), key=lambda part: part.start)
        index = bisect_right(parts, offset, key=lambda part: part.start)
        near = parts[max(0, index - 2) : index]  # a block may end where the next entry starts: the first one wins
        return next((part for part in near if offset <= part.end), None)


def _parts(node: Node) -> list[_Part]:
    if isinstance(node, Mapping):
        return [
            _Part(entry.key.span.start, max(entry.key.span.end, entry.value.span.end), (entry.key.text,), entry.value)
            for entry in node.entries
        ]
    if isinstance(node, Scalar):
        return []
    return [_Part(*item.span, _item_name(item, number), item) for number, item in enumerate(node.items, 1)]


def _item_name(item: Node, number: int) -> tuple[str, ...]:
    """Return the name of a list item; a labelled task needs none, because its label is the next key."""
    if isinstance(item, Mapping):
        for key in ("step", "name"):
            value = item.get(key)
            if isinstance(value, Scalar):
                return (value.text,)
        if len(item.entries) == 1 and isinstance(item.entries[0].value, Mapping):
            return ()
    return (str(number),)
