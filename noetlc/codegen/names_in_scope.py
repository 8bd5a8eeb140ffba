"""Resolves names inside a template: its own variables, the `loop` of its `for` blocks, or names from outside.

Scopes nest as in Jinja2: a `for` body (a new one each round), its `else` and a `set` block have scopes of their own,
an `if` has none. A name that a scope has not assigned yet resolves in the scope outside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from noetlc.syntax import template_ast as t

FOR_LOOP = "loop"


class Slot(NamedTuple):
    """A variable of the template."""

    number: int


class ForBlock(NamedTuple):
    """The `loop` of a `for` block: the number of iterators below its own on the stack."""

    height: int


class TemplateScope:
    """One scope."""

    __slots__ = ("assigned", "loop", "outer", "slots")

    def __init__(self, outer: TemplateScope | None, loop: ForBlock | None = None) -> None:
        self.outer = outer
        self.loop = loop
        self.slots: dict[str, int] = {}
        self.assigned: set[str] = set()
        """Names that are assigned on every path to the current position."""

    def find(self, name: str) -> Slot | ForBlock | None:
        """Return the binding of a name, or None if it comes from outside the template."""
        frame: TemplateScope | None = self
        while frame is not None:
            if frame.loop is not None and name == FOR_LOOP:
                return frame.loop
            if name in frame.assigned:
                return Slot(frame.slots[name])
            frame = frame.outer
        return None


Parts: TypeAlias = tuple[t.Part, ...]


def target_names(target: t.Expression) -> Iterator[str]:
    """Yield the names that an assignment binds, in order."""
    for node in t.walk(target):
        if isinstance(node, t.Name):
            yield node.name


def possibly_assigned(parts: Parts) -> dict[str, None]:
    """Return the names that parts may assign in their own scope, in order."""
    found: dict[str, None] = {}
    for part in parts:
        if isinstance(part, t.Set | t.SetBlock):
            found.update(dict.fromkeys(target_names(part.target)))
        elif isinstance(part, t.If):
            for body in bodies(part):
                found.update(possibly_assigned(body))
    return found


def surely_assigned(parts: Parts) -> frozenset[str]:
    """Return the names that parts assign on every path."""
    found: set[str] = set()
    for part in parts:
        if isinstance(part, t.Set | t.SetBlock):
            found.update(target_names(part.target))
        elif isinstance(part, t.If):
            found |= frozenset.intersection(*(surely_assigned(body) for body in bodies(part)))
    return frozenset(found)


def bodies(part: t.If) -> list[Parts]:
    """Return the bodies of an `if`, its `else` last, present or not."""
    return [*(branch.body for branch in part.branches), part.otherwise]
