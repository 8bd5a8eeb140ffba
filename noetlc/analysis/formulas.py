"""Guards without their data: truth functions over tests of one operand against a constant.

Nothing is known about an operand except that it has one value while a router decides. Each operand gets a few sample
values, one for every combination of results its tests can have. A guard can hold if some samples make it hold, and two
guards over the same operand exclude or complete each other exactly if they do so over the samples.

Guards come as source (`noetlc.analysis.guards`) and as code (`noetlc.net.code_guards`). Both build formulas from the
items below, so that both get the same formula.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise, product
from typing import Final, TypeAlias

from noetlvm.language.scopes import FIELDS, Shape
from noetlvm.record import IdentityRecord, Record

STEP_DONE = "step.done"
LOOP_DONE = "loop.done"
STEP_FAILED = "step.failed"

COMBINATIONS_MAX = 4096
"""Combinations of samples to evaluate. Guards that need more are treated as independent."""


NEEDED_TESTS_MAX = 4096
"""Tests to read for the paths without which one guard cannot hold, each path taking all tests of the guard. Of a guard
that needs more, only the first paths are known."""


class _Sample:
    """A value that differs from every constant."""

    def __init__(self, is_true: bool, holds: bool) -> None:
        self.is_true = is_true
        self.holds = holds


UNDEFINED: Final = _Sample(is_true=False, holds=False)
_SOMETHING: Final = _Sample(is_true=True, holds=True)
_FALSE_AS_TEXT: Final = _Sample(is_true=True, holds=False)

_ORDERS_NOTHING: Final = tuple(f"(undefined {relation} " for relation in ("<", "<=", ">", ">="))

ORDER: Final[dict[str, Callable[[float, float], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
TRUE = "true"
"""Truth as Python defines it."""
HOLDS = "holds"
"""Truth as a guard defines it: the text `false` is false (S9)."""
TRUTHS = (TRUE, HOLDS)


class OperandTest(Record):
    operand: str
    """The operand as text; operands with equal texts are equal."""
    relation: str
    """`==`, `in`, `<`, `<=`, `>`, `>=`, `TRUE` or `HOLDS`."""
    constant: object = None
    """A list for `in`."""

    def __hash__(self) -> int:
        return hash((self.operand, self.relation, repr(self.constant)))


class IfThenElse(Record, cached=True):
    """`then` where the condition is true, `otherwise` where it is not.

    Formulas share parts: `(a or b) and (c or d) and …` has `n` parts and `2 ** n` paths. So whatever goes through a
    formula must visit a part once, and not once for each path to it.
    """

    condition: Formula
    then: Formula
    otherwise: Formula

    @property
    def parts(self) -> tuple[Formula, Formula, Formula]:
        return self.condition, self.then, self.otherwise

    @cached_property
    def _hash(self) -> int:
        return hash(self.parts)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IfThenElse):
            return NotImplemented
        pending: list[tuple[Formula, Formula]] = [(self, other)]
        seen: set[tuple[int, int]] = set()
        while pending:
            one, two = pending.pop()
            if one is two or (id(one), id(two)) in seen:
                continue
            if isinstance(one, IfThenElse) and isinstance(two, IfThenElse) and hash(one) == hash(two):
                seen.add((id(one), id(two)))
                pending += zip(one.parts, two.parts, strict=True)
            elif isinstance(one, IfThenElse) or one != two:
                return False
        return True


Formula: TypeAlias = bool | OperandTest | IfThenElse


def if_(condition: Formula, then: Formula, otherwise: Formula) -> Formula:
    if isinstance(condition, bool):
        return then if condition else otherwise
    if _repeats(condition, otherwise):
        otherwise = False
    if then == otherwise:
        return then
    if then is True and otherwise is False:
        return condition
    made = IfThenElse(condition, then, otherwise)
    hash(made)  # now that its parts have theirs: later it would take a recursion as deep as the formula
    return made


def not_(formula: Formula) -> Formula:
    return if_(formula, False, True)


def _repeats(condition: Formula, formula: Formula) -> bool:
    """True if the formula tests the truth that the condition has already established."""
    if not isinstance(condition, OperandTest) or not isinstance(formula, OperandTest) or condition.relation != TRUE:
        return False
    return formula.relation in TRUTHS and formula.operand == condition.operand


# ---- evaluation


def holds(value: object) -> bool:
    """Return the truth of a constant as a guard defines it (S9)."""
    if isinstance(value, _Sample):
        return value.holds
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    return bool(value)


def is_true(value: object) -> bool:
    """Return the truth of a constant as Python defines it."""
    return value.is_true if isinstance(value, _Sample) else bool(value)


def compare(relation: str, value: object, constant: object) -> bool:
    """Return the result of a test; values that cannot be ordered compare as false."""
    if relation == TRUE:
        return is_true(value)
    if relation == HOLDS:
        return holds(value)
    if relation == "==":
        return value == constant
    if relation == "in":
        return isinstance(constant, list | tuple) and value in constant
    return _is_number(value) and _is_number(constant) and ORDER[relation](value, constant)  # type: ignore[arg-type]


def tests_in(formula: Formula) -> Iterator[OperandTest]:
    """Yield the tests of a formula; a test may come more than once, but those of a shared part come once."""
    pending = [formula]
    seen: set[int] = set()
    while pending:
        one = pending.pop()
        if isinstance(one, OperandTest):
            yield one
        elif isinstance(one, IfThenElse) and id(one) not in seen:
            seen.add(id(one))
            pending += one.parts


def value_of(formula: Formula, samples: Mapping[str, object]) -> bool:
    """Return a formula's truth for these samples of its operands."""
    while isinstance(formula, IfThenElse):
        formula = formula.then if value_of(formula.condition, samples) else formula.otherwise
    if isinstance(formula, OperandTest):
        return compare(formula.relation, samples[formula.operand], formula.constant)
    return formula


