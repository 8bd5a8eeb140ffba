"""What iterations gave and wrote: put aside in chunks while their loop goes on, and put together at its end (S29).

A loop of many iterations would else hold all of their results in state, and all that they wrote to `ctx`, and so would
every snapshot. Once that is large together, the event of the iteration that made it so tells where it is stored. What
is held and how large it is, is remembered here only to be fast: the state tells it too.
"""

from __future__ import annotations

from typing import Any

from noetlvm.limits import LOOP_RESULTS_BYTES, LOOP_RESULTS_STORED
from noetlvm.machine.fold import split
from noetlvm.machine.payload import Offload, rough_bytes
from noetlvm.machine.state import Loop, Run


class LoopResults:
    """The results of open loops."""

    def __init__(self, offload: Offload) -> None:
        self._offload = offload
        self._held: dict[tuple[int, str], dict[int, int]] = {}
        """Sizes of what iterations that have ended left in state, by run and loop, and by index."""
        self._bytes: dict[tuple[int, str], int] = {}

    def take(self, number: int, run: Run, iteration: str, data: dict[str, Any]) -> dict[str, Any]:
        """Return the data of `loop.iteration.done`, with what is put aside on its occasion."""
        around, index = split(iteration)
        loop, key = run.loops[around], (number, around)
        held = self._held.get(key)
        if held is None:
            held = self._held[key] = {
                at: rough_bytes(value) for at, value in enumerate(loop.results) if value is not None
            }
            self._bytes[key] = sum(held.values())
        size = rough_bytes(data.get("result")) + rough_bytes(data.get("ctx") or loop.patches.get(index))
        if self._bytes[key] + size > LOOP_RESULTS_BYTES and held:
            data = data | {"stored": self._put_aside(key, loop, held)}
        held[index] = size
        self._bytes[key] += size
        return data

    def _put_aside(self, key: tuple[int, str], loop: Loop, held: dict[int, int]) -> dict[str, Any]:
        at = list(held)[:LOOP_RESULTS_STORED]
        self._bytes[key] -= sum(held.pop(index) for index in at)
        stored = {"at": at, "results": self._offload.store([loop.results[index] for index in at])}
        patches = [loop.patches.get(index) for index in at]
        return stored | {"patches": self._offload.store(patches)} if any(patches) else stored

    def whole(self, loop: Loop) -> list[Any]:
        """Return the results of a loop, in order."""
        results = list(loop.results)
        for at, stored, _ in loop.stored:
            for index, value in zip(at, self._offload.raw(stored), strict=True):
                results[index] = value
        return results

    def patches(self, loop: Loop) -> dict[int, dict[str, Any]]:
        """Return what a loop's iterations wrote to `ctx`, by index."""
        patches = dict(loop.patches)
        for at, _, stored in loop.stored:
            if stored is not None:
                found = zip(at, self._offload.raw(stored), strict=True)
                patches |= {index: patch for index, patch in found if patch}
        return patches

    def forget(self, number: int, around: str) -> None:
        """Drop what is remembered of a loop that has ended; of a whole run, if no iteration is named."""
        for key in [(number, around)] if around else [key for key in self._held if key[0] == number]:
            self._held.pop(key, None)
            self._bytes.pop(key, None)
