"""Guards as the author wrote them: formulas, constants, what they read and cover; lists whose first match counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from noetlc.analysis.folding import Folding
from noetlc.analysis.formulas import (
    HOLDS,
    NO_FACTS,
    UNDEFINED,
    Facts,
    Formula,
    Item,
    Known,
    OperandTest,
    Term,
    Truth,
    can_raise,
    compared,
    holds,
    if_,
    is_defined,
    item_holds,
    item_is_true,
    item_text,
    listed,
    not_,
    operation_text,
    tests_in,
    verdict,
)
from noetlc.analysis.routers import choices, covering
from noetlc.syntax import ast
from noetlc.syntax import template_ast as t
from noetlc.syntax.document_cache import per_document
from noetlc.syntax.nodes import Scalar
from noetlc.syntax.template_parser import parse_template
from noetlvm.record import IdentityRecord

if TYPE_CHECKING:
    from noetlc.analysis.model import Model


OTHER_NAMES = ("condition", "cond", "expr", "expression", "guard", "if", "only_if", "unless")
"""Common names for `when`: a key with one of them was meant as a guard."""

_READS_MAX = 2048
"""Expressions read for one guard, counting each branch; beyond that the guard is one opaque operand."""


def guard_formula(guard: Scalar | None, facts: Facts = NO_FACTS) -> Formula:
    """Return a guard's formula; a missing guard always holds."""
    if guard is None:
        return True
    if not guard.is_template:
        return holds(guard.value)
    return _formula(guard.text, facts)


def decide(guard: Scalar | None, facts: Facts = NO_FACTS) -> bool | None:
    """Return the constant that a guard equals given the facts, or None if it depends on the run."""
    if guard is None or not guard.is_template:
        return guard is None or holds(guard.value)
    return _verdict(guard.text, facts)


@per_document
def _verdict(text: str, facts: Facts) -> bool | None:
    return verdict(_formula(text, facts))


def guard_can_raise(guard: Scalar | None, facts: Facts = NO_FACTS) -> bool:
    """Return whether evaluating a guard can fail (S81)."""
    return guard is not None and guard.is_template and _read(guard.text, facts)[1]


def _formula(text: str, facts: Facts) -> Formula:
    return _read(text, facts)[0]


@per_document
def _read(text: str, facts: Facts) -> tuple[Formula, bool]:
    """Return a guard's formula, and whether evaluating it can fail."""
    expression = _sole_expression(parse_template(text))
    opaque = OperandTest(" ".join(text.split()), HOLDS)
    if expression is None:
        return opaque, True
    reading = _Reading(text, facts)
    try:
        return reading.read(expression, item_holds), reading.can_raise
    except (_TooLargeError, RecursionError):
        return opaque, True


def names_read(guard: Scalar | None) -> frozenset[str]:
    """Return the root names that a guard reads: `outcome`, `ctx`."""
    return _names(guard.text) if guard and guard.is_template else frozenset()


@per_document
def _names(text: str) -> frozenset[str]:
    return frozenset(node.name for node in t.walk(parse_template(text)) if isinstance(node, t.Name))


def compares_only(guard: Scalar | None, path: str, value: object) -> bool:
    """True if a guard is exactly `path == value`."""
    return guard_formula(guard) == OperandTest(path, "==", value)


_Rule = TypeVar("_Rule")


def covered(rules: Iterable[tuple[_Rule, Scalar | None]]) -> list[tuple[_Rule, _Rule]]:
    """Return the rules of a first-match list that can never match because of earlier ones, each with such a one.

    A rule without a guard always matches, as `else` and an arc without `when` do.
    """
    every = list(rules)
    texts = tuple(guard.text if guard and guard.is_template else guard_formula(guard) for _, guard in every)
    return [(every[index][0], every[by][0]) for index, by in _covered(texts)]


@per_document
def _covered(texts: tuple[str | Formula, ...]) -> tuple[tuple[int, int], ...]:
    """Return the positions of guards that can never match, each with that of a guard which covers it."""
    guards = [_formula(text, NO_FACTS) if isinstance(text, str) else text for text in texts]
    alive = {index for choice in choices(guards, inclusive=False) for fired in choice for index in fired}
    dead = [index for index in range(len(guards)) if index not in alive and verdict(guards[index]) is not False]
    by = covering(guards, dead)
    first_with: dict[str, int] = {}
    for index, guard in enumerate(guards):
        for test in tests_in(guard):
            first_with.setdefault(test.operand, index)
    return tuple(
        (index, by[index] if index in by else _overlapping(first_with, guards[index], index)) for index in dead
    )


def _overlapping(first_with: dict[str, int], guard: Formula, index: int) -> int:
    """Return the first guard before `index` that shares an operand with the one there."""
    first = min((first_with[test.operand] for test in tests_in(guard)), default=index)
    return first if first < index else max(0, index - 1)