def verdict(formula: Formula) -> bool | None:
    """Return the constant that a formula equals, or None if it depends on data."""
    if isinstance(formula, bool):
        return formula
    if isinstance(formula, OperandTest):
        return False if formula.relation == "in" and not formula.constant else None
    worlds = combinations([formula])
    if worlds is None:
        return None
    found = {value_of(formula, world) for world in worlds}
    return found.pop() if len(found) == 1 else None


def combinations(formulas: Iterable[Formula]) -> list[dict[str, object]] | None:
    """Return every combination of samples for the operands of some formulas; None if there are too many."""
    tests: dict[str, list[OperandTest]] = {}
    for formula in formulas:
        for test in tests_in(formula):
            tests.setdefault(test.operand, []).append(test)
    domains = {operand: samples_for(tested) for operand, tested in tests.items()}
    count = 1
    for domain in domains.values():
        count *= len(domain)
        if count > COMBINATIONS_MAX:
            return None
    return [dict(zip(domains, values, strict=True)) for values in product(*domains.values())]


def samples_for(tests: Iterable[OperandTest]) -> list[object]:
    """Return values of one operand, one for each combination of results that its tests can have."""
    relations: set[str] = set()
    constants: list[object] = []
    for test in tests:
        relations.add(test.relation)
        constants += constants_of(test)
    if relations & ORDER.keys():
        constants += _between([constant for constant in constants if _is_number(constant)], relations)
    others: list[object] = [UNDEFINED, _SOMETHING]
    if relations >= set(TRUTHS):
        others.append(_FALSE_AS_TEXT)
    elif not relations & set(TRUTHS):
        others.pop()  # without a test of truth, all values that equal no constant are alike
    return [*_distinct(constants), *others]


def constants_of(test: OperandTest) -> list[object]:
    if test.relation == "in":
        return list(test.constant) if isinstance(test.constant, list | tuple) else []
    return [] if test.relation in TRUTHS else [test.constant]


def _between(numbers: list[object], relations: set[str]) -> list[float]:
    """Return a number for each gap between the constants; zero counts as a constant where truth is tested."""
    points = sorted({float(number) for number in numbers} | ({0.0} if relations & set(TRUTHS) else set()))  # type: ignore[arg-type]
    gaps = [(low + high) / 2 for low, high in pairwise(points)]
    return [points[0] - 1, *points, *gaps, points[-1] + 1] if points else []


def _distinct(values: list[object]) -> list[object]:
    try:
        return list(dict.fromkeys(values))
    except TypeError:  # lists and mappings have no hash
        found: list[object] = []
        for value in values:
            if value not in found:
                found.append(value)
        return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)  # a boolean is one too, as in Python


# ---- items: what a guard computes with


class Known(Record):
    value: object

    def __hash__(self) -> int:
        return hash(repr(self.value))


class Term(Record):
    """An operand, identified by its text."""

    text: str
    is_something: bool = False
    """Defined and true; its value is unknown."""


class Truth(Record):
    """A boolean computed from tests."""

    formula: Formula


Item: TypeAlias = Known | Term | Truth


class Facts(IdentityRecord):
    """What is known for certain. Equal to itself only, so that a cache can hold what a guard becomes under it."""

    items: Mapping[str, Item]
    """By path: `event.name`."""


NO_FACTS = Facts({})
_SOME_OUTCOME = Term("outcome", is_something=True)
OK_OUTCOME = Facts({"outcome": _SOME_OUTCOME, "outcome.status": Known("ok"), "outcome.error": Known(UNDEFINED)})
ERROR_OUTCOME = Facts(
    {
        "outcome": _SOME_OUTCOME,
        "outcome.status": Known("error"),
        "outcome.error": Term("outcome.error", is_something=True),
    }
)


