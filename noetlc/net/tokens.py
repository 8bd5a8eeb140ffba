"""How many tokens there can be: whether the number has a bound, the greatest number at once, and that of each step.

Unbounded exactly if a step on a reachable cycle can fire an arc of the cycle together with another arc: every round
leaves one more token. If no step can, a token on a cycle stays one token, so that a whole component counts as one
step, and the components form no cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from noetlc.net.completion import MANY
from noetlc.net.moves import Move, firing, joint_firings
from noetlc.net.net import Boundary, NetArc
from noetlc.net.reach import Reach
from noetlvm.record import Record

MOVES_MAX = 1_000
"""Moves that are listed to show the greatest number of tokens."""
WORK_PER_STEP = 200
"""Arcs visited per step of the net, on average, to count the tokens of single steps. The rest is left out."""


class Growth(Record):
    """A step that fires an arc of its own cycle together with another arc."""

    step: int
    ending: Boundary
    stays: NetArc
    """The arc of the cycle."""
    extra: NetArc
    """The arc whose tokens accumulate."""


def growths(reach: Reach) -> Iterator[Growth]:
    """Yield the ways in which tokens accumulate: at most one for each step and arc."""
    for members in reach.cycles:
        inside = set(members)
        for number in members:
            step = reach.net.steps[number]
            seen: set[int] = set()
            for ending, one, other in joint_firings(step):
                for stays, extra in ((one, other), (other, one)):
                    if step.arcs[stays].target in inside and extra not in seen:
                        seen.add(extra)
                        yield Growth(number, ending, step.arcs[stays], step.arcs[extra])
                if len(seen) == len(step.arcs):
                    break


def growth_moves(reach: Reach, growth: Growth) -> list[Move]:
    """Return a firing sequence that completes one cycle and leaves one more token."""
    step = reach.net.steps[growth.step]
    fork = firing(step, growth.ending, (growth.stays.index, growth.extra.index))
    assert fork is not None  # they fire together
    back = reach.paths.path(growth.stays.target, growth.step) or []
    return [*reach.moves_to(growth.step), fork, *reach.paths.moves(back)]


class Most(Record):
    """The greatest number of tokens that one token can become, by component; for a net that has a bound."""

    reach: Reach
    count: list[int]
    best: list[tuple[int, Boundary] | None]
    """The step and the ending by which the component's token becomes that many; None if it stays one."""

    @property
    def total(self) -> int:
        """The greatest number of tokens in the net at once."""
        return self.count[self.reach.component_of[self.reach.net.entry]]

    def moves(self) -> list[Move]:
        """Return a firing sequence to that number of tokens; empty if it takes too many moves."""
        found: list[Move] = []
        pending = [self.reach.net.entry]
        while pending and len(found) <= MOVES_MAX:
            at = pending.pop()
            best = self.best[self.reach.component_of[at]]
            if best is None:
                continue
            step, ending = best
            arcs = self._richest(step, ending)
            found += self.reach.paths.moves(self.reach.paths.path(at, step) or [])
            found.append(Move(step, ending.event, arcs))
            pending += [self.reach.net.steps[step].arcs[arc].target for arc in arcs]
        return found if len(found) <= MOVES_MAX else []

    def _richest(self, step: int, ending: Boundary) -> tuple[int, ...]:
        arcs = self.reach.net.steps[step].arcs
        value = _arc_value(self.reach, self.reach.component_of[step], lambda component: self.count[component])
        fired = [max(choice, key=lambda fired: sum(value(arcs[arc]) for arc in fired)) for choice in ending.choices]
        return tuple(sorted(arc for alternative in fired for arc in alternative))


def most_tokens(reach: Reach) -> Most:
    """Return the greatest numbers of tokens of a net that has a bound."""
    count: list[int] = []
    best: list[tuple[int, Boundary] | None] = []
    for number in range(len(reach.components)):
        richest, by = _richest_ending(reach, number, lambda component: count[component])
        count.append(max(1, richest))
        best.append(by if richest > 1 else None)
    return Most(reach, count, best)


