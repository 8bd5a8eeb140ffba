"""Makes and completes syntax nodes that the author did not write. Each gets the place of what it stands for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from noetlc.syntax import ast, nodes
from noetlc.syntax.nodes import MappingEntry, Node, Scalar, ScalarValue
from noetlc.syntax.span import Span
from noetlvm.record import changed

_BLOCK_WORDS = frozenset({"choose", "while", "until"})
"""Labels that cannot be a task's key, because they would begin a block there."""

_INPUTS = 3
_RANKS = {"name": 0, "kind": 1, "desc": 2, "spec": 4}
"""The order of a task's keys; its inputs stand in the author's order, before `spec`."""


def scalar(span: Span, value: ScalarValue) -> Scalar:
    """Make a leaf."""
    text = value if isinstance(value, str) else "null" if value is None else str(value)
    return Scalar(span, value, text.lower() if isinstance(value, bool) else text, "")


def value_node(span: Span, value: object) -> Node:
    """Make the node of plain data; a node in it stays as it is."""
    if isinstance(value, Scalar | nodes.Sequence | nodes.Mapping):
        return value
    if isinstance(value, Mapping):
        return nodes.Mapping(span, tuple(entry(span, str(key), item) for key, item in value.items()))
    if isinstance(value, list | tuple):
        return nodes.Sequence(span, tuple(value_node(span, item) for item in value))
    assert value is None or isinstance(value, str | int | float | bool)
    return scalar(span, value)


def entry(span: Span, key: str, value: object) -> MappingEntry:
    """Make a key and its value from plain data."""
    return MappingEntry(scalar(span, key), value_node(span, value))


def keys(span: Span, names: Iterable[str]) -> dict[str, Span]:
    """Make the places of keys, in the order in which they are to be printed."""
    return dict.fromkeys(names, span)


def labelled_task(task: ast.Task, label: str, spec: ast.TaskSpec | None) -> ast.Task:
    """Return a task under a label and with another spec, its keys in one order: kind, desc, inputs, spec."""
    inputs = {item.key.text for item in task.extra}
    names = [key for key in task.keys if key in inputs or key not in ("name", "spec")]
    names += ["name"] if label in _BLOCK_WORDS else []
    names += ["spec"] if spec else []
    names.sort(key=lambda key: _INPUTS if key in inputs else _RANKS.get(key, _INPUTS))
    return changed(
        task,
        keys={key: task.key_span(key) for key in names},
        label=scalar(task.label.span if task.label else task.key_span("kind"), label),
        spec=spec,
    )


def with_knobs(spec: ast.TaskSpec | None, span: Span, knobs: tuple[MappingEntry, ...]) -> ast.TaskSpec | None:
    """Return a task's spec with these open fields; None where it would be empty."""
    spec = spec or ast.TaskSpec(span=span)
    replaced = {item.key.text for item in spec.extra}
    rest = {key: place for key, place in spec.keys.items() if key not in replaced}
    if not knobs and not rest:
        return None
    return changed(spec, keys={**keys(spec.span, (knob.key.text for knob in knobs)), **rest}, extra=knobs)


def with_policy(task: ast.Task, policy: ast.TaskPolicy) -> ast.Task:
    """Give a task a policy."""
    spec = task.spec or ast.TaskSpec(span=policy.span)
    return changed(task, spec=changed(spec, keys={**spec.keys, "policy": policy.span}, policy=policy))
