"""The collection of a loop, and the `iter` of its iterations (S23, S28)."""

from __future__ import annotations

from itertools import islice
from typing import Any

from noetlvm.data.encoding import UnencodableError
from noetlvm.expr.errors import ExpressionError
from noetlvm.expr.fuel import Fuel
from noetlvm.expr.values import type_name
from noetlvm.limits import LOOP_ITEMS_MAX
from noetlvm.machine.effects import failure
from noetlvm.machine.fold import indices
from noetlvm.machine.loaded import LoadedStep
from noetlvm.machine.payload import Offload
from noetlvm.machine.state import Run


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
    """Return which level of a loop step goes on within an iteration, from 0: that of the run itself."""
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
