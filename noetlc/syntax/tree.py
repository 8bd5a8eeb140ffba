"""Walks over the playbook's syntax tree."""

from __future__ import annotations

from collections.abc import Iterator

from noetlc.syntax import ast
from noetlvm.record import fields_of

_ATTRIBUTES = {
    cls: tuple(name for name in fields_of(cls) if name not in ("span", "keys", "extra"))
    for cls in vars(ast).values()
    if isinstance(cls, type) and issubclass(cls, ast.Struct)
}


def structs(root: ast.Struct) -> Iterator[ast.Struct]:
    """Yield every object of the tree, the root included, in the order of the classes' fields."""
    stack: list[ast.Struct] = [root]
    while stack:
        current = stack.pop()
        yield current
        found: list[ast.Struct] = []
        for name in _ATTRIBUTES[type(current)]:
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