def _sole_expression(template: t.Template) -> t.Expression | None:
    """Return the expression of a template that consists of nothing else (S8)."""
    part = template.parts[0] if template.is_single and not template.problems else None
    return part.expression if isinstance(part, t.Output) else None


def constant_of(scalar: Scalar) -> object:
    """Return the value that a scalar always has, or `UNDEFINED` if it is computed."""
    return _constant(scalar.text) if scalar.is_template else scalar.value


@per_document
def _constant(text: str) -> object:
    expression = _sole_expression(parse_template(text))
    constant = Folding().constant(expression) if expression else None
    return UNDEFINED if constant is None else constant.value


class _TooLargeError(Exception):
    """The guard has more branches than are followed."""


_Then = Callable[[Item], Formula]
"""What becomes of an expression's value: the rest of the guard."""


class _Reading:
    """Evaluates one guard with operands in place of data.

    In continuation-passing style: where the expression branches, both branches go through the rest of the guard, as
    both branches of the compiled code do.
    """

    def __init__(self, text: str, facts: Facts) -> None:
        self._text = text
        self._facts = facts.items
        self._folding = Folding()
        self._left = _READS_MAX
        self.can_raise = False
        """An operation that was read can fail."""

    def read(self, node: t.Expression, then: _Then) -> Formula:
        self._left -= 1
        if self._left < 0:
            raise _TooLargeError
        constant = self._folding.constant(node)
        if constant is not None:
            return then(Known(constant.value))
        read = _READ.get(type(node))
        self.can_raise = self.can_raise or read is None
        return read(self, node, then) if read else then(Term(self._text[node.span.start : node.span.end]))

    def _all(self, nodes: Sequence[t.Expression], then: Callable[[list[Item]], Formula]) -> Formula:
        """Read expressions one after the other."""

        def further(items: list[Item]) -> Formula:
            if len(items) == len(nodes):
                return then(items)
            return self.read(nodes[len(items)], lambda item: further([*items, item]))

        return further([])

    def _either(self, item: Item, then: Callable[[], Formula], otherwise: Callable[[], Formula]) -> Formula:
        condition = item_is_true(item)
        if isinstance(condition, bool):
            return then() if condition else otherwise()
        return if_(condition, then(), otherwise())

    def _name(self, node: t.Name, then: _Then) -> Formula:
        return then(self._facts.get(node.name, Term(node.name)))

    def _attribute(self, node: t.Getattr, then: _Then) -> Formula:
        return self.read(node.node, lambda holder: then(self._field(holder, node.name)))

    def _item(self, node: t.Getitem, then: _Then) -> Formula:
        index = node.index
        if isinstance(index, t.Slice):
            bounds = [bound or t.Const(index.span, None) for bound in (index.start, index.stop, index.step)]
            return self._operation("SLICE", (), [node.node, *bounds], then)
        return self._all([node.node, index], lambda items: then(self._indexed(items[0], items[1])))

    def _indexed(self, holder: Item, key: Item) -> Item:
        if isinstance(key, Known) and isinstance(key.value, str):
            return self._field(holder, key.value)
        self.can_raise = True
        return Term(f"{item_text(holder)}[{item_text(key)}]")

    def _field(self, holder: Item, name: str) -> Item:
        if isinstance(holder, Known) and holder.value is UNDEFINED:
            return holder
        path = f"{item_text(holder)}.{name}"
        return self._facts.get(path, Term(path))

    def _listed(self, node: t.List | t.Tuple, then: _Then) -> Formula:
        return self._all(node.items, lambda items: then(listed(items)))

    def _not(self, node: t.Not, then: _Then) -> Formula:
        return self.read(node.node, lambda item: then(Truth(not_(item_is_true(item)))))

    def _compare(self, node: t.Compare, then: _Then) -> Formula:
        def further(left: Item, number: int) -> Formula:
            operand = node.ops[number]
            is_last = number == len(node.ops) - 1

            def with_right(right: Item) -> Formula:
                self.can_raise = self.can_raise or can_raise("COMPARE", (operand.op,), (left, right))
                result = compared(operand.op, left, right)
                if is_last:
                    return then(result)
                return self._either(result, lambda: further(right, number + 1), lambda: then(result))

            members = self._folding.members(operand.expression) if is_last and "in" in operand.op else None
            return with_right(Known(members.value)) if members else self.read(operand.expression, with_right)

        return self.read(node.left, lambda left: further(left, 0))

    def _junction(self, node: t.And | t.Or, then: _Then) -> Formula:
        is_or = isinstance(node, t.Or)

        def further(number: int) -> Formula:
            if number == len(node.operands) - 1:
                return self.read(node.operands[number], then)
            rest = cache(lambda: further(number + 1))

            def decided(item: Item) -> Formula:
                if is_or:
                    return self._either(item, lambda: then(item), rest)
                return self._either(item, rest, lambda: then(item))

            return self.read(node.operands[number], decided)

        return further(0)

    def _condition(self, node: t.Cond, then: _Then) -> Formula:
        yes = cache(lambda: self.read(node.then, then))
        no = cache(lambda: self.read(node.otherwise, then) if node.otherwise else then(Known(UNDEFINED)))
        return self.read(node.test, lambda item: self._either(item, yes, no))

    def _test(self, node: t.Test, then: _Then) -> Formula:
        if node.name in ("defined", "undefined"):
            return self.read(node.node, lambda item: then(is_defined(node.name == "defined", item)))
        return self._call("TEST", node.name, [node.node], node, then)

    def _filter(self, node: t.Filter, then: _Then) -> Formula:
        return self._call("FILTER", node.name, [node.node] if node.node else [], node, then)

    def _method(self, node: t.Call, then: _Then) -> Formula:
        callee = node.node
        if isinstance(callee, t.Getattr):
            return self._call("METHOD", callee.name, [callee.node], node, then)
        return self._call("CALL", callee.name if isinstance(callee, t.Name) else "", [], node, then)

    def _call(
        self, opcode: str, name: str, subject: list[t.Expression], node: t.Call | t.Filter | t.Test, then: _Then
    ) -> Formula:
        spread = [further for further in (node.dyn_args, node.dyn_kwargs) if further is not None]
        bits = (1 if node.dyn_args is not None else 0) | (2 if node.dyn_kwargs is not None else 0)
        operands = (name, len(node.args), [keyword.name for keyword in node.kwargs], bits)
        taken = [*subject, *node.args, *(keyword.value for keyword in node.kwargs), *spread]
        return self._operation(opcode, operands, taken, then)

    def _operation(self, name: str, operands: tuple[object, ...], taken: list[t.Expression], then: _Then) -> Formula:
        def done(items: list[Item]) -> Formula:
            self.can_raise = self.can_raise or can_raise(name, operands, items)
            return then(Term(operation_text(name, operands, items)))

        return self._all(taken, done)

    def _sign(self, node: t.Neg | t.Pos, then: _Then) -> Formula:
        return self._operation("NEG" if isinstance(node, t.Neg) else "POS", (), [node.node], then)

    def _binary(self, node: t.Binary, then: _Then) -> Formula:
        return self._operation(node.op, (), [node.left, node.right], then)

    def _concat(self, node: t.Concat, then: _Then) -> Formula:
        return self._operation("CONCAT", (len(node.operands),), list(node.operands), then)

    def _mapping(self, node: t.Dict, then: _Then) -> Formula:
        taken = [part for pair in node.pairs for part in (pair.key, pair.value)]
        return self._operation("MAP", (len(node.pairs),), taken, then)


