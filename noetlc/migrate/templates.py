"""Rewrites names and constants inside templates, and leaves every other character as it is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from noetlc.migrate.document import Leaf
from noetlc.syntax import template_ast as t
from noetlc.syntax.scalar_offsets import scalar_offsets, span_through
from noetlc.syntax.span import Span
from noetlc.syntax.template_parser import parse_template


class TemplateEdit(NamedTuple):
    """Replace a part of a template's text."""

    span: Span
    text: str


class Renaming(Protocol):
    """What names mean at one place of a playbook."""

    def path(self, path: tuple[str, ...]) -> tuple[int, str] | None:
        """Return how many fields of a path to replace, and by what; None to leave it."""

    def constant(self, path: tuple[str, ...], value: str) -> str:
        """Return what a text that is compared with a path becomes."""


class _Path(NamedTuple):
    names: tuple[str, ...]
    start: int
    ends: tuple[int, ...]
    """Where each prefix of the path ends."""


def template_edits(text: str, renaming: Renaming) -> list[TemplateEdit]:
    tree = parse_template(text)
    if tree.problems:
        return []
    bound = _bound(tree)
    edits: list[TemplateEdit] = []
    waiting: list[t.Node] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, t.Compare):
            edits.extend(_constants(text, node, renaming))
        path = _path_of(text, node)
        if path and path.names[0] not in bound:
            found = renaming.path(path.names)
            if found:
                count, replacement = found
                edits.append(TemplateEdit(Span(path.start, path.ends[count - 1]), replacement))
            waiting.extend(_computed(node))
        elif path:
            waiting.extend(_computed(node))
        else:
            waiting.extend(t.children(node))
    return sorted(edits, key=lambda edit: edit.span)


def renamed_text(text: str, renaming: Renaming) -> str:
    return _applied(text, ((edit.span.start, edit.span.end, edit.text) for edit in template_edits(text, renaming)))


def rename_in_leaf(source: str, leaf: Leaf, renaming: Renaming) -> bool:
    """Rename inside a scalar, keeping its quotes and layout; return whether anything changed."""
    if leaf.source is None or leaf.changed or not leaf.is_template or source[leaf.source.span.start] in "&!":
        return False
    text = leaf.source.text
    edits = template_edits(text, renaming)
    if not edits:
        return False
    offsets = scalar_offsets(source, leaf.source)
    base = leaf.source.span.start
    placed = []
    for edit in edits:
        span = span_through(offsets, edit.span)
        placed.append((span.start - base, span.end - base, escaped(edit.text, leaf.style)))
    leaf.raw = _applied(leaf.raw, placed)
    leaf.value = _applied(text, ((edit.span.start, edit.span.end, edit.text) for edit in edits))
    return True


def expression_in(text: str) -> str | None:
    """Return the expression of a text that is exactly one `{{ … }}`."""
    text = text.strip()
    tree = parse_template(text)
    if tree.problems or not tree.is_single:
        return None
    return text[2:-2].strip("-+ \t\r\n")


def is_one_expression(value: object) -> bool:
    """Return whether a value is a literal, or a template that consists of one expression."""
    if isinstance(value, str):
        return expression_in(value) is not None or ("{{" not in value and "{%" not in value)
    return not isinstance(value, dict | list)


def as_expression(value: object) -> str:
    """Return a value as an expression: the one that a template consists of, or a literal."""
    if not isinstance(value, str):
        return "none" if value is None else json.dumps(value)
    inner = expression_in(value)
    if inner is None:
        return json.dumps(value, ensure_ascii=False) if "'" in value else f"'{value}'"
    part = parse_template(f"{{{{ {inner} }}}}").parts[0]
    simple = isinstance(part, t.Output) and isinstance(part.expression, t.Name | t.Getattr | t.Getitem | t.Const)
    return inner if simple else f"({inner})"


def escaped(text: str, style: str) -> str:
    """Return text as it is written inside a scalar of a style."""
    if style == "'":
        return text.replace("'", "''")
    if style == '"':
        return text.replace("\\", "\\\\").replace('"', '\\"')
    return text


def paths_read(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the paths that a template reads, such as `("ctx", "page")`."""
    waiting: list[t.Node] = [parse_template(text)]
    while waiting:
        node = waiting.pop()
        path = _path_of(text, node)
        if path:
            yield path.names
            waiting.extend(_computed(node))
        else:
            waiting.extend(t.children(node))


def joined(operator: str, *conditions: str) -> str:
    """Join conditions; each operand keeps its meaning."""
    parts = [condition for condition in conditions if condition]
    if len(parts) == 1:
        return parts[0]
    return f" {operator} ".join(_operand(part, operator) for part in parts)


def negated(condition: str) -> str:
    return f"not ({condition})"


def _operand(condition: str, operator: str) -> str:
    tree = parse_template(f"{{{{ {condition} }}}}")
    part = tree.parts[0] if len(tree.parts) == 1 else None
    binds_less = (t.Or, t.Cond, t.Tuple) if operator == "and" else (t.Or, t.And, t.Cond, t.Tuple)
    loose = not isinstance(part, t.Output) or isinstance(part.expression, binds_less)
    return f"({condition})" if loose else condition


def _applied(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text


def _bound(tree: t.Node) -> frozenset[str]:
    targets = (node.target for node in t.walk(tree) if isinstance(node, t.For | t.Set | t.SetBlock))
    return frozenset(node.name for target in targets for node in t.walk(target) if isinstance(node, t.Name))


def _path_of(text: str, node: t.Node) -> _Path | None:
    """Return the longest path of fields that are written out, read from the beginning of a chain."""
    chain: list[t.Node] = []
    while isinstance(node, t.Getattr | t.Getitem):
        chain.append(node)
        node = node.node
    if not isinstance(node, t.Name) or (chain and node.span != node.name_span):
        return None
    names, ends = [node.name], [node.name_span.end]
    for link in reversed(chain):
        if isinstance(link, t.Getattr):
            names.append(link.name)
            ends.append(link.name_span.end)
        elif isinstance(link, t.Getitem) and isinstance(link.index, t.Const) and isinstance(link.index.value, str):
            names.append(link.index.value)
            ends.append(text.find("]", link.index.span.end) + 1 or link.index.span.end)
        else:
            break
    return _Path(tuple(names), node.name_span.start, tuple(ends))


def _computed(node: t.Node) -> Iterator[t.Node]:
    """Yield the subscripts of a chain: they hold expressions of their own."""
    while isinstance(node, t.Getattr | t.Getitem):
        if isinstance(node, t.Getitem):
            yield node.index
        node = node.node


def _constants(text: str, node: t.Compare, renaming: Renaming) -> Iterator[TemplateEdit]:
    operands = [node.left, *(operand.expression for operand in node.ops)]
    paths = [found.names for operand in operands if (found := _path_of(text, operand))]
    for path in paths:
        for operand in operands:
            for const in operand.items if isinstance(operand, t.List | t.Tuple) else (operand,):
                if isinstance(const, t.Const) and isinstance(const.value, str):
                    new = renaming.constant(path, const.value)
                    if new != const.value:
                        written = text[const.span.start : const.span.end]
                        yield TemplateEdit(const.span, written.replace(const.value, new))
