"""What the tests of expressions do (`x is even`); the project's own tests live elsewhere."""

from __future__ import annotations

from collections.abc import Callable

from noetlvm.expr.fuel import Fuel
from noetlvm.expr.operations import COMPARE, contains, modulo
from noetlvm.expr.values import CONTAINERS, Data, Undefined, text

Test = Callable[..., bool]


def _of_type(*types: type) -> Test:
    return lambda fuel, value: isinstance(value, types)


def _remainder(wanted: int) -> Test:
    return lambda fuel, value: bool(modulo(fuel, value, 2) == wanted)


def _divisible(fuel: Fuel, value: Data, num: Data) -> bool:
    return bool(modulo(fuel, value, num) == 0)


def _comparison(op: str) -> Test:
    compare = COMPARE[op]

    def holds(fuel: Fuel, value: Data, b: Data, /) -> bool:
        return compare(fuel, value, b)

    return holds


def _in(fuel: Fuel, value: Data, seq: Data) -> bool:
    return contains(fuel, value, seq)


TEST_CALLS: dict[str, Test] = {
    "boolean": _of_type(bool),
    "defined": lambda fuel, value: type(value) is not Undefined,
    "divisibleby": _divisible,
    "even": _remainder(0),
    "false": lambda fuel, value: value is False,
    "float": _of_type(float),
    "in": _in,
    "integer": lambda fuel, value: isinstance(value, int) and not isinstance(value, bool),
    "iterable": _of_type(str, Undefined, *CONTAINERS),
    "lower": lambda fuel, value: text(fuel, value).islower(),
    "mapping": _of_type(dict),
    "none": lambda fuel, value: value is None,
    "number": _of_type(int, float),
    "odd": _remainder(1),
    "sequence": _of_type(str, Undefined, *CONTAINERS),
    "string": _of_type(str),
    "true": lambda fuel, value: value is True,
    "undefined": _of_type(Undefined),
    "upper": lambda fuel, value: text(fuel, value).isupper(),
    **{name: _comparison("==") for name in ("==", "eq", "equalto")},
    **{name: _comparison("!=") for name in ("!=", "ne")},
    **{name: _comparison("<") for name in ("<", "lt", "lessthan")},
    **{name: _comparison("<=") for name in ("<=", "le")},
    **{name: _comparison(">") for name in (">", "gt", "greaterthan")},
    **{name: _comparison(">=") for name in (">=", "ge")},
}
