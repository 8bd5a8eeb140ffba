"""Loops: the collection, the `iter` of an iteration (S23, S28), results in chunks (S29), and reducers of `ctx`.

A loop of many iterations would else hold all of their results and writes in state, and so would every snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from itertools import islice
from typing import Any

from noetlvm.data.encoding import UnencodableError
from noetlvm.expr.errors import ExpressionError, Fuel
from noetlvm.expr.values import type_name
from noetlvm.limits import LOOP_ITEMS_MAX, LOOP_RESULTS_BYTES, LOOP_RESULTS_STORED
from noetlvm.machine.fold import held_bytes, indices, split
from noetlvm.machine.instructions import failure
from noetlvm.machine.loaded import LoadedStep
from noetlvm.machine.payload import Offload
from noetlvm.machine.state import LoopRun, Run


class CollectionError(Exception):
    """`in` of a loop gives no collection. `error` is the loop's failure."""

    def __init__(self, error: dict[str, Any]) -> None:
        self.error = error
        super().__init__(error["message"])


def collection(step: LoadedStep, level: int, names: dict[str, Any]) -> Any:
    """Return the list or mapping that a level of a loop goes over."""
    try:
        found = step.loops[level].collection(names, Fuel())
    except ExpressionError as error:
        raise CollectionError(step.loops[level].collection.failure(error)) from None
    if not isinstance(found, (list, tuple, dict)):
        message = f"`in` of a loop must give a list or a mapping, not {type_name(found)}"
        raise CollectionError(failure("loop", message, step=step.name, level=level + 1))
    if len(found) > LOOP_ITEMS_MAX:
        message = f"a loop may have {LOOP_ITEMS_MAX:,} items, not {len(found):,}"
        raise CollectionError(failure("loop", message, step=step.name, level=level + 1))
    return list(found) if isinstance(found, tuple) else found


def stored_items(items: Any, step: LoadedStep, offload: Offload) -> Any:
    """Return a collection as `loop.started` holds it."""
    try:
        return offload.shrink(items)
    except UnencodableError as error:
        raise CollectionError(failure("loop", f"the items of a loop must be data: {error}", step=step.name)) from None


def level_of(path: str) -> int:
    """Return the level of a loop step that runs within an iteration, from 0: that of the run itself."""
    return path.count(".") + 1 if path else 0


def iter_of(run: Run, step: LoadedStep, path: str, offload: Offload) -> dict[str, Any] | None:
    """Return `iter` of an iteration, with those around it as parents; None outside a loop."""
    made: dict[str, Any] | None = None
    around = ""
    for level, index in enumerate(indices(path)):
        element = _element(offload.read(run.loops[around].items), index)
        inner: dict[str, Any] = {step.loops[level].iterator: element, "index": index}
        made = inner if made is None else inner | {"parent": made}
        around = f"{around}.{index}" if around else str(index)
    return made


def _element(items: Any, index: int) -> Any:
    if not isinstance(items, dict):
        return items[index]
    key = next(islice(items, index, None))
    return {"key": key, "value": items[key]}


def with_stored(run: Run, iteration: str, data: dict[str, Any], offload: Offload) -> dict[str, Any]:
    """Return the data of `loop.iteration.done`, with the chunk that is stored on its occasion."""
    around, index = split(iteration)
    loop = run.loops[around]
    if not loop.sizes or loop.bytes + held_bytes(loop, index, data) <= LOOP_RESULTS_BYTES:
        return data
    at = list(loop.sizes)[:LOOP_RESULTS_STORED]
    stored: dict[str, Any] = {"at": at, "results": offload.store([loop.results[index] for index in at])}
    patches = [loop.patches.get(index) for index in at]
    if any(patches):
        stored["patches"] = offload.store(patches)
    return data | {"stored": stored}


def all_results(loop: LoopRun, offload: Offload) -> list[Any]:
    """Return the results of a loop, in order."""
    results = list(loop.results)
    for at, stored, _ in loop.stored:
        for index, value in zip(at, offload.raw(stored), strict=True):
            results[index] = value
    return results


def all_patches(loop: LoopRun, offload: Offload) -> dict[int, dict[str, Any]]:
    """Return what a loop's iterations wrote to `ctx`, by index."""
    patches = dict(loop.patches)
    for at, _, stored in loop.stored:
        if stored is not None:
            found = zip(at, offload.raw(stored), strict=True)
            patches |= {index: patch for index, patch in found if patch}
    return patches


Values = list[Any]


class MergeError(Exception):
    """The writes conflict. `error` is what the step fails with."""

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
        # Of two equal values one may be a reference: its iteration wrote more than fits into an event.
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
"""Those that need the values, so that a reference has to be read."""
