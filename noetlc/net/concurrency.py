"""Which steps may have tokens at once.

Two tokens have a last common ancestor: a firing that put one on each of two arcs. So two steps may have tokens at once
exactly if two arcs that fire together lead on to them, one to each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from noetlc.net.firing import Move, arcs_of, firing, joint_firings
from noetlc.net.net import Ending, Step
from noetlc.net.reachability import Reach

STEPS_MAX = 600
"""Larger nets have too many pairs to list."""
PAIRS_MAX = 1_000
"""Pairs that are listed of a larger net."""


class Together:
    """Answers for pairs out of some steps of a net."""

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
        """Yield each pair that may have tokens at once, the lower number first; a step may stand beside itself."""
        for step, mask in self._beside.items():
            yield from ((step, other) for other in self._in(mask) if step <= other)

    def beside(self, step: int) -> list[int]:
        """Return the steps that may have a token while this one has."""
        return list(self._in(self._beside[step]))

    def _in(self, mask: int) -> Iterator[int]:
        while mask:
            lowest = mask & -mask
            yield self._steps[lowest.bit_length() - 1]
            mask ^= lowest

    def _leads_to(self, reach: Reach) -> dict[int, int]:
        """Return, for each step, which of the asked steps a token from there can come to, as bits."""
        masks: list[int] = []
        found: dict[int, int] = {}
        for number, members in enumerate(reach.components):
            mask = 0
            for step in members:
                mask |= self._bits.get(step, 0)
                for arc in reach.ways.onward[step]:
                    target = reach.component_of[arc.target]
                    mask |= masks[target] if target != number else 0
            masks.append(mask)
            found.update(dict.fromkeys(members, mask))
        return found


def _partners(step: Step, leads_to: dict[int, int]) -> Iterator[tuple[int, int]]:
    """Yield the target of each arc of a step, with where tokens of arcs that fire together with it can come to."""
    for ending in step.endings if step.can_run else ():
        everywhere = [_mask(step, arcs_of(choice), leads_to) for choice in ending.choices]
        before = 0
        for number, choice in enumerate(ending.choices):
            elsewhere = before
            for mask in everywhere[number + 1 :]:
                elsewhere |= mask
            before |= everywhere[number]
            for alternative in choice:
                for arc in alternative:
                    beside = [other for other in alternative if other != arc]
                    yield step.arcs[arc].target, elsewhere | _mask(step, beside, leads_to)


def _mask(step: Step, arcs: Iterable[int], leads_to: dict[int, int]) -> int:
    mask = 0
    for arc in arcs:
        mask |= leads_to[step.arcs[arc].target]
    return mask


def concurrent_pairs(reach: Reach) -> tuple[list[tuple[int, int]], bool]:
    """Return the pairs of steps that may have tokens at once, and whether these are all."""
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
    """Return a firing sequence after which both steps have a token, or one step two; nothing if there is none."""
    sources = _sources(reach)
    to_one, to_other = _leading_to(one, sources), _leading_to(other, sources)
    for number in reach.first_arcs:  # nearest first
        found = _fork(reach.net.steps[number], to_one, to_other)
        if found is None:
            continue
        ending, left, right = found
        step = reach.net.steps[number]
        fork = firing(step, ending, (left, right))
        assert fork is not None  # they fire together
        ways = reach.ways
        left_way = ways.path(step.arcs[left].target, one) or []
        right_way = ways.path(step.arcs[right].target, other) or []
        return [*reach.moves_to(number), fork, *ways.moves(left_way), *ways.moves(right_way)]
    return []


def _fork(step: Step, to_one: set[int], to_other: set[int]) -> tuple[Ending, int, int] | None:
    for ending, first, second in joint_firings(step):
        for left, right in ((first, second), (second, first)):
            if step.arcs[left].target in to_one and step.arcs[right].target in to_other:
                return ending, left, right
    return None


def _sources(reach: Reach) -> dict[int, list[int]]:
    sources: dict[int, list[int]] = {}
    for step in reach.arrived:
        for arc in reach.ways.onward[step]:
            sources.setdefault(arc.target, []).append(step)
    return sources


def _leading_to(step: int, sources: dict[int, list[int]]) -> set[int]:
    found = {step}
    waiting = [step]
    while waiting:
        for source in sources.get(waiting.pop(), ()):
            if source not in found:
                found.add(source)
                waiting.append(source)
    return found
