"""What can be said of a `when` before a run: whether it always holds, what it reads, and whether it covers another.

Guards are data, so most of them may hold or not. Where facts are given (the outcome is an error), they decide what
they can. Nothing here looks at anything but the guard itself, and what is unsure is said to be unknown.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final, TypeVar

from noetlc.syntax import template_ast as t
from noetlc.syntax.nodes import Scalar
from noetlc.syntax.template_parser import parse_template


class _Unknown:
    """A value that only a run can tell."""


class _Something:
    """A value that is there and true, and of which nothing else is known."""


_UNKNOWN: Final = _Unknown()
SOMETHING: Final = _Something()

Facts = Mapping[str, object]
"""What is taken for granted, by path: `outcome.status` to `error`."""

NO_FACTS: Facts = MappingProxyType({})
ERROR_OUTCOME: Facts = MappingProxyType({"outcome": SOMETHING, "outcome.status": "error", "outcome.error": SOMETHING})
STEP_FAILED: Facts = MappingProxyType(
    {"event": SOMETHING, "event.name": "step.failed", "event.status": "error", "event.error": SOMETHING}
)

OTHER_NAMES = ("condition", "cond", "expr", "expression", "guard", "if", "only_if", "unless")
"""Keys that people write for `when`; where one stands, a guard was meant."""

_COMPARE: dict[str, Callable[[object, object], object]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": lambda left, right: left < right,  # type: ignore[operator]  # what cannot be compared is caught below
    "<=": lambda left, right: left <= right,  # type: ignore[operator]
    ">": lambda left, right: left > right,  # type: ignore[operator]
    ">=": lambda left, right: left >= right,  # type: ignore[operator]
    "in": lambda left, right: left in right,  # type: ignore[operator]
    "not in": lambda left, right: left not in right,  # type: ignore[operator]
}

_TEXT_OR_SPACE = re.compile(r"""('[^']*'|"[^"]*")|\s+""")


def decide(guard: Scalar | None, facts: Facts = NO_FACTS) -> bool | None:
    """Return what a guard gives whenever the facts are so, or None if that depends on the run.

    A guard that is not there holds.
    """
    if guard is None:
        return True
    if isinstance(guard.value, bool):
        return guard.value
    if not guard.is_template:
        return _truth(guard.value)
    template = parse_template(guard.text)
    expression = _sole_expression(template)
    return _known_truth(_value(expression, facts)) if expression else None


@lru_cache(maxsize=4096)
def _names(text: str) -> frozenset[str]:
    return frozenset(node.name for node in t.walk(parse_template(text)) if isinstance(node, t.Name))


def names_read(guard: Scalar | None) -> frozenset[str]:
    """Return the first names of everything that a guard reads: `outcome`, `ctx`."""
    return _names(guard.text) if guard and guard.is_template else frozenset()


def compares_only(guard: Scalar | None, path: str, value: object) -> bool:
    """Tell whether a guard asks exactly one thing: `path == value`."""
    expression = _sole_expression(parse_template(guard.text)) if guard and guard.is_template else None
    if not isinstance(expression, t.Compare) or len(expression.ops) != 1 or expression.ops[0].op != "==":
        return False
    left, right = expression.left, expression.ops[0].expression
    return (_path(left) == path and _is_const(right, value)) or (_path(right) == path and _is_const(left, value))


_Rule = TypeVar("_Rule")


def covered(rules: Iterable[tuple[_Rule, Scalar | None]]) -> list[tuple[_Rule, _Rule]]:
    """Return the rules of a first-match list that an earlier one leaves nothing for, each with that earlier rule.

    A rule without a guard takes all that is left, as `else` and an arc without `when` do.
    """
    found: list[tuple[_Rule, _Rule]] = []
    takes_all: _Rule | None = None
    by_conjunct: dict[str, list[tuple[frozenset[str], _Rule]]] = {}
    for rule, guard in rules:
        if takes_all is not None:
            found.append((rule, takes_all))
            continue
        always = decide(guard)
        if always is None and guard is not None:
            cases = _cases(guard.text)
            earlier = [_covering(case, by_conjunct) for case in cases]
            if earlier and earlier[0] is not None and None not in earlier:
                found.append((rule, earlier[0]))
            for case in cases:
                by_conjunct.setdefault(min(case), []).append((case, rule))
        elif always:
            takes_all = rule
    return found


def _covering(case: frozenset[str], by_conjunct: Mapping[str, list[tuple[frozenset[str], _Rule]]]) -> _Rule | None:
    for conjunct in sorted(case):
        for earlier, rule in by_conjunct.get(conjunct, ()):
            if earlier <= case:
                return rule
    return None


