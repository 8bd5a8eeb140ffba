"""Which steps can have tokens at once, and the races on `ctx` that follow.

Two tokens have a last common ancestor: a firing that put one on each of two arcs. So two steps can have tokens at once
exactly if two arcs that fire together lead to them, one to each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate, islice
from operator import or_

from noetlc.net.moves import Move, arcs_of, firing, joint_firings
from noetlc.net.net import Boundary, NetStep
from noetlc.net.reach import Reach
from noetlvm.record import Record

STEPS_MAX = 600
"""Larger nets have too many pairs to list."""
PAIRS_MAX = 1_000
"""Pairs that are listed for a larger net."""
OTHERS_MAX = 100
"""Steps that one race lists; the others are counted."""
_BATCH = 2_048
"""Steps that are searched together for races."""


class Together:
    """Which pairs of some steps of a net can have tokens at once. Sets of steps are bit masks."""

    def __init__(self, reach: Reach, steps: Iterable[int]) -> None:
        self.bits = {step: 1 << number for number, step in enumerate(steps)}
        self._steps = list(self.bits)
        leads_to = self._leads_to(reach)
        partners = dict.fromkeys(reach.arrived, 0)
        for step in reach.arrived:
            for target, mask in _partners(reach.net.steps[step], leads_to):
                partners[target] |= mask
        self.beside = self._passed_on(reach, partners)
        """For each step, those that can have a token while it has."""

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Yield each pair that can have tokens at once, the lower index first; a step may be paired with itself."""
        for step, mask in self.beside.items():
            yield from ((step, other) for other in self.steps_in(mask) if step <= other)

    def steps_in(self, mask: int) -> Iterator[int]:
        """Yield the steps of a set, in order."""
        digits = bin(mask)[:1:-1]
        at = digits.find("1")
        while at >= 0:
            yield self._steps[at]
            at = digits.find("1", at + 1)

    def _leads_to(self, reach: Reach) -> dict[int, int]:
        """Return, for each step, which of our steps a token from there can reach."""
        masks: list[int] = []
        found: dict[int, int] = {}
        for number, members in enumerate(reach.components):
            mask = 0
            for step in members:
                mask |= self.bits.get(step, 0)
                for arc in reach.paths.onward[step]:
                    target = reach.component_of[arc.target]
                    mask |= masks[target] if target != number else 0
            masks.append(mask)
            found.update(dict.fromkeys(members, mask))
        return found

    def _passed_on(self, reach: Reach, partners: dict[int, int]) -> dict[int, int]:
        """Return, for each of our steps, the partners of all steps from which a token can reach it."""
        masks = [0] * len(reach.components)
        found = dict.fromkeys(self._steps, 0)
        for number in reversed(range(len(masks))):  # sources come last
            members = reach.components[number]
            for step in members:
                masks[number] |= partners[step]
            for step in members:
                if step in found:
                    found[step] = masks[number]
                for arc in reach.paths.onward[step]:
                    masks[reach.component_of[arc.target]] |= masks[number]
        return found


def _partners(step: NetStep, leads_to: dict[int, int]) -> Iterator[tuple[int, int]]:
    """Yield the target of each arc of a step, with what tokens of arcs that fire together with it can reach."""
    for ending in step.endings if step.can_run else ():
        choices = _all_but_one([_union(step, arcs_of(choice), leads_to) for choice in ending.choices])
        for choice, elsewhere in zip(ending.choices, choices, strict=True):
            for alternative in choice:
                targets = [step.arcs[arc].target for arc in alternative]
                masks = _all_but_one([leads_to[target] for target in targets])
                yield from ((target, elsewhere | mask) for target, mask in zip(targets, masks, strict=True))


def _all_but_one(masks: list[int]) -> list[int]:
    """Return, for each of some sets, the union of the others."""
    before = list(accumulate(masks, or_, initial=0))
    after = list(accumulate(reversed(masks), or_, initial=0))[::-1]
    return [before[number] | after[number + 1] for number in range(len(masks))]


def _union(step: NetStep, arcs: Iterable[int], leads_to: dict[int, int]) -> int:
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
    """The first of them. May contain the writer itself: a second run of it."""
    count: int
    """How many there are."""


def races(reach: Reach) -> Iterator[Race]:
    """Yield every race, at most one for each key and writer; a pair of writers is reported at the first of them."""
    touching = _touching(reach)
    ordered = _ordered_by_gates(reach)
    for keys in _batches(touching):
        together = Together(reach, sorted({step for key in keys for step in touching[key]}))
        for key in keys:
            yield from _races(reach, key, touching[key], together, ordered)


def _ordered_by_gates(reach: Reach) -> dict[int, set[int]]:
    """Return the steps that are not beside one another because one gate waits for what only the other step writes."""
    writers: dict[str, list[int]] = {}
    for step in reach.net.steps:
        for key in step.writes:
            writers.setdefault(key, []).append(step.index)
    found: dict[int, set[int]] = {}
    for waiting in reach.net.steps:
        for key in waiting.awaits:
            match writers.get(key, ()):
                case [writer] if writer != waiting.index:
                    found.setdefault(waiting.index, set()).add(writer)
                    found.setdefault(writer, set()).add(waiting.index)
    return found


def _races(
    reach: Reach, key: str, touching: list[int], together: Together, ordered: dict[int, set[int]]
) -> Iterator[Race]:
    bits = together.bits
    unreported = sum(bits[step] for step in touching)
    for step in touching:
        if key not in reach.net.steps[step].writes:
            continue
        others = together.beside[step] & unreported
        for other in ordered.get(step, ()):
            others &= ~bits.get(other, 0)
        if others:
            yield Race(key, step, tuple(islice(together.steps_in(others), OTHERS_MAX)), others.bit_count())
        unreported &= ~bits[step]


def _touching(reach: Reach) -> dict[str, list[int]]:
    """Return, for each key that some step writes, the steps that read or write it and can run; not all of thousands."""
    live = [reach.net.steps[step] for step in reach.arrived if reach.runs(step)]
    written = {key for step in live for key in step.writes}
    found: dict[str, list[int]] = {}
    for step in live:
        for key in sorted(written & (step.reads | step.writes)):
            steps = found.setdefault(key, [])
            if len(steps) < _BATCH:
                steps.append(step.index)
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
