"""Effective specs (S38): a task's own `spec` merged over those of every scope around it.

From the outside in: the defaults of the tool's kind, `executor.spec`, `step.spec`, the `spec` of each loop, the `spec`
of a workbook call, the task's own. Mappings merge, and the inner value wins; anything else, lists too, is replaced.
`policy` and the keys that have a meaning of their own at their scope take no part.

A key of an outer scope that names a tool kind holds knobs for tasks of that kind (`executor.spec.http.timeout`). It is
merged right after the other knobs of its scope: it overrides them, and inner scopes override it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from noetlc.analysis.placement import placing_knobs
from noetlc.canon.flow import FLOW
from noetlc.canon.synthesis import entry, scalar
from noetlc.syntax import ast
from noetlc.syntax import template_ast as t
from noetlc.syntax.nodes import Mapping, MappingEntry, Node, Scalar, Sequence
from noetlc.syntax.span import Span
from noetlc.syntax.template_printer import print_expression
from noetlvm.language.tool_kinds import find_kind

Knobs: TypeAlias = tuple[MappingEntry, ...]


def outer_layers(playbook: ast.Playbook, step: ast.Step) -> tuple[Knobs, ...]:
    """Return the knobs around a step's tasks, outermost first."""
    executor = playbook.executor.spec if playbook.executor else None
    literal = tuple(MappingEntry(knob.key, _literal(knob.value)) for knob in _knobs(executor))
    loops = (_knobs(loop.spec) for loop in step.loops)
    return (literal, _knobs(step.spec), *loops)


def _knobs(spec: ast.Struct | None) -> Knobs:
    """Return the knobs of a `spec` around tasks that are for them."""
    placing = placing_knobs(spec) if spec else ()
    return tuple(knob for knob in spec.extra if knob not in placing) if spec else ()


def effective_knobs(task: ast.Task, outer: Iterable[Knobs]) -> Knobs:
    """Return a task's effective knobs, its kind's defaults first."""
    kind = task.kind.text if task.kind else ""
    merged: dict[str, MappingEntry] = {}
    for layer in (
        _defaults(kind, task.key_span("kind")),
        *_for_kind(kind, outer),
        task.spec.extra if task.spec else (),
    ):
        _lay_over(merged, layer)
    return tuple(merged.values())


def _defaults(kind: str, span: Span) -> Knobs:
    found = find_kind(kind) if kind else None
    settings = found.settings if found else ()
    return tuple(entry(span, setting.name, setting.default) for setting in settings if setting.default is not None)


def _for_kind(kind: str, outer: Iterable[Knobs]) -> Iterator[Knobs]:
    """Yield each outer scope as two layers: knobs of every task, then knobs of this kind of task."""
    for layer in outer:
        yield tuple(knob for knob in layer if knob.key.text != FLOW and not _is_scoped(knob))
        for knob in layer:
            if knob.key.text == kind and isinstance(knob.value, Mapping):
                yield knob.value.entries


def _is_scoped(knob: MappingEntry) -> bool:
    return isinstance(knob.value, Mapping) and find_kind(knob.key.text) is not None


def _lay_over(merged: dict[str, MappingEntry], layer: Iterable[MappingEntry]) -> None:
    for knob in layer:
        name = knob.key.text
        merged[name] = MappingEntry(knob.key, _merge(merged[name].value, knob.value)) if name in merged else knob


def _merge(outer: Node, inner: Node) -> Node:
    if not (isinstance(outer, Mapping) and isinstance(inner, Mapping)):
        return inner
    merged = {item.key.text: item for item in outer.entries}
    _lay_over(merged, inner.entries)
    return Mapping(inner.span, tuple(merged.values()))


def _literal(node: Node) -> Node:
    """Quote templates: under `executor` nothing is evaluated, and in a task's spec it would be."""
    if isinstance(node, Sequence):
        return Sequence(node.span, tuple(_literal(item) for item in node.items))
    if isinstance(node, Mapping):
        return Mapping(node.span, tuple(MappingEntry(item.key, _literal(item.value)) for item in node.entries))
    return _quoted(node) if node.is_template else node


def _quoted(leaf: Scalar) -> Scalar:
    return scalar(leaf.span, f"{{{{ {print_expression(t.Const(leaf.span, leaf.text))} }}}}")