def _richest_ending(
    reach: Reach, component: int, count: Callable[[int], int]
) -> tuple[int, tuple[int, Boundary] | None]:
    """Return the most tokens, weighted by `count` of their targets, that leave a component in one move, and how."""
    value = _arc_value(reach, component, count)
    richest, by = 0, None
    for number in reach.components[component]:
        step = reach.net.steps[number]
        for ending in step.endings if step.can_run else ():
            total = 0
            for choice in ending.choices:
                total += max(sum(value(step.arcs[arc]) for arc in fired) for fired in choice)
            if total > richest:
                richest, by = min(MANY, total), (number, ending)
    return richest, by


def _arc_value(reach: Reach, component: int, count: Callable[[int], int]) -> Callable[[NetArc], int]:
    """Return the value of an arc's token; one that stays in the component is the same token and counts zero."""

    def value(arc: NetArc) -> int:
        target = reach.component_of[arc.target]
        return 0 if target == component else count(target)

    return value


def step_tokens(reach: Reach, dominators: dict[int, int | None], unbounded: set[int]) -> dict[int, int | None]:
    """Return the greatest number of tokens at each step at once; None for the steps in `unbounded`.

    A component that only one arc leads to gets as many tokens as the source of that arc. For the others the part of
    the net between it and its immediate dominator is traversed; all of its tokens pass there, so the numbers multiply.
    """
    return _Count(reach, dominators, unbounded).run()


class _Count:
    def __init__(self, reach: Reach, dominators: dict[int, int | None], unbounded: set[int]) -> None:
        self._reach = reach
        self._unbounded = unbounded
        self._into: list[list[int]] = [[] for _ in reach.components]
        """For each component, the components that its incoming arcs leave; one entry per arc."""
        for number, members in enumerate(reach.components):
            for step in members:
                for arc in reach.paths.onward[step]:
                    target = reach.component_of[arc.target]
                    if target != number:
                        self._into[target].append(number)
        self._dominator = [self._above(members, dominators) for members in reach.components]
        self._work = WORK_PER_STEP * (len(reach.arrived) + 100)

    def _above(self, members: list[int], dominators: dict[int, int | None]) -> int | None:
        """Return the component of the nearest dominator outside a component."""
        own = self._reach.component_of[members[0]]
        outside = [
            self._reach.component_of[above]
            for step in members
            if (above := dominators[step]) is not None and self._reach.component_of[above] != own
        ]
        return outside[0] if outside else None

    def run(self) -> dict[int, int | None]:
        found: dict[int, int | None] = {}
        counts: list[int | None] = [None] * len(self._reach.components)
        for number in range(len(self._reach.components) - 1, -1, -1):
            counts[number] = self._count(number, counts)
            for step in self._reach.components[number]:
                if step in self._unbounded:
                    found[step] = None
                elif counts[number] is not None:
                    found[step] = counts[number]
        return {step: found[step] for step in sorted(found)}

    def _count(self, number: int, counts: list[int | None]) -> int | None:
        above = self._dominator[number]
        if above is None:
            return 1
        into = self._into[number]
        if len(into) == 1:
            return counts[into[0]]
        before = counts[above]
        if before is None or self._work <= 0 or self._reach.components[number][0] in self._unbounded:
            return None
        return min(MANY, before * self._between(above, number))

    def _between(self, above: int, number: int) -> int:
        """Return how many tokens arrive at a component from one token at its dominator."""
        region = {number}
        pending = [number]
        while pending:
            for source in self._into[pending.pop()]:
                self._work -= 1
                if source not in region:
                    region.add(source)
                    if source != above:
                        pending.append(source)
        arriving = {number: 1}
        count: Callable[[int], int] = lambda component: arriving.get(component, 0)  # noqa: E731 - a view of the table
        for component in sorted(region):  # components are in reverse topological order
            if component != number:
                arriving[component] = _richest_ending(self._reach, component, count)[0]
        return arriving[above]
