"""The functions of expressions. Their results are plain data: `range` makes a list."""

from __future__ import annotations

from collections.abc import Callable

from noetlvm.expr.fuel import Fuel
from noetlvm.expr.values import ITEM_BYTES, LIST_BYTES, MAP_BYTES, PAIR_BYTES, Data, Undefined, elements, hashable

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
    if type(mapping) is Undefined:
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
