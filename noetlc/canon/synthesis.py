"""Makes syntax nodes that nobody wrote. Each gets the place of the construct that it stands for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from noetlc.syntax import ast, nodes
from noetlc.syntax.nodes import Entry, Node, Scalar, ScalarValue
from noetlc.syntax.span import Span

_BEFORE_INPUTS = ("kind", "desc")
"""What stands before a task's inputs; `spec` stands after them."""

_NAMES_ITSELF = frozenset({"choose", "while", "until"})
"""Labels that cannot be a task's key, because they would begin a block there."""


def scalar(span: Span, value: ScalarValue) -> Scalar:
    """Make a leaf."""
    text = value if isinstance(value, str) else "null" if value is None else str(value)
    return Scalar(span, value, text.lower() if isinstance(value, bool) else text, "")


def value_node(span: Span, value: object) -> Node:
    """Make the node of plain data."""
    if isinstance(value, Mapping):
        return nodes.Mapping(span, tuple(entry(span, str(key), item) for key, item in value.items()))
    if isinstance(value, list | tuple):
        return nodes.Sequence(span, tuple(value_node(span, item) for item in value))
    assert value is None or isinstance(value, str | int | float | bool)
    return scalar(span, value)


def entry(span: Span, key: str, value: object) -> Entry:
    """Make a key and its value from plain data."""
    return Entry(scalar(span, key), value_node(span, value))


def keys(span: Span, names: Iterable[str]) -> dict[str, Span]:
    """Make the places of keys, in the order in which they are to be printed."""
    return dict.fromkeys(names, span)


def kept(written: Mapping[str, Span], names: Iterable[str]) -> dict[str, Span]:
    """Return the places of those keys that are still there."""
    wanted = frozenset(names)
    return {name: span for name, span in written.items() if name in wanted}


def task(
    like: ast.Task, *, label: str, extra: tuple[Entry, ...] | None = None, spec: ast.TaskSpec | None = None
) -> ast.Task:
    """Make a labelled task of another one: its kind and description, other inputs, another spec."""
    inputs = like.extra if extra is None else extra
    name = ("name",) if label in _NAMES_ITSELF else ()
    order = (*name, *_BEFORE_INPUTS, *(item.key.text for item in inputs), "spec")
    present = {"kind": like.kind, "desc": like.desc, "spec": spec}
    named = scalar(like.label.span if like.label else like.key_span("kind"), label)
    return ast.Task(
        span=like.span,
        keys={name: like.key_span(name) for name in order if present.get(name, True) is not None},
        extra=inputs,
        label=named,
        kind=like.kind,
        desc=like.desc,
        spec=spec,
    )


def task_spec(span: Span, knobs: tuple[Entry, ...], policy: ast.TaskPolicy | None) -> ast.TaskSpec | None:
    """Make a task's spec; None where it would say nothing."""
    if not knobs and policy is None:
        return None
    names = [*(knob.key.text for knob in knobs), *(("policy",) if policy is not None else ())]
    return ast.TaskSpec(span=span, keys=keys(span, names), extra=knobs, policy=policy)
