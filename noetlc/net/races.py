"""Races: two step runs that can be live at once touch one key of `ctx`, and at least one of them writes it."""

from __future__ import annotations

from collections.abc import Iterator

from noetlc.net.concurrency import Together
from noetlc.net.reachability import Reach
from noetlvm.record import Record

_BATCH = 2_048
"""Steps that are looked at together."""


class Race(Record):
    """One key, a step that writes it, and the steps that touch it while that one runs."""

    key: str
    writer: int
    others: tuple[int, ...]
    """May hold the writer itself: a second run of it."""


def races(reach: Reach) -> Iterator[Race]:
    """Yield every race, at most one for each key and writer; of two writers the first in the file is named."""
    touching = _touching(reach)
    for keys in _batches(touching):
        steps = sorted({step for key in keys for step in touching[key]})
        together = Together(reach, steps)
        beside = {step: set(together.beside(step)) for step in steps}
        for key in keys:
            yield from _races(reach, key, touching[key], beside)


def _races(reach: Reach, key: str, touching: list[int], beside: dict[int, set[int]]) -> Iterator[Race]:
    told: set[int] = set()
    for step in touching:
        if key not in reach.net.steps[step].writes:
            continue
        others = tuple(other for other in touching if other in beside[step] and other not in told)
        if others:
            yield Race(key, step, others)
        told.add(step)


def _touching(reach: Reach) -> dict[str, list[int]]:
    """Return, for each key that some step writes, the steps that touch it and can run."""
    live = [reach.net.steps[step] for step in reach.arrived if reach.runs(step)]
    written = {key for step in live for key in step.writes}
    found: dict[str, list[int]] = {}
    for step in live:
        for key in sorted(written & (step.reads | step.writes)):
            found.setdefault(key, []).append(step.index)
    return found


def _batches(touching: dict[str, list[int]]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for key, steps in touching.items():
        batch.append(key)
        size += len(steps)
        if size >= _BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
