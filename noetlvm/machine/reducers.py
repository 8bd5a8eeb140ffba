"""Merges what the iterations of a parallel loop wrote to `ctx`, in index order, so that no schedule shows (S26).

Reducers of the outermost loop continue from what `ctx` held when it began; inner merges start empty (S58).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any

from noetlvm.expr.values import type_name
from noetlvm.machine.effects import failure

Values = list[Any]


class MergeError(Exception):
    """The writes do not go together. `error` is what the step fails with."""

    def __init__(self, error: dict[str, Any]) -> None:
        self.error = error
        super().__init__(error["message"])


def merge_patches(
    patches: Mapping[int, dict[str, Any]],
    reducers: Iterable[tuple[str, str]],
    read: Callable[[Any], Any] = lambda value: value,
    start: Mapping[str, Any] = {},
) -> dict[str, Any]:
    """Return one patch of all, given by index; `read` loads a reference, `start` is what reducers continue from."""
    writes: dict[str, list[tuple[int, Any]]] = {}
    for index in sorted(patches):
        for key, value in patches[index].items():
            writes.setdefault(key, []).append((index, value))
    by_key = dict(reducers)
    return {key: _merge(key, by_key.get(key), writes[key], read, start.get(key)) for key in writes}


def _merge(key: str, reducer: str | None, writes: list[tuple[int, Any]], read: Callable[[Any], Any], start: Any) -> Any:
    if reducer is None:
        return _agreed(key, writes, read)
    values = [value for _, value in writes]
    if reducer in _BY_CONTENT:
        values = [read(value) for value in values]
    try:
        if start is None:
            return REDUCERS[reducer](values)
        return _CONTINUED.get(reducer, _continued(reducer))(read(start), values)
    except TypeError as error:
        message = f"`{key}` cannot be reduced by `{reducer}`: {error}"
        raise MergeError(failure("reducer", message, key=key)) from None


def _agreed(key: str, writes: list[tuple[int, Any]], read: Callable[[Any], Any]) -> Any:
    first, value = writes[0]
    for index, other in writes:
        # Of two equal values one may be stored elsewhere, for want of room beside what else its iteration wrote.
        if other != value and read(other) != read(value):
            message = (
                f"iterations {first} and {index} write different values to `ctx.{key}`; "
                f"name a reducer for it in `loop.spec.policy.reducers`, such as `{key}: last`"
            )
            raise MergeError(failure("ctx_conflict", message, key=key))
    return value


def _numbers(values: Values) -> Values:
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"it needs numbers, not {type_name(value)}")
    return values


def _extend(values: Values) -> list[Any]:
    made: list[Any] = []
    for value in values:
        if not isinstance(value, (list, tuple)):
            raise TypeError(f"it needs lists, not {type_name(value)}")
        made += value
    return made


def _merge_mappings(values: Values) -> dict[str, Any]:
    for value in values:
        if not isinstance(value, dict):
            raise TypeError(f"it needs mappings, not {type_name(value)}")
    return reduce(deep_merge, values, {})


def deep_merge(under: Any, over: Any) -> Any:
    """Return mappings as one, the second winning; anything else is replaced by the second."""
    if not (isinstance(under, dict) and isinstance(over, dict)):
        return over
    merged = dict(under)
    for key, value in over.items():
        merged[key] = deep_merge(merged[key], value) if key in merged else value
    return merged


REDUCERS: dict[str, Callable[[Values], Any]] = {
    "sum": lambda values: sum(_numbers(values)),
    "min": min,
    "max": max,
    "count": len,
    "any": any,
    "all": all,
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "append": list,
    "extend": _extend,
    "merge": _merge_mappings,
}
"""Each gets what was written to one key, in index order; never nothing."""


def _continued(reducer: str) -> Callable[[Any, Values], Any]:
    return lambda start, values: REDUCERS[reducer]([start, *values])


_CONTINUED: dict[str, Callable[[Any, Values], Any]] = {
    "count": lambda start, values: sum(_numbers([start, len(values)])),
    "append": lambda start, values: _extend([start, values]),
}
"""How reducers continue from a value, where that is not one more value in front of the others."""

_BY_CONTENT = frozenset({"sum", "min", "max", "any", "all", "extend", "merge"})
"""Those that look at the values, so that a reference has to be read."""
