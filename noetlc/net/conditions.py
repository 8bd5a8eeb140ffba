"""What is left of a guard once data is gone: a truth function of tests, each of one operand against a constant.

Nothing is known of an operand but that it has one value while a router decides. So each operand gets a few sample
values, one for every way in which its tests can turn out, and a guard may hold if some samples make it hold. Two
guards that test the same operand exclude or complete each other exactly as far as the samples say so.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise, product
from typing import Final, TypeAlias

from noetlvm.record import Record

COMBINATIONS_MAX = 4096
"""Samples that are tried together. Guards that need more are taken to be independent of each other."""


class _Sample:
    """A value that is like no constant."""

    def __init__(self, is_true: bool, holds: bool) -> None:
        self.is_true = is_true
        self.holds = holds


UNDEFINED: Final = _Sample(is_true=False, holds=False)
_SOMETHING: Final = _Sample(is_true=True, holds=True)
_FALSE_AS_TEXT: Final = _Sample(is_true=True, holds=False)

_ORDER: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
TRUE = "true"
"""The test whether an operand is true as Python has it."""
HOLDS = "holds"
"""The test whether an operand is true as a guard has it: a text may read false (S9)."""
_TRUTHS = (TRUE, HOLDS)


class Test(Record):
    """A question to one operand."""

    operand: str
    """The operand as text; two operands are the same if their texts are."""
    relation: str
    """`==`, `in`, `<`, `<=`, `>`, `>=`, or a test of truth."""
    constant: object = None
    """A list for `in`."""

    def __hash__(self) -> int:
        return hash((self.operand, self.relation, repr(self.constant)))


class If(Record):
    """One formula or another, by a third."""

    condition: Formula
    then: Formula
    otherwise: Formula


Formula: TypeAlias = bool | Test | If


def if_(condition: Formula, then: Formula, otherwise: Formula) -> Formula:
    """Return a conditional in its simplest form."""
    if isinstance(condition, bool):
        return then if condition else otherwise
    if _asks_again(condition, otherwise):
        otherwise = False
    if then == otherwise:
        return then
    return condition if then is True and otherwise is False else If(condition, then, otherwise)


def not_(formula: Formula) -> Formula:
    """Return the opposite of a formula."""
    return if_(formula, False, True)


def holds(value: object) -> bool:
    """Return the truth of a constant as a guard has it (S9)."""
    if isinstance(value, _Sample):
        return value.holds
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    return bool(value)


def is_true(value: object) -> bool:
    """Return the truth of a constant as Python has it."""
    return value.is_true if isinstance(value, _Sample) else bool(value)


def compare(relation: str, value: object, constant: object) -> bool:
    """Return how a test turns out for a value; what cannot be compared is not so."""
    if relation == TRUE:
        return is_true(value)
    if relation == HOLDS:
        return holds(value)
    if relation == "==":
        return value == constant
    if relation == "in":
        return isinstance(constant, list | tuple) and value in constant
    return _is_number(value) and _is_number(constant) and _ORDER[relation](value, constant)  # type: ignore[arg-type]


def tests_in(formula: Formula) -> Iterator[Test]:
    """Yield each test of a formula, some more than once."""
    waiting = [formula]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Test):
            yield one
        elif isinstance(one, If):
            waiting += (one.condition, one.then, one.otherwise)


def value_of(formula: Formula, samples: Mapping[str, object]) -> bool:
    """Return a formula's truth where each operand has its sample."""
    while isinstance(formula, If):
        formula = formula.then if value_of(formula.condition, samples) else formula.otherwise
    if isinstance(formula, Test):
        return compare(formula.relation, samples[formula.operand], formula.constant)
    return formula


def verdict(formula: Formula) -> bool | None:
    """Return what a formula always is, or None if it may be either."""
    if isinstance(formula, bool):
        return formula
    worlds = combinations([formula])
    if worlds is None:
        return None
    found = {value_of(formula, world) for world in worlds}
    return found.pop() if len(found) == 1 else None


def combinations(formulas: Iterable[Formula]) -> list[dict[str, object]] | None:
    """Return every combination of samples for the operands of some formulas; None if there are too many."""
    tests: dict[str, list[Test]] = {}
    for formula in formulas:
        for test in tests_in(formula):
            tests.setdefault(test.operand, []).append(test)
    domains = {operand: _samples(asked) for operand, asked in tests.items()}
    count = 1
    for domain in domains.values():
        count *= len(domain)
        if count > COMBINATIONS_MAX:
            return None
    return [dict(zip(domains, values, strict=True)) for values in product(*domains.values())]


def _samples(tests: list[Test]) -> list[object]:
    """Return values of one operand, one for each way in which its tests can turn out."""
    relations = {test.relation for test in tests}
    constants: list[object] = []
    for test in tests:
        if test.relation == "in":
            constants += test.constant if isinstance(test.constant, list | tuple) else ()
        elif test.relation not in _TRUTHS:
            constants.append(test.constant)
    if relations & _ORDER.keys():
        constants += _between([constant for constant in constants if _is_number(constant)], relations)
    others: list[object] = [UNDEFINED, _SOMETHING]
    if relations >= set(_TRUTHS):
        others.append(_FALSE_AS_TEXT)
    elif not relations & set(_TRUTHS):
        others.pop()  # what equals no constant is all alike
    return [*_distinct(constants), *others]


def _between(numbers: list[object], relations: set[str]) -> list[float]:
    """Return a number for each gap around the constants; zero is a special one where truth is asked for."""
    points = sorted({float(number) for number in numbers} | ({0.0} if relations & set(_TRUTHS) else set()))  # type: ignore[arg-type]
    gaps = [(low + high) / 2 for low, high in pairwise(points)]
    return [points[0] - 1, *points, *gaps, points[-1] + 1] if points else []


def _distinct(values: list[object]) -> list[object]:
    found: list[object] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)  # a boolean is one too, as in Python


def text(formula: Formula) -> str:
    """Write a formula as people would."""
    if isinstance(formula, bool):
        return str(formula).lower()
    if isinstance(formula, Test):
        return formula.operand if formula.relation in _TRUTHS else _relation(formula, formula.relation)
    return _conditional(formula)


def _relation(test: Test, word: str) -> str:
    return f"{test.operand} {word} {constant_text(test.constant)}"


def _conditional(formula: If) -> str:
    condition, then, otherwise = formula.condition, formula.then, formula.otherwise
    if then is False and otherwise is True:
        if isinstance(condition, Test) and condition.relation in ("==", "in"):
            return _relation(condition, {"==": "!=", "in": "not in"}[condition.relation])
        return f"not {_part(condition)}"
    if otherwise is False:
        return f"{_part(condition)} and {_part(then)}"
    if then is True or _asks_again(condition, then):
        return f"{_part(condition)} or {_part(otherwise)}"
    return f"{_part(then)} if {_part(condition)} else {_part(otherwise)}"


def _asks_again(condition: Formula, formula: Formula) -> bool:
    """Tell whether a formula asks for the truth that the condition has found out already."""
    if not isinstance(condition, Test) or not isinstance(formula, Test) or condition.relation != TRUE:
        return False
    return formula.relation in _TRUTHS and formula.operand == condition.operand


def _part(formula: Formula) -> str:
    written = text(formula)
    return f"({written})" if isinstance(formula, If) and not written.startswith("not ") else written


def constant_text(value: object) -> str:
    """Write a constant as a template has it."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(constant_text(item) for item in value)}]"
    return "undefined" if value is UNDEFINED else repr(value)
