"""Which steps can have tokens at once, and the races on `ctx` that follow.

Two tokens have a last common ancestor: a firing that put one on each of two arcs. So two steps can have tokens at once
exactly if two arcs that fire together lead to them, one to each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from operator import or_

from noetlc.net.moves import Move, arcs_of, firing, joint_firings
from noetlc.net.net import Boundary, NetStep
from noetlc.net.reach import Reach
from noetlvm.record import Record

STEPS_MAX = 600
"""Larger nets have too many pairs to list."""
PAIRS_MAX = 1_000
"""Pairs that are listed for a larger net."""
_BATCH = 2_048
"""Steps that are searched together for races."""


class Together:
    """Which pairs of some steps of a net can have tokens at once. Sets of steps are bit masks."""

    def __init__(self, reach: Reach, steps: Iterable[int]) -> None:
        self._bits = {step: 1 << number for number, step in enumerate(steps)}
        self._steps = list(self._bits)
        self._beside = dict.fromkeys(self._steps, 0)
        leads_to = self._leads_to(reach)
        partners: dict[int, int] = {}
        for step in reach.arrived:
            for target, mask in _partners(reach.net.steps[step], leads_to):
                partners[target] = partners.get(target, 0) | mask
        for target, mask in partners.items():
            for step in self._in(leads_to[target]):
                self._beside[step] |= mask

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Yield each pair that can have tokens at once, the lower index first; a step may be paired with itself."""
        for step, mask in self._beside.items():
            yield from ((step, other) for other in self._in(mask) if step <= other)

    def beside(self, step: int) -> list[int]:
        """Return the steps that can have a token while this one has."""
        return list(self._in(self._beside[step]))

    def _in(self, mask: int) -> Iterator[int]:
        while mask:
            lowest = mask & -mask
            yield self._steps[lowest.bit_length() - 1]
            mask ^= lowest

    def _leads_to(self, reach: Reach) -> dict[int, int]:
        """Return, for each step, which of our steps a token from there can reach."""
        masks: list[int] = []
        found: dict[int, int] = {}
        for number, members in enumerate(reach.components):
            mask = 0
            for step in members:
                mask |= self._bits.get(step, 0)
                for arc in reach.paths.onward[step]:
                    target = reach.component_of[arc.target]
                    mask |= masks[target] if target != number else 0
            masks.append(mask)
            found.update(dict.fromkeys(members, mask))
        return found


def _partners(step: NetStep, leads_to: dict[int, int]) -> Iterator[tuple[int, int]]:
    """Yield the target of each arc of a step, with what tokens of arcs that fire together with it can reach."""
    for ending in step.endings if step.can_run else ():
        masks = [_mask(step, arcs_of(choice), leads_to) for choice in ending.choices]
        before = list(accumulate(masks, or_, initial=0))
        after = list(accumulate(reversed(masks), or_, initial=0))[::-1]
        for number, choice in enumerate(ending.choices):
            elsewhere = before[number] | after[number + 1]
            for alternative in choice:
                for arc in alternative:
                    beside = [other for other in alternative if other != arc]
                    yield step.arcs[arc].target, elsewhere | _mask(step, beside, leads_to)


def _mask(step: NetStep, arcs: Iterable[int], leads_to: dict[int, int]) -> int:
    mask = 0
    for arc in arcs:
        mask |= leads_to[step.arcs[arc].target]
    return mask


def concurrent_pairs(reach: Reach) -> tuple[list[tuple[int, int]], bool]:
    """Return the pairs of steps that can have tokens at once, and whether the list is complete."""
    if len(reach.arrived) <= STEPS_MAX:
        return sorted(Together(reach, reach.arrived).pairs()), True
    found: set[tuple[int, int]] = set()
    for step in reach.arrived:
        arcs = reach.net.steps[step].arcs
        for _, one, other in joint_firings(reach.net.steps[step]):
            first, second = sorted((arcs[one].target, arcs[other].target))
            found.add((first, second))
            if len(found) >= PAIRS_MAX:
                return sorted(found), False
    return sorted(found), not found


def together_moves(reach: Reach, one: int, other: int) -> list[Move]:
    """Return a firing sequence after which both steps have a token, or one step two; empty if there is none."""
    sources: dict[int, list[int]] = {}
    for step in reach.arrived:
        for arc in reach.paths.onward[step]:
            sources.setdefault(arc.target, []).append(step)
    to_one, to_other = _ancestors(one, sources), _ancestors(other, sources)
    for number in reach.first_arcs:  # nearest first
        found = _fork(reach.net.steps[number], to_one, to_other)
        if found is None:
            continue
        ending, left, right = found
        fork = firing(reach.net.steps[number], ending, (left, right))
        assert fork is not None  # they fire together
        arcs, paths = reach.net.steps[number].arcs, reach.paths
        left_path = paths.path(arcs[left].target, one) or []
        right_path = paths.path(arcs[right].target, other) or []
        return [*reach.moves_to(number), fork, *paths.moves(left_path), *paths.moves(right_path)]
    return []


def _fork(step: NetStep, to_one: set[int], to_other: set[int]) -> tuple[Boundary, int, int] | None:
    for ending, first, second in joint_firings(step):
        for left, right in ((first, second), (second, first)):
            if step.arcs[left].target in to_one and step.arcs[right].target in to_other:
                return ending, left, right
    return None


def _ancestors(step: int, sources: dict[int, list[int]]) -> set[int]:
    found = {step}
    pending = [step]
    while pending:
        for source in sources.get(pending.pop(), ()):
            if source not in found:
                found.add(source)
                pending.append(source)
    return found


class Race(Record):
    """A key of `ctx`, a step that writes it, and the steps that read or write it while that one runs."""

    key: str
    writer: int
    others: tuple[int, ...]
    """May contain the writer itself: a second run of it."""


def races(reach: Reach) -> Iterator[Race]:
    """Yield every race, at most one for each key and writer; a pair of writers is reported at the first of them."""
    touching = _touching(reach)
    ordered = _ordered_by_gates(reach)
    for keys in _batches(touching):
        steps = sorted({step for key in keys for step in touching[key]})
        together = Together(reach, steps)
        beside = {step: set(together.beside(step)) for step in steps}
        for key in keys:
            for step in touching[key]:
                beside[step] -= ordered.get(step, set())
            yield from _races(reach, key, touching[key], beside)


def _ordered_by_gates(reach: Reach) -> dict[int, set[int]]:
    """Return the steps that are not beside one another because one gate waits for what only the other step writes."""
    found: dict[int, set[int]] = {}
    for waiting in reach.net.steps:
        for key in waiting.awaits:
            writers = [step.index for step in reach.net.steps if key in step.writes]
            if len(writers) == 1 and writers[0] != waiting.index:
                found.setdefault(waiting.index, set()).add(writers[0])
                found.setdefault(writers[0], set()).add(waiting.index)
    return found


def _races(reach: Reach, key: str, touching: list[int], beside: dict[int, set[int]]) -> Iterator[Race]:
    reported: set[int] = set()
    for step in touching:
        if key not in reach.net.steps[step].writes:
            continue
        others = tuple(other for other in touching if other in beside[step] and other not in reported)
        if others:
            yield Race(key, step, others)
        reported.add(step)


def _touching(reach: Reach) -> dict[str, list[int]]:
    """Return, for each key that some step writes, the steps that read or write it and can run."""
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
