"""A task's inputs against what its tool kind declares: which are given, and of which type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from noetlc.syntax.nodes import Mapping, MappingEntry, Node, Sequence
from noetlc.syntax.span import Span
from noetlvm.language.tool_kind import SPEC
from noetlvm.language.tool_kinds import find_kind

if TYPE_CHECKING:
    from noetlc.analysis.model import Model, TaskView
    from noetlvm.language.tool_kind import ToolKind


class Respelling(NamedTuple):
    """A name as the author wrote it, and the canonical one."""

    span: Span
    written: str
    canonical: str

    @property
    def is_misplaced(self) -> bool:
        """True for an input of the task that is written under its `spec`."""
        return self.written.startswith(SPEC) and not self.canonical.startswith(SPEC)


ON_ANY_TASK = frozenset({"eval", "pipe", "sink"})
"""Keys of the older dialect that stand among the inputs; their own rules say what became of them."""


def typed_tasks(model: Model) -> Iterator[tuple[TaskView, ToolKind]]:
    """Yield the tasks whose kind is known, with the kind."""
    for view in model.tasks:
        kind = find_kind(view.kind) if view.kind else None
        if kind is not None:
            yield view, kind


def inputs(view: TaskView) -> Iterator[MappingEntry]:
    """Yield the inputs that are a kind's business."""
    for entry in view.task.extra:
        if entry.key.text not in ON_ANY_TASK:
            yield entry


def is_unknown(kind: ToolKind, name: str) -> bool:
    """True if a kind has no input of that name."""
    return not kind.open and kind.input(name) is None and not (name == "auth" and kind.takes_auth)


def type_of(node: Node) -> str:
    """Return JSON Schema's name for a node's type."""
    if isinstance(node, Mapping):
        return "object"
    if isinstance(node, Sequence):
        return "array"
    value = node.value
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    return "null" if value is None else "string"


def fits(node: Node, types: tuple[str, ...]) -> bool:
    """Return whether a value may stand where one of `types` is wanted; a template may stand anywhere."""
    found = type_of(node)
    return found in types or (found == "integer" and "number" in types) or getattr(node, "is_template", False)