_READ: dict[type[t.Expression], Callable[[_Reading, Any, _Then], Formula]] = {
    t.Name: _Reading._name,
    t.Getattr: _Reading._attribute,
    t.Getitem: _Reading._item,
    t.List: _Reading._listed,
    t.Tuple: _Reading._listed,
    t.Dict: _Reading._mapping,
    t.Not: _Reading._not,
    t.And: _Reading._junction,
    t.Or: _Reading._junction,
    t.Compare: _Reading._compare,
    t.Cond: _Reading._condition,
    t.Test: _Reading._test,
    t.Filter: _Reading._filter,
    t.Call: _Reading._method,
    t.Neg: _Reading._sign,
    t.Pos: _Reading._sign,
    t.Binary: _Reading._binary,
    t.Concat: _Reading._concat,
}


Choice: TypeAlias = ast.AdmitRule | ast.PolicyRule | ast.Branch
"""One entry of such a list."""


class FirstMatch(IdentityRecord):
    """One such list."""

    object: Literal["admit_rule", "rule", "branch"]
    """Grammar rule of its entries."""
    choices: tuple[Choice, ...]

    @property
    def title(self) -> str:
        """What an entry is called in messages."""
        return {"admit_rule": "admission rule", "rule": "policy rule", "branch": "branch"}[self.object]


def first_match_lists(model: Model) -> Iterator[FirstMatch]:
    """Yield every list of that shape in a playbook."""
    for step in model.steps:
        if step.admission_rules:
            yield FirstMatch("admit_rule", step.admission_rules)
    for flow in model.flows.values():
        for point in flow.points:
            if isinstance(point.entry, ast.Choose):
                yield FirstMatch("branch", point.entry.choose)
            elif isinstance(point.entry, ast.Task) and point.entry.rules:
                yield FirstMatch("rule", point.entry.rules)
