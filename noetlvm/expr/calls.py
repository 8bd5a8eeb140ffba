"""Calls of filters, tests, functions and methods by name: lookup, and whether the arguments fit.

Every implementation takes the fuel, then the piped, tested or receiving value (null for a function), then arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple

from noetlvm.bytecode.isa import OpcodeName
from noetlvm.expr.errors import ErrorKind, ExpressionError, Fuel
from noetlvm.expr.operations import COMPARE, contains, modulo
from noetlvm.expr.values import (
    CONTAINERS,
    ITEM_BYTES,
    LIST_BYTES,
    MAP_BYTES,
    PAIR_BYTES,
    Data,
    Masked,
    Undefined,
    elements,
    hashable,
    text,
    wrong_type,
)
from noetlvm.language.filters import FILTERS, FUNCTIONS, TESTS
from noetlvm.language.methods import METHODS, Signature

Test = Callable[..., bool]


def _of_type(*types: type) -> Test:
    def holds(fuel: Fuel, value: Data) -> bool:
        if type(value) is Masked:
            raise value.error()
        return isinstance(value, types)

    return holds


def _remainder(wanted: int) -> Test:
    return lambda fuel, value: bool(modulo(fuel, value, 2) == wanted)


def _comparison(op: str) -> Test:
    compare = COMPARE[op]

    def holds(fuel: Fuel, value: Data, b: Data, /) -> bool:
        return compare(fuel, value, b)

    return holds


TEST_CALLS: dict[str, Test] = {
    "boolean": _of_type(bool),
    "defined": lambda fuel, value: type(value) is not Undefined,
    "divisibleby": lambda fuel, value, num: bool(modulo(fuel, value, num) == 0),
    "even": _remainder(0),
    "false": lambda fuel, value: value is False,
    "float": _of_type(float),
    "in": lambda fuel, value, seq: contains(fuel, value, seq),
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
    "undefined": lambda fuel, value: type(value) is Undefined,
    "upper": lambda fuel, value: text(fuel, value).isupper(),
    **{name: _comparison("==") for name in ("==", "eq", "equalto")},
    **{name: _comparison("!=") for name in ("!=", "ne")},
    **{name: _comparison("<") for name in ("<", "lt", "lessthan")},
    **{name: _comparison("<=") for name in ("<=", "le")},
    **{name: _comparison(">") for name in (">", "gt", "greaterthan")},
    **{name: _comparison(">=") for name in (">=", "ge")},
}


_NUMBER_BYTES = 32


def range_(fuel: Fuel, _value: Data, *bounds: Data) -> list[int]:
    """Return whole numbers in order, of one, two or three bounds as Python takes them."""
    numbers = range(*bounds)
    count = max(0, -(-(numbers.stop - numbers.start) // numbers.step))
    fuel.spend(count >> 2)
    fuel.make(LIST_BYTES + (ITEM_BYTES + _NUMBER_BYTES) * count)
    return list(numbers)


def dict_(fuel: Fuel, _value: Data, mapping: Data = (), /, **further: Data) -> dict[Data, Data]:
    """Return a new mapping of a mapping or pairs, and of named values."""
    if isinstance(mapping, Undefined):
        raise mapping.error()
    made: dict[Data, Data] = {}
    pairs = mapping.items() if isinstance(mapping, dict) else elements(fuel, mapping)
    fuel.spend(len(pairs))
    fuel.make(MAP_BYTES + PAIR_BYTES * (len(pairs) + len(further)))
    for key, value in pairs:
        made[hashable(fuel, key)] = value
    made.update(further)
    return made


FUNCTION_CALLS: dict[str, Callable[..., Data]] = {"range": range_, "dict": dict_}


Implementation = Callable[..., Data]


class CallTarget(NamedTuple):
    """What a name stands for."""

    function: Implementation
    signature: Signature


SIGNATURES: dict[str, Mapping[str, Signature]] = {
    "FILTER": FILTERS,
    "TEST": TESTS,
    "CALL": FUNCTIONS,
    "METHOD": {name: method.signature for name, method in METHODS.items()},
}
"""By instruction: the names it may call."""


@cache
def implementations() -> dict[str, dict[str, Implementation]]:
    """Return what each instruction calls, by name."""
    # These modules call by name themselves, so they cannot be imported before this one.
    from noetlvm.expr import data_filters, method_calls, text_filters

    return {
        "FILTER": {**data_filters.DATA_FILTERS, **text_filters.TEXT_FILTERS},
        "TEST": TEST_CALLS,
        "CALL": FUNCTION_CALLS,
        "METHOD": method_calls.METHOD_CALLS,
    }


def named(opcode: OpcodeName, name: Data) -> CallTarget:
    """Return what a name stands for; the name may come from data, as in `map(name)`."""
    signature = SIGNATURES[opcode].get(name) if type(name) is str else None
    if signature is None:
        raise ExpressionError(ErrorKind.VALUE, f"there is no {opcode.lower()} of that name")
    return CallTarget(implementations()[opcode][signature.name], signature)


def fitting(row: CallTarget, args: tuple[Data, ...], kwargs: Mapping[str, Data]) -> Implementation:
    """Return what a row calls, if these arguments fit it."""
    problem = row.signature.problem(len(args), tuple(kwargs))
    if problem:
        raise ExpressionError(ErrorKind.TYPE, problem)
    return row.function


def call_with_words(
    fuel: Fuel, row: CallTarget, value: Data, args: tuple[Data, ...], words: list[str], spread: int
) -> Data:
    """Call with arguments as they lie on the stack: positional, named by `words`, then spread ones."""
    kwargs: dict[str, Data] = {}
    if spread & 2:
        *rest, further = args
        args = tuple(rest)
        _add_named(fuel, kwargs, further)
    if spread & 1:
        *rest, more = args
        args = tuple(rest)
        return _call_spread(fuel, row, value, args, words, kwargs, more)
    return _call_named(fuel, row, value, args, words, kwargs)


def _call_spread(
    fuel: Fuel,
    row: CallTarget,
    value: Data,
    args: tuple[Data, ...],
    words: list[str],
    kwargs: dict[str, Data],
    more: Data,
) -> Data:
    positional = len(args) - len(words)
    spread = elements(fuel, more)
    fuel.make(16 * len(spread))
    return _call_named(fuel, row, value, (*args[:positional], *spread, *args[positional:]), words, kwargs)


def _call_named(
    fuel: Fuel, row: CallTarget, value: Data, args: tuple[Data, ...], words: list[str], kwargs: dict[str, Data]
) -> Data:
    positional = len(args) - len(words)
    given = dict(zip(words, args[positional:], strict=True))
    twice = sorted(given.keys() & kwargs.keys())
    if twice or len(given) < len(words):
        raise ExpressionError(ErrorKind.TYPE, f"`{row.signature.name}` gets a named argument twice")
    args, kwargs = args[:positional], given | kwargs
    return fitting(row, args, kwargs)(fuel, value, *args, **kwargs)


def _add_named(fuel: Fuel, kwargs: dict[str, Data], further: Data) -> None:
    if not isinstance(further, dict):
        raise wrong_type(further, "a mapping after `**`")
    fuel.spend(len(further))
    fuel.make(104 * len(further))
    if not all(type(name) is str for name in further):
        raise ExpressionError(ErrorKind.TYPE, "the names of arguments are text")
    kwargs.update(further)
