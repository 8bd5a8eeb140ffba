"""YAML nodes: the content of a document, before it is parsed as a playbook.

Aliases are resolved by sharing the anchored node, so a node's span is always the place of its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from noetlc.syntax.span import Span
from noetlvm.record import Record

_TEMPLATE_MARK = re.compile(r"\{[{%#]")

ScalarValue: TypeAlias = str | int | float | bool | None


class Scalar(Record):
    """A leaf. `value` follows YAML 1.2's core schema; `text` is what was written, unquoted and unfolded."""

    span: Span
    value: ScalarValue
    text: str
    style: str
    """`''` plain, or the character that opens it: `'`, `"`, `|`, `>`."""
    written: Scalar | None = None
    """The author's scalar, where the compiler put something into its text."""
    places: tuple[int, ...] = ()
    """For each character and one past the end, the character of `written` that it stands for."""

    @property
    def is_template(self) -> bool:
        """True if the text has template marks (S8)."""
        return isinstance(self.value, str) and _TEMPLATE_MARK.search(self.text) is not None


class Sequence(Record):
    span: Span
    items: tuple[Node, ...]


class MappingEntry(Record):
    key: Scalar
    value: Node


class Mapping(Record):
    """A mapping, its entries in the order written and its merge keys already merged."""

    span: Span
    entries: tuple[MappingEntry, ...]

    def get(self, key: str) -> Node | None:
        for entry in self.entries:
            if entry.key.text == key:
                return entry.value
        return None

    def key(self, key: str) -> Scalar | None:
        """Return the key itself, for its place."""
        for entry in self.entries:
            if entry.key.text == key:
                return entry.key
        return None


def edited(leaf: Scalar, edits: Iterable[tuple[Span, str]]) -> Scalar:
    """Return a text with parts replaced, in order; what was put in stands where the replaced part stood."""
    text, at = "", 0
    places: list[int] = []
    for span, replacement in edits:
        if span.start >= at:  # else it is nested in a part that has been replaced
            text += leaf.text[at : span.start] + replacement
            places += [*range(at, span.start), *[span.start] * len(replacement)]
            at = span.end
    text += leaf.text[at:]
    return Scalar(leaf.span, text, text, leaf.style, leaf, (*places, *range(at, len(leaf.text) + 1)))


Node: TypeAlias = Scalar | Sequence | Mapping


def scalars(node: Node) -> Iterator[Scalar]:
    """Yield every scalar value under `node` (keys are not values), in document order."""
    stack: list[Node] = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, Scalar):
            yield current
        elif isinstance(current, Sequence):
            stack.extend(reversed(current.items))
        else:
            stack.extend(entry.value for entry in reversed(current.entries))


def plain(node: Node) -> object:
    """Return the node as plain data: dicts, lists and scalar values."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Sequence):
        return [plain(item) for item in node.items]
    return {entry.key.text: plain(entry.value) for entry in node.entries}
