"""What the iterations of open loops gave: put aside in chunks while a loop goes on, and put together at its end (S29).

A loop of many iterations would else hold all of their results in state, and so in every snapshot. Once those of a loop
are large together, the event of the iteration that made them so tells where they are stored. Which results are held and
how large they are is remembered here only to be fast: the state tells it too.
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
        """Sizes of the results in state, by run and loop, and by index."""
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
        size = rough_bytes(data.get("result"))
        if self._bytes[key] + size > LOOP_RESULTS_BYTES and held:
            data = data | {"stored": self._put_aside(key, loop, held)}
        held[index] = size
        self._bytes[key] += size
        return data

    def _put_aside(self, key: tuple[int, str], loop: Loop, held: dict[int, int]) -> dict[str, Any]:
        at = list(held)[:LOOP_RESULTS_STORED]
        stored = self._offload.store([loop.results[index] for index in at])
        self._bytes[key] -= sum(held.pop(index) for index in at)
        return {"at": at, "results": stored}

    def whole(self, loop: Loop) -> list[Any]:
        """Return the results of a loop, in order."""
        results = list(loop.results)
        for at, stored in loop.stored:
            for index, value in zip(at, self._offload.raw(stored), strict=True):
                results[index] = value
        return results

    def forget(self, number: int, around: str) -> None:
        """Drop what is remembered of a loop that has ended; of a whole run, if no iteration is named."""
        for key in [(number, around)] if around else [key for key in self._held if key[0] == number]:
            self._held.pop(key, None)
            self._bytes.pop(key, None)
