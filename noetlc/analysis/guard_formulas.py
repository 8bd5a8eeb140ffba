"""Guards as the author wrote them to formulas over tests: what decides which arcs of a router fire together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from noetlc.net.conditions import HOLDS, UNDEFINED, Formula, Test, holds, if_, not_
from noetlc.net.operands import (
    NO_FACTS,
    Facts,
    Item,
    Known,
    Term,
    Truth,
    compared,
    is_defined,
    item_holds,
    item_is_true,
    item_text,
)
from noetlc.syntax import template_ast as t
from noetlc.syntax.nodes import Scalar
from noetlc.syntax.template_parser import parse_template


def guard_formula(guard: Scalar | None, facts: Facts = NO_FACTS) -> Formula:
    """Return a guard's formula; one that is not there always holds."""
    if guard is None:
        return True
    if not guard.is_template:
        return holds(guard.value)
    template = parse_template(guard.text)
    part = template.parts[0] if template.is_single and not template.problems else None
    if not isinstance(part, t.Output):
        return Test(_squeezed(guard.text), HOLDS)
    return _Reading(template.text, facts).holds(part.expression)


def _squeezed(text: str) -> str:
    return " ".join(text.split())


class _Reading:
    """Reads one template."""

    def __init__(self, text: str, facts: Facts) -> None:
        self._text = text
        self._facts = facts

    def holds(self, node: t.Expression) -> Formula:
        """Return a node's truth as a guard has it (S9)."""
        return self._truth(node, self.holds, item_holds)

    def is_true(self, node: t.Expression) -> Formula:
        """Return a node's truth as Python has it."""
        return self._truth(node, self.is_true, item_is_true)

    def _truth(
        self, node: t.Expression, last: Callable[[t.Expression], Formula], plain: Callable[[Item], Formula]
    ) -> Formula:
        """Ask the value that comes out in the end as the guard asks; on the way there Python's truth counts."""
        if isinstance(node, t.And):
            formula = last(node.operands[-1])
            for operand in reversed(node.operands[:-1]):
                formula = if_(self.is_true(operand), formula, False)
            return formula
        if isinstance(node, t.Or):
            formula = last(node.operands[-1])
            for operand in reversed(node.operands[:-1]):
                formula = if_(self.is_true(operand), last(operand), formula)
            return formula
        if isinstance(node, t.Cond):
            otherwise = last(node.otherwise) if node.otherwise else False
            return if_(self.is_true(node.test), last(node.then), otherwise)
        return plain(self.item(node))

    def item(self, node: t.Expression) -> Item:
        """Return what a node stands for."""
        read = _READ.get(type(node))
        return read(self, node) if read else Term(self._source(node))

    def _source(self, node: t.Expression) -> str:
        return _squeezed(self._text[node.span.start : node.span.end])

    def _const(self, node: t.Const) -> Item:
        return Known(node.value)

    def _listed(self, node: t.List | t.Tuple) -> Item:
        items = [self.item(item) for item in node.items]
        values = [item.value for item in items if isinstance(item, Known)]
        return Known(values) if len(values) == len(items) else Term(self._source(node))

    def _name(self, node: t.Name) -> Item:
        return self._facts.get(node.name, Term(node.name))

    def _field(self, node: t.Getattr | t.Getitem) -> Item:
        key = node.name if isinstance(node, t.Getattr) else _constant_key(node.index)
        if key is None:
            return Term(self._source(node))
        holder = self.item(node.node)
        if isinstance(holder, Known) and holder.value is UNDEFINED:
            return holder
        path = f"{item_text(holder)}.{key}"
        return self._facts.get(path, Term(path))

    def _not(self, node: t.Not) -> Item:
        return Truth(not_(self.is_true(node.node)))

    def _compare(self, node: t.Compare) -> Item:
        if len(node.ops) != 1:
            return Term(self._source(node))
        return compared(node.ops[0].op, self.item(node.left), self.item(node.ops[0].expression))

    def _test(self, node: t.Test) -> Item:
        if node.name in ("defined", "undefined"):
            return is_defined(node.name == "defined", self.item(node.node))
        return Term(self._source(node))

    def _logic(self, node: t.And | t.Or) -> Item:
        return Truth(self.is_true(node))


def _constant_key(index: t.Expression) -> str | None:
    return index.value if isinstance(index, t.Const) and isinstance(index.value, str) else None


_READ: dict[type[t.Expression], Callable[[_Reading, Any], Item]] = {
    t.Const: _Reading._const,
    t.List: _Reading._listed,
    t.Tuple: _Reading._listed,
    t.Name: _Reading._name,
    t.Getattr: _Reading._field,
    t.Getitem: _Reading._field,
    t.Not: _Reading._not,
    t.And: _Reading._logic,
    t.Or: _Reading._logic,
    t.Compare: _Reading._compare,
    t.Test: _Reading._test,
}
