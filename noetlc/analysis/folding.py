"""Constant folding: which expressions are constants, and of what value. Bounded, and it never changes meaning.

An expression is folded only if evaluating it cannot fail and its value is small, a plain constant and the same
everywhere. What is in doubt (division by zero, a text repeated, an ordering of unlike types) is left to the machine.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from noetlc.syntax import template_ast as t

if TYPE_CHECKING:
    from noetlvm.bytecode.program import Value

INTEGER_MAX = 1 << 53
"""Arithmetic is folded below this size, where floats still count every integer."""

TEXT_MAX = 1_024
"""Characters of a text that joining constants may make."""


class Constant(NamedTuple):
    value: Value


class Folding:
    """Folds the expressions of one template; each is looked at once."""

    def __init__(self) -> None:
        self._known: dict[int, Constant | None] = {}

    def constant(self, node: t.Expression) -> Constant | None:
        """Return an expression's constant value, or None if it has none."""
        if isinstance(node, t.Const):
            return Constant(node.value)
        key = id(node)
        if key not in self._known:
            fold = _FOLD.get(type(node))
            self._known[key] = fold(self, node) if fold else None
        return self._known[key]

    def truth(self, node: t.Expression) -> bool | None:
        """Return whether an expression is always true or always false, or None."""
        constant = self.constant(node)
        return None if constant is None else bool(constant.value)

    def members(self, node: t.Expression) -> Constant | None:
        """Return the constant items of what `in` looks into; there a tuple is as good as a list."""
        return self._items(node) if isinstance(node, t.Tuple) else self.constant(node)

    def _items(self, node: t.List | t.Tuple) -> Constant | None:
        values: list[Value] = []
        for item in node.items:
            constant = self.constant(item)
            if constant is None:
                return None
            values.append(constant.value)
        return Constant(values)

    def _dict(self, node: t.Dict) -> Constant | None:
        mapping: dict[str, Value] = {}
        for pair in node.pairs:
            key, value = self.constant(pair.key), self.constant(pair.value)
            if key is None or value is None or not isinstance(key.value, str):
                return None
            mapping[key.value] = value.value
        return Constant(mapping)

    def _not(self, node: t.Not) -> Constant | None:
        truth = self.truth(node.node)
        return None if truth is None else Constant(not truth)

    def _sign(self, node: t.Neg | t.Pos) -> Constant | None:
        constant = self.constant(node.node)
        if constant is None or not _is_number(constant.value):
            return None
        return constant if isinstance(node, t.Pos) else Constant(-constant.value)  # type: ignore[operator]

    def _binary(self, node: t.Binary) -> Constant | None:
        left, right = self.constant(node.left), self.constant(node.right)
        if left is None or right is None:
            return None
        if node.op == "+" and isinstance(left.value, str) and isinstance(right.value, str):
            return _text(left.value + right.value)
        return _arithmetic(node.op, left.value, right.value)

    def _concat(self, node: t.Concat) -> Constant | None:
        texts: list[str] = []
        for operand in node.operands:
            constant = self.constant(operand)
            if constant is None or not isinstance(constant.value, str):
                return None
            texts.append(constant.value)
        return _text("".join(texts))

    def _compare(self, node: t.Compare) -> Constant | None:
        left = self.constant(node.left)
        holds = True
        for operand in node.ops:
            # Further on in a chain, a tuple is compared itself and must stay one.
            is_container = operand.op in ("in", "not in") and operand is node.ops[-1]
            right = self.members(operand.expression) if is_container else self.constant(operand.expression)
            result = None if left is None or right is None else _comparison(operand.op, left.value, right.value)
            if result is None:
                return None
            holds = holds and result
            left = right
        return Constant(holds)

    def _junction(self, node: t.And | t.Or) -> Constant | None:
        """Return the operand that decides, if all before it are constants too."""
        for operand in node.operands[:-1]:
            constant = self.constant(operand)
            if constant is None or bool(constant.value) == isinstance(node, t.Or):
                return constant
        return self.constant(node.operands[-1])

    def _cond(self, node: t.Cond) -> Constant | None:
        truth = self.truth(node.test)
        if truth is None:
            return None
        chosen = node.then if truth else node.otherwise
        return None if chosen is None else self.constant(chosen)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(text: str) -> Constant | None:
    return Constant(text) if len(text) <= TEXT_MAX else None


_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}


def _arithmetic(op: str, left: Value, right: Value) -> Constant | None:
    if op not in _ARITHMETIC or not (_is_small(left) and _is_small(right)):
        return None
    if op in ("/", "//", "%") and right == 0:
        return None
    assert isinstance(left, int | float)
    assert isinstance(right, int | float)
    result = _ARITHMETIC[op](left, right)
    return Constant(result) if _is_small(result) else None


def _is_small(value: object) -> bool:
    return _is_number(value) and math.isfinite(value) and abs(value) < INTEGER_MAX  # type: ignore[arg-type]


_ORDERINGS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _comparison(op: str, left: Value, right: Value) -> bool | None:
    if op in ("==", "!="):
        return (left == right) == (op == "==")
    if op in ("in", "not in"):
        found = _contains(right, left)
        return None if found is None else found == (op == "in")
    alike = (_is_number(left) and _is_number(right)) or (isinstance(left, str) and isinstance(right, str))
    return bool(_ORDERINGS[op](left, right)) if alike else None


def _contains(holder: Value, item: Value) -> bool | None:
    if isinstance(holder, list):
        return item in holder
    if isinstance(holder, str | dict) and isinstance(item, str):
        return item in holder
    return None


_FOLD: dict[type[t.Expression], Callable[..., Constant | None]] = {
    t.List: Folding._items,
    t.Dict: Folding._dict,
    t.Not: Folding._not,
    t.Neg: Folding._sign,
    t.Pos: Folding._sign,
    t.Binary: Folding._binary,
    t.Concat: Folding._concat,
    t.Compare: Folding._compare,
    t.And: Folding._junction,
    t.Or: Folding._junction,
    t.Cond: Folding._cond,
}
