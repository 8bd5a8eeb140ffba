"""Results and `ctx` writes of iterations: stored in chunks while their loop goes on, and put together at its end (S29).

A loop of many iterations would else hold all of their results and writes in state, and so would every snapshot. Once
they are large together, the event of the iteration that made them so names where they are stored.
"""

from __future__ import annotations

from typing import Any

from noetlvm.limits import LOOP_RESULTS_BYTES, LOOP_RESULTS_STORED
from noetlvm.machine.fold import held_bytes, split
from noetlvm.machine.payload import Offload
from noetlvm.machine.state import LoopRun, Run


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
