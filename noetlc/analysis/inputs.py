"""A task's inputs against what its tool kind declares, and keys for which the language has another word."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from noetlc.finding import Edit, Fix
from noetlc.migrate.dialect import SINKS
from noetlc.syntax.nodes import Mapping, MappingEntry, Node, Scalar, Sequence
from noetlc.syntax.span import Span
from noetlvm.language.tool_kinds import SPEC, ToolKind, find_kind

if TYPE_CHECKING:
    from noetlc.analysis.model import Model, TaskView


class Respelling(NamedTuple):
    """A name as the author wrote it, and the canonical one."""

    span: Span
    written: str
    canonical: str

    @property
    def is_misplaced(self) -> bool:
        """True for an input of the task that is written under its `spec`."""
        return self.written.startswith(SPEC) and not self.canonical.startswith(SPEC)

    @property
    def is_knob(self) -> bool:
        """True for a setting that is written beside the inputs."""
        return self.canonical.startswith(SPEC) and not self.written.startswith(SPEC) and not self.is_retry

    @property
    def is_retry(self) -> bool:
        """True for a `retry` of a task, which became a policy."""
        return self.canonical == POLICY


POLICY = f"{SPEC}policy"

ON_ANY_TASK = frozenset({"eval", "pipe", *SINKS})
"""Keys of the older dialect that stand among the inputs; their own rules explain what replaced them."""


def typed_tasks(model: Model) -> Iterator[tuple[TaskView, ToolKind]]:
    for view in model.tasks:
        kind = find_kind(view.kind) if view.kind else None
        if kind is not None:
            yield view, kind


def inputs(view: TaskView) -> Iterator[MappingEntry]:
    for entry in view.task.extra:
        if entry.key.text not in ON_ANY_TASK:
            yield entry


def is_unknown(kind: ToolKind, name: str) -> bool:
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


def mappings_by_key(root: Node | None) -> dict[Span, Mapping]:
    """Return, for the place of each key of a document, the mapping that it stands in."""
    found: dict[Span, Mapping] = {}
    seen: set[int] = set()
    waiting: list[Node] = [root] if root else []
    while waiting:
        node = waiting.pop()
        if isinstance(node, Scalar) or id(node) in seen:
            continue  # an alias shares the node that its anchor holds
        seen.add(id(node))
        if isinstance(node, Sequence):
            waiting.extend(node.items)
            continue
        for entry in node.entries:
            found.setdefault(entry.key.span, node)
            waiting.append(entry.value)
    return found


def entry_at(model: Model, key_span: Span) -> MappingEntry | None:
    mapping = model.mappings_by_key.get(key_span)
    return next((entry for entry in mapping.entries if entry.key.span == key_span), None) if mapping else None


def rename(model: Model, key_span: Span, name: str, *, safe: bool) -> Fix | None:
    """Return the fix that renames a key, unless its mapping already has a key of the new name."""
    mapping = model.mappings_by_key.get(key_span)
    if mapping is None or mapping.key(name) is not None:
        return None
    return Fix(f"rename it to `{name}`", (Edit(key_span, name),), safe=safe)


def rewrite(written: Scalar, name: str) -> Fix | None:
    """Return the fix, for a person to look at, that writes another name in place of one; none without a name."""
    if not name or written.style in ("|", ">"):
        return None
    return Fix(f"write `{name}`", (Edit(written.span, f"{written.style}{name}{written.style}"),), safe=False)


def rename_to_when(model: Model, key_span: Span) -> Fix | None:
    """Return the fix that makes a condition a `when`, if its value is one that `when` takes (S9)."""
    entry = entry_at(model, key_span)
    value = entry.value if entry else None
    if not isinstance(value, Scalar) or not (value.is_template or isinstance(value.value, bool)):
        return None
    return rename(model, key_span, "when", safe=True)


def old_inputs(model: Model, name: str) -> Iterator[MappingEntry]:
    """Yield the task inputs of that name that no tool takes."""
    for view in model.tasks:
        for entry in view.task.extra:
            if entry.key.text == name and not _may_take(view.kind, name):
                yield entry


def _may_take(kind_name: str, input_name: str) -> bool:
    """Return whether a kind declares the input. No kind takes a word of the language that it does not declare (S90)."""
    kind = find_kind(kind_name) if kind_name else None
    return kind is not None and kind.input(input_name) is not None


def old_evals(model: Model) -> Iterator[MappingEntry]:
    """Yield the `eval` of every task that has one and whose tool does not declare it."""
    return old_inputs(model, "eval")
