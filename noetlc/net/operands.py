"""What a guard works with, once data is gone: constants, operands that stand for data, and booleans made of tests.

Guards come as code and as source; both are brought into these terms.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final, TypeAlias

from noetlc.net.conditions import (
    HOLDS,
    TRUE,
    UNDEFINED,
    Formula,
    Test,
    compare,
    constant_text,
    holds,
    is_true,
    not_,
    text,
)
from noetlc.net.net import LOOP_DONE, STEP_FAILED
from noetlvm.record import Record


class Known(Record):
    """A constant on the stack."""

    value: object

    def __hash__(self) -> int:
        return hash(repr(self.value))


class Term(Record):
    """An operand on the stack, by its text."""

    text: str
    is_something: bool = False
    """It is there and true, and nothing else is known of it."""


class Truth(Record):
    """A boolean on the stack."""

    formula: Formula


Item: TypeAlias = Known | Term | Truth

Facts: TypeAlias = Mapping[str, Item]
"""What is taken for granted, by path: `event.name`."""

NO_FACTS: Facts = MappingProxyType({})
OK_OUTCOME: Facts = MappingProxyType({"outcome.status": Known("ok"), "outcome.error": Known(UNDEFINED)})
ERROR_OUTCOME: Facts = MappingProxyType(
    {"outcome.status": Known("error"), "outcome.error": Term("outcome.error", is_something=True)}
)
NO_OUTCOME: Facts = MappingProxyType({"outcome": Known(UNDEFINED)})


@lru_cache(maxsize=1024)
def event_facts(event: str, step: str, is_loop: bool) -> Facts:
    """Return what is known of `event` when a step ends with one."""
    failed = event == STEP_FAILED
    facts: dict[str, Item] = {
        "event": Term("event", is_something=True),
        "event.name": Known(event),
        "event.status": Known("error" if failed else "success"),
        "event.error": Term("event.error", is_something=True) if failed else Known(UNDEFINED),
        "event.step": Known(step),
    }
    if event == LOOP_DONE:
        facts["event.loop"] = Term("event.loop", is_something=True)
    elif not is_loop:
        facts["event.loop"] = Known(UNDEFINED)
    return facts


_SWAPPED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPPOSITE: Final = {"!=": "==", "not in": "in"}


def compared(relation: str, left: Item, right: Item) -> Item:
    """Return a comparison: known, a test of one operand, or an operand of its own."""
    if isinstance(left, Known) and not isinstance(right, Known) and relation in _SWAPPED:
        left, right, relation = right, left, _SWAPPED[relation]
    positive = _OPPOSITE.get(relation, relation)
    formula = _comparison(positive, left, right)
    if formula is None:
        formula = Test(f"({item_text(left)} {positive} {item_text(right)})", TRUE)
    elif isinstance(formula, bool):
        return Known(formula == (positive == relation))
    return Truth(formula if positive == relation else not_(formula))


def _comparison(relation: str, left: Item, right: Item) -> Formula | None:
    if not isinstance(right, Known) or not _is_testable(relation, right.value):
        return None
    if isinstance(left, Known):
        return compare(relation, left.value, right.value)
    return Test(left.text, relation, right.value) if isinstance(left, Term) else None


def _is_testable(relation: str, constant: object) -> bool:
    if constant is UNDEFINED:
        return False
    if relation == "in":
        return isinstance(constant, list | tuple)
    return relation == "==" or isinstance(constant, int | float)


def is_defined(positive: bool, item: Item) -> Item:
    """Return whether an operand is defined, or its opposite."""
    if isinstance(item, Known):
        return Known((item.value is not UNDEFINED) == positive)
    if isinstance(item, Truth) or item.is_something:
        return Known(positive)
    test = Test(f"({item.text} is defined)", TRUE)
    return Truth(test if positive else not_(test))


def item_holds(item: Item) -> Formula:
    """Return an operand's truth as a guard has it (S9)."""
    if isinstance(item, Known):
        return holds(item.value)
    if isinstance(item, Truth):
        return item.formula
    return True if item.is_something else Test(item.text, HOLDS)


def item_is_true(item: Item) -> Formula:
    """Return an operand's truth as Python has it."""
    if isinstance(item, Known):
        return is_true(item.value)
    if isinstance(item, Truth):
        return item.formula
    return True if item.is_something else Test(item.text, TRUE)


def item_text(item: Item) -> str:
    """Write an operand as people would; it is known by its text."""
    if isinstance(item, Known):
        return constant_text(item.value)
    return item.text if isinstance(item, Term) else f"({text(item.formula)})"
