"""Whether the number of tokens has a bound, and the greatest number at once.

Unbounded exactly if a step on a reachable cycle can fire an arc that stays on the cycle together with another one:
every round leaves a token more. If it never does, a token that goes round stays one token, so that a whole component
counts as one step, and the components form no cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from noetlc.net.completion import MANY
from noetlc.net.firing import Move, firing, joint_firings
from noetlc.net.net import Arc, Ending
from noetlc.net.reachability import Reach
from noetlvm.record import Record

MOVES_MAX = 1_000
"""Moves that are written out to show the greatest number of tokens."""


class Growth(Record):
    """A step that fires an arc of its own cycle together with another arc."""

    step: int
    ending: Ending
    stays: Arc
    """The arc that leads round."""
    extra: Arc
    """The arc whose tokens pile up."""


def growths(reach: Reach) -> Iterator[Growth]:
    """Yield the ways in which tokens pile up: at most one for each step and arc that they pile up behind."""
    for members in reach.cycles:
        inside = set(members)
        for number in members:
            step = reach.net.steps[number]
            told: set[int] = set()
            for ending, one, other in joint_firings(step):
                for stays, extra in ((one, other), (other, one)):
                    if step.arcs[stays].target in inside and extra not in told:
                        told.add(extra)
                        yield Growth(number, ending, step.arcs[stays], step.arcs[extra])


def growth_moves(reach: Reach, growth: Growth) -> list[Move]:
    """Return a firing sequence that goes round once and leaves a token more than before."""
    step = reach.net.steps[growth.step]
    fork = firing(step, growth.ending, (growth.stays.index, growth.extra.index))
    assert fork is not None  # they fire together
    back = reach.ways.path(growth.stays.target, growth.step) or []
    return [*reach.moves_to(growth.step), fork, *reach.ways.moves(back)]


class Most(Record):
    """The greatest number of tokens that one token can become, by component; for a net that has a bound."""

    reach: Reach
    count: list[int]
    best: list[tuple[int, Ending] | None]
    """The step and the ending by which the component's token becomes that many; None if it stays one."""

    @property
    def total(self) -> int:
        """The greatest number of tokens in the net at once."""
        return self.count[self.reach.component_of[self.reach.net.entry]]

    def moves(self) -> list[Move]:
        """Return a firing sequence to that number of tokens; nothing if it is too long to be of use."""
        found: list[Move] = []
        waiting = [self.reach.net.entry]
        while waiting and len(found) <= MOVES_MAX:
            at = waiting.pop()
            best = self.best[self.reach.component_of[at]]
            if best is None:
                continue
            step, ending = best
            arcs = self._richest(step, ending)
            found += self.reach.ways.moves(self.reach.ways.path(at, step) or [])
            found.append(Move(step, ending.event, arcs))
            waiting += [self.reach.net.steps[step].arcs[arc].target for arc in arcs]
        return found if len(found) <= MOVES_MAX else []

    def _richest(self, step: int, ending: Ending) -> tuple[int, ...]:
        arcs = self.reach.net.steps[step].arcs
        value = _worth(self.reach, self.reach.component_of[step], lambda component: self.count[component])
        fired = [max(choice, key=lambda fired: sum(value(arcs[arc]) for arc in fired)) for choice in ending.choices]
        return tuple(sorted(arc for alternative in fired for arc in alternative))


def most_tokens(reach: Reach) -> Most:
    """Return the greatest numbers of tokens of a net that has a bound."""
    count: list[int] = []
    best: list[tuple[int, Ending] | None] = []
    for number, members in enumerate(reach.components):
        richest, by = richest_ending(reach, number, lambda component: count[component])
        count.append(max(1, richest))
        best.append(by if richest > 1 else None)
        assert len(members) > 0
    return Most(reach, count, best)


def richest_ending(reach: Reach, component: int, count: Callable[[int], int]) -> tuple[int, tuple[int, Ending] | None]:
    """Return the most tokens, by the count of where they go, that leave a component in one move, and by which."""
    value = _worth(reach, component, count)
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


def _worth(reach: Reach, component: int, count: Callable[[int], int]) -> Callable[[Arc], int]:
    """Return what an arc's token counts; one that stays in the component is the same token and counts nothing yet."""

    def value(arc: Arc) -> int:
        target = reach.component_of[arc.target]
        return 0 if target == component else count(target)

    return value