@lru_cache(maxsize=1024)
def event_facts(event: str, step: str, is_loop: bool) -> Facts:
    """Return what is known about `event` when a step ends with one."""
    failed = event == STEP_FAILED
    items: dict[str, Item] = {
        "event": Term("event", is_something=True),
        "event.name": Known(event),
        "event.status": Known("error" if failed else "success"),
        "event.error": Term("event.error", is_something=True) if failed else Known(UNDEFINED),
        "event.step": Known(step),
    }
    if event == LOOP_DONE:
        items["event.loop"] = Term("event.loop", is_something=True)
    elif not is_loop:
        items["event.loop"] = Known(UNDEFINED)
    return Facts(items)


def needed(guard: Callable[[Facts], Formula], paths: Iterable[str]) -> frozenset[str]:
    """Return the paths without which a guard cannot hold: it is false, or cannot be evaluated, where one is undefined.

    `guard` returns the formula that facts leave of it.
    """
    every = sorted(set(paths))
    size = max(len(every), sum(1 for _ in tests_in(guard(NO_FACTS))) if every else 0)
    return frozenset(
        path
        for path in every[: max(1, NEEDED_TESTS_MAX // max(size, 1))]
        if verdict(_without_errors(guard(Facts({path: Known(UNDEFINED)})))) is False
    )


def _without_errors(formula: Formula) -> Formula:
    """Replace what orders an undefined value, which is an error, by false."""
    made: dict[int, Formula] = {}

    def replaced(one: Formula) -> Formula:
        if isinstance(one, OperandTest):
            return False if one.operand.startswith(_ORDERS_NOTHING) else one
        return made[id(one)] if isinstance(one, IfThenElse) else one

    pending = [formula] if isinstance(formula, IfThenElse) else []
    while pending:
        one = pending[-1]
        missing = [part for part in one.parts if isinstance(part, IfThenElse) and id(part) not in made]
        pending += missing
        if not missing:
            made[id(pending.pop())] = if_(*map(replaced, one.parts))
    return replaced(formula)


_SWAPPED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPPOSITE: Final = {"!=": "==", "not in": "in"}


def compared(relation: str, left: Item, right: Item) -> Item:
    """Return a comparison: a constant, a test of one operand, or an operand of its own."""
    if isinstance(left, Known) and not isinstance(right, Known) and relation in _SWAPPED:
        left, right, relation = right, left, _SWAPPED[relation]
    positive = _OPPOSITE.get(relation, relation)
    formula = _comparison(positive, left, right)
    if formula is None:
        formula = OperandTest(f"({item_text(left)} {positive} {item_text(right)})", TRUE)
    elif isinstance(formula, bool):
        return Known(formula == (positive == relation))
    return Truth(formula if positive == relation else not_(formula))


def _comparison(relation: str, left: Item, right: Item) -> Formula | None:
    if not isinstance(right, Known) or not _is_testable(relation, right.value):
        return None
    if isinstance(left, Known):
        is_ordered = relation not in ORDER or _is_number(left.value)  # ordering anything else is an error at run time
        return compare(relation, left.value, right.value) if is_ordered else None
    return OperandTest(left.text, relation, right.value) if isinstance(left, Term) else None


def _is_testable(relation: str, constant: object) -> bool:
    if constant is UNDEFINED:
        return False
    if relation == "in":
        return isinstance(constant, list | tuple)
    return relation == "==" or isinstance(constant, int | float)


def listed(items: Sequence[Item]) -> Item:
    """Return a list of items: a constant if all of them are."""
    values = [item.value for item in items if isinstance(item, Known)]
    return Known(values) if len(values) == len(items) else Term(f"[{', '.join(map(item_text, items))}]")


def is_defined(positive: bool, item: Item) -> Item:
    """Return `item is defined`, or its negation."""
    if isinstance(item, Known):
        return Known((item.value is not UNDEFINED) == positive)
    if isinstance(item, Truth) or item.is_something:
        return Known(positive)
    test = OperandTest(f"({item.text} is defined)", TRUE)
    return Truth(test if positive else not_(test))


def item_holds(item: Item) -> Formula:
    """Return an item's truth as a guard defines it (S9)."""
    if isinstance(item, Known):
        return holds(item.value)
    if isinstance(item, Truth):
        return item.formula
    return True if item.is_something else OperandTest(item.text, HOLDS)


def item_is_true(item: Item) -> Formula:
    """Return an item's truth as Python defines it."""
    if isinstance(item, Known):
        return is_true(item.value)
    if isinstance(item, Truth):
        return item.formula
    return True if item.is_something else OperandTest(item.text, TRUE)


# ---- failures

_SHAPES = {path: field.shape for path, field in FIELDS.items()}
_SCALARS = frozenset({Shape.TEXT, Shape.INTEGER, Shape.NUMBER, Shape.BOOLEAN})
_ALWAYS_NUMBERS = frozenset({"_attempt", "outcome.meta.attempt", "outcome.meta.duration_ms", "outcome.meta.ts"})
_TYPE_TESTS = frozenset(
    {"boolean", "false", "float", "integer", "mapping", "none", "number", "sequence", "string", "true"}
)


def can_raise(name: str, operands: tuple[object, ...], items: Sequence[Item]) -> bool:
    """Return whether an operation of a guard can fail: by the types of its operands, or by their size (S12)."""
    if name == "COMPARE":
        return _comparison_can_raise(str(operands[0]), items[0], items[1])
    if name == "TEST":
        return operands[0] not in _TYPE_TESTS or len(items) > 1
    return name not in ("CONST", "UNDEFINED", "NOT", "TRUTH", "NAME", "BARE", "ATTR", "LIST", "TUPLE")


def _comparison_can_raise(relation: str, left: Item, right: Item) -> bool:
    if relation in ("==", "!="):
        return not (_is_scalar(left) or _is_scalar(right))
    if relation in ("in", "not in"):
        return not (isinstance(right, Known) and isinstance(right.value, list | tuple) and _is_scalar(left))
    return not (_is_surely_number(left) and _is_surely_number(right))


def _is_scalar(item: Item) -> bool:
    if isinstance(item, Known):
        return item.value is UNDEFINED or not isinstance(item.value, list | tuple | dict)
    return isinstance(item, Truth) or _SHAPES.get(item.text) in _SCALARS


def _is_surely_number(item: Item) -> bool:
    if isinstance(item, Known):
        return isinstance(item.value, int | float)
    return isinstance(item, Term) and item.text in _ALWAYS_NUMBERS


# ---- text


def item_text(item: Item) -> str:
    """Write an item; operands are identified by this text."""
    if isinstance(item, Known):
        return constant_text(item.value)
    return item.text if isinstance(item, Term) else f"({text(item.formula)})"


_SIGNS = {"ADD": "+", "SUB": "-", "MUL": "*", "DIV": "/", "FLOORDIV": "//", "MOD": "%", "POW": "**"}


def operation_text(name: str, operands: tuple[object, ...], taken: Sequence[Item]) -> str:
    """Write an operation, named by its opcode or its sign. Different operations have different texts."""
    items = [item_text(item) for item in taken]
    sign = _SIGNS.get(name, name)
    if sign in _SIGNS.values():
        return f"({items[0]} {sign} {items[1]})"
    if name in ("FILTER", "TEST", "METHOD"):
        word = {"FILTER": " | ", "TEST": " is ", "METHOD": "."}[name] + str(operands[0])
        further = [*items[1:], *map(str, operands[2:])] if operands[2:] != ([], 0) else items[1:]
        arguments = f"({', '.join(further)})" if further or name == "METHOD" else ""
        return f"{items[0]}{word}{arguments}"
    return f"{name.lower()}({', '.join([*map(repr, operands), *items])})"


def constant_text(value: object) -> str:
    """Write a constant as a template does."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(constant_text(item) for item in value)}]"
    return "undefined" if value is UNDEFINED else repr(value)


def text(formula: Formula) -> str:
    if isinstance(formula, bool):
        return str(formula).lower()
    if isinstance(formula, OperandTest):
        return formula.operand if formula.relation in TRUTHS else _relation(formula, formula.relation)
    return _conditional(formula)


def text_length(formula: Formula) -> int:
    """Return about how long the text of a formula is, without writing it: shared parts are written at every use."""
    known: dict[int, int] = {}

    def length(one: Formula) -> int:
        if not isinstance(one, IfThenElse):
            return len(text(one))
        if id(one) not in known:
            known[id(one)] = sum(map(length, one.parts))
        return known[id(one)]

    return length(formula)


def _relation(test: OperandTest, word: str) -> str:
    return f"{test.operand} {word} {constant_text(test.constant)}"


def _conditional(formula: IfThenElse) -> str:
    condition, then, otherwise = formula.condition, formula.then, formula.otherwise
    if then is False and otherwise is True:
        if isinstance(condition, OperandTest) and condition.relation in ("==", "in"):
            return _relation(condition, {"==": "!=", "in": "not in"}[condition.relation])
        return f"not {_part(condition)}"
    if otherwise is False:
        return f"{_part(condition)} and {_part(then)}"
    if then is True or _repeats(condition, then):
        return f"{_part(condition)} or {_part(otherwise)}"
    return f"{_part(then)} if {_part(condition)} else {_part(otherwise)}"


def _part(formula: Formula) -> str:
    written = text(formula)
    return f"({written})" if isinstance(formula, IfThenElse) and not written.startswith("not ") else written
