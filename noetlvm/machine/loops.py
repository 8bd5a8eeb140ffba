"""What an iteration is given: its element, its `iter`, and the `ctx` that it sees (S23, S25, S26, S28).

It reads state and never writes it.
"""

from __future__ import annotations

from collections.abc import Callable
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
from noetlvm.machine.state import Run, State


class NoCollection(Exception):  # noqa: N818 - it says what happened
    """What a loop should go over is no collection. `error` is what the loop fails with."""

    def __init__(self, error: dict[str, Any]) -> None:
        self.error = error
        super().__init__(error["message"])


def collection(step: LoadedStep, level: int, names: dict[str, Any]) -> Any:
    """Return the list or mapping that a level of a loop goes over."""
    try:
        found = step.loops[level].collection(names, Fuel())
    except ExpressionError as error:
        raise NoCollection(step.loops[level].collection.failure(error)) from None
    if not isinstance(found, (list, tuple, dict)):
        message = f"`in` of a loop must give a list or a mapping, not {type_name(found)}"
        raise NoCollection(failure("loop", message, step=step.name, level=level + 1))
    if len(found) > LOOP_ITEMS_MAX:
        message = f"a loop may have {LOOP_ITEMS_MAX:,} items, not {len(found):,}"
        raise NoCollection(failure("loop", message, step=step.name, level=level + 1))
    return list(found) if isinstance(found, tuple) else found


def stored_items(items: Any, step: LoadedStep, offload: Offload) -> Any:
    """Return a collection as `loop.started` holds it."""
    try:
        return offload.shrink(items)
    except UnencodableError as error:
        raise NoCollection(failure("loop", f"the items of a loop must be data: {error}", step=step.name)) from None


def level_of(path: str) -> int:
    """Return which level of a loop step goes on within an iteration, from 0: that of the run itself."""
    return path.count(".") + 1 if path else 0


def visible_ctx(state: State, run: Run, path: str) -> dict[str, Any]:
    """Return the `ctx` that an iteration sees: inside a parallel loop, the one of its start and its own writes."""
    seen, around = state.ctx, ""
    for index in indices(path):
        loop = run.loops[around]
        if loop.parallel:
            seen = loop.base if loop.base is not None else seen
            patch = loop.patches.get(index)
            seen = {**seen, **patch} if patch else seen
        around = f"{around}.{index}" if around else str(index)
    return seen


class Elements:
    """The elements of open loops, read once however many iterations ask for one. A cache, no state."""

    def __init__(self, offload: Offload) -> None:
        self._offload = offload
        self._found: dict[tuple[int, str], Callable[[int], Any]] = {}

    def iter(self, number: int, run: Run, step: LoadedStep, path: str) -> dict[str, Any] | None:
        """Return `iter` of an iteration, with those around it as parents; None outside a loop."""
        made: dict[str, Any] | None = None
        around = ""
        for level, index in enumerate(indices(path)):
            element = self._of(number, run, around)(index)
            inner: dict[str, Any] = {step.loops[level].iterator: element, "index": index}
            made = inner if made is None else inner | {"parent": made}
            around = f"{around}.{index}" if around else str(index)
        return made

    def _of(self, number: int, run: Run, around: str) -> Callable[[int], Any]:
        """Return a function of the index; what is stored elsewhere is loaded one by one."""
        key = (number, around)
        if key not in self._found:
            items = self._offload.read(run.loops[around].items)
            self._found[key] = _pairs(items) if isinstance(items, dict) else items.__getitem__
        return self._found[key]

    def forget(self, number: int, around: str) -> None:
        """Drop the elements of a loop that has ended; of a whole run, if no iteration is named."""
        if around:
            self._found.pop((number, around), None)
            return
        for key in [key for key in self._found if key[0] == number]:
            del self._found[key]


def _pairs(items: dict[Any, Any]) -> Callable[[int], Any]:
    keys = list(items)
    return lambda index: {"key": keys[index], "value": items[keys[index]]}
