"""Walks over the playbook's syntax tree, and copies of it with changes.

Both work from the fields of the classes in `ast.py`, so a key that is added there is visited and copied too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache
from typing import Any, TypeVar

from noetlc.syntax import ast
from noetlc.syntax.nodes import Mapping, MappingEntry, Node, Scalar, Sequence
from noetlvm.record import changed, fields_of

AnyStruct = TypeVar("AnyStruct", bound=ast.Struct)

EXTRA = "extra"
_NOT_KEYS = frozenset({"span", "keys", EXTRA})


@cache
def attributes(cls: type[ast.Struct]) -> tuple[str, ...]:
    """Return the attributes of an object's class that hold its keys."""
    return tuple(name for name in fields_of(cls) if name not in _NOT_KEYS)


def structs(root: ast.Struct) -> Iterator[ast.Struct]:
    """Yield every object of the tree, the root included, in the order of the classes' fields."""
    stack: list[ast.Struct] = [root]
    while stack:
        current = stack.pop()
        yield current
        found: list[ast.Struct] = []
        for name in attributes(type(current)):
            value = getattr(current, name)
            if isinstance(value, ast.Struct):
                found.append(value)
            elif isinstance(value, tuple):
                found.extend(_members(value))
        stack.extend(reversed(found))


def _members(values: tuple[object, ...]) -> Iterator[ast.Struct]:
    for value in values:
        if isinstance(value, ast.Struct):
            yield value
        elif isinstance(value, ast.WorkbookTask):
            yield from value.entries


class Rewriter:
    """Copies an object with changes. A subclass overrides what changes; everything else is copied as it is."""

    def scalar(self, name: str, scalar: Scalar) -> Scalar:
        """Return what stands for the scalar value of an attribute."""
        return scalar

    def data(self, node: Node) -> Node:
        """Return what stands for data: an open field, a mapping or a list."""
        return node

    def struct(self, struct: ast.Struct) -> ast.Struct | None:
        """Return what stands for an object whose fields have been rewritten; None removes it with its key."""
        return struct

    def entry(self, entry: ast.PipelineEntry) -> ast.PipelineEntry:
        """Return what stands for an entry of a pipeline inside the object; entries are shared unless overridden."""
        return entry

    def rewrite(self, struct: AnyStruct) -> AnyStruct:
        """Return the rewritten object; the same one if nothing changes."""
        rewritten = self._rewritten(struct)
        assert isinstance(rewritten, type(struct))  # an object is only ever removed from another
        return rewritten

    def _rewritten(self, struct: ast.Struct) -> ast.Struct | None:
        changes: dict[str, Any] = {}
        for name in attributes(type(struct)):
            value = getattr(struct, name)
            if value is None:  # as most are
                continue
            made = self._value(name, value)
            if made is not value:
                changes[name] = made
        extra = tuple(self._entry(entry) for entry in struct.extra)
        if any(made is not entry for made, entry in zip(extra, struct.extra, strict=True)):
            changes[EXTRA] = extra
        removed = {ast.yaml_key(name) for name, value in changes.items() if value is None}
        if removed:
            changes["keys"] = {key: span for key, span in struct.keys.items() if key not in removed}
        return self.struct(changed(struct, **changes) if changes else struct)

    def _value(self, name: str, value: Any) -> Any:
        if isinstance(value, Scalar):
            return self.scalar(name, value)
        if isinstance(value, Mapping | Sequence):
            return self.data(value)
        if isinstance(value, ast.Struct):
            return self.entry(value) if isinstance(value, ast.PIPELINE_ENTRIES) else self._rewritten(value)
        if isinstance(value, ast.WorkbookTask):
            entries = self._value(name, value.entries)
            return value if entries is value.entries else changed(value, entries=entries)
        if isinstance(value, tuple):
            made = tuple(self._value(name, item) for item in value)
            return made if any(new is not old for new, old in zip(made, value, strict=True)) else value
        return value

    def _entry(self, entry: MappingEntry) -> MappingEntry:
        value = self.data(entry.value)
        return entry if value is entry.value else MappingEntry(entry.key, value)


def without(struct: AnyStruct, names: Collection[str]) -> AnyStruct:
    """Return an object without some of its attributes, `extra` for its open fields, and without their keys."""
    if not names:
        return struct
    removed = {ast.yaml_key(name) for name in names}
    if EXTRA in names:
        removed.update(entry.key.text for entry in struct.extra)
    keys = {key: span for key, span in struct.keys.items() if key not in removed}
    return changed(struct, keys=keys, **{name: () if name == EXTRA else None for name in names})


def in_field_order(struct: AnyStruct) -> AnyStruct:
    """Return an object whose keys stand in the order of its class's fields, not in the author's."""
    order = {ast.yaml_key(name): index for index, name in enumerate(attributes(type(struct)))}
    return changed(struct, keys=dict(sorted(struct.keys.items(), key=lambda item: order.get(item[0], len(order)))))