@lru_cache(maxsize=4096)
def _cases(text: str) -> tuple[frozenset[str], ...]:
    """Return the alternatives of a guard, each as the set of conditions that it joins by `and`."""
    template = parse_template(text)
    expression = _sole_expression(template)
    if expression is None:
        return (frozenset({_squeezed(text)}),)
    alternatives = expression.operands if isinstance(expression, t.Or) else (expression,)
    return tuple(
        frozenset(_squeezed(text[part.span.start : part.span.end]) for part in _conjuncts(case))
        for case in alternatives
    )


def _conjuncts(expression: t.Expression) -> tuple[t.Expression, ...]:
    return expression.operands if isinstance(expression, t.And) else (expression,)


def _squeezed(text: str) -> str:
    """Drop the white space that means nothing."""
    return _TEXT_OR_SPACE.sub(lambda found: found.group(1) or " ", text.strip())


def _sole_expression(template: t.Template) -> t.Expression | None:
    """Return the expression of a template that is nothing else (S8)."""
    part = template.parts[0] if template.is_single and not template.problems else None
    return part.expression if isinstance(part, t.Output) else None


def _truth(value: object) -> bool:
    """S9: Python's truth, but a text that reads true or false is that boolean."""
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    return bool(value)


def _known_truth(value: object) -> bool | None:
    return None if value is _UNKNOWN else _truth(value)


def _value(expression: t.Expression, facts: Facts) -> object:
    """Return an expression's value, as far as the facts decide it."""
    evaluate = _EVALUATE.get(type(expression))
    return evaluate(expression, facts) if evaluate else _UNKNOWN


def _const(node: t.Const, facts: Facts) -> object:
    return node.value


def _listed(node: t.List | t.Tuple, facts: Facts) -> object:
    values = [_value(item, facts) for item in node.items]
    return _UNKNOWN if any(value is _UNKNOWN or value is SOMETHING for value in values) else values


def _fact(node: t.Expression, facts: Facts) -> object:
    path = _path(node) if facts else ""
    return facts.get(path, _UNKNOWN) if path else _UNKNOWN


def _not(node: t.Not, facts: Facts) -> object:
    truth = _known_truth(_value(node.node, facts))
    return _UNKNOWN if truth is None else not truth


def _and(node: t.And, facts: Facts) -> object:
    truths = [_known_truth(_value(operand, facts)) for operand in node.operands]
    return False if False in truths else _UNKNOWN if None in truths else True


def _or(node: t.Or, facts: Facts) -> object:
    truths = [_known_truth(_value(operand, facts)) for operand in node.operands]
    return True if True in truths else _UNKNOWN if None in truths else False


def _compare(node: t.Compare, facts: Facts) -> object:
    left = _value(node.left, facts)
    for operand in node.ops:
        right = _value(operand.expression, facts)
        if not _are_plain(left, right) or operand.op not in _COMPARE:
            return _UNKNOWN
        try:
            holds = bool(_COMPARE[operand.op](left, right))
        except TypeError:  # such as a number compared with a text: a mistake that another rule tells of
            return _UNKNOWN
        if not holds:
            return False
        left = right
    return True


def _are_plain(*values: object) -> bool:
    return not any(isinstance(value, _Unknown | _Something) for value in values)


def _test(node: t.Test, facts: Facts) -> object:
    if node.name not in ("defined", "undefined") or _value(node.node, facts) is _UNKNOWN:
        return _UNKNOWN
    return node.name == "defined"


_EVALUATE: dict[type[t.Expression], Callable[..., object]] = {
    t.Const: _const,
    t.List: _listed,
    t.Tuple: _listed,
    t.Name: _fact,
    t.Getattr: _fact,
    t.Getitem: _fact,
    t.Not: _not,
    t.And: _and,
    t.Or: _or,
    t.Compare: _compare,
    t.Test: _test,
}


def _path(node: t.Expression) -> str:
    """Return `outcome.http.status` for an expression that is such a path, or an empty string."""
    fields: list[str] = []
    while not isinstance(node, t.Name):
        if isinstance(node, t.Getattr):
            fields.append(node.name)
        elif isinstance(node, t.Getitem) and isinstance(node.index, t.Const) and isinstance(node.index.value, str):
            fields.append(node.index.value)
        else:
            return ""
        node = node.node
    return ".".join([node.name, *reversed(fields)])


def _is_const(node: t.Expression, value: object) -> bool:
    return isinstance(node, t.Const) and node.value == value
