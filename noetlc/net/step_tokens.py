"""The greatest number of tokens at each step at once.

A component that only one arc leads to gets as many tokens as the place that arc comes from. For the others the part of
the net between it and its immediate dominator is gone through; all of its tokens pass there, so the numbers multiply.
"""

from __future__ import annotations

from collections.abc import Callable

from noetlc.net.bounds import richest_ending
from noetlc.net.completion import MANY
from noetlc.net.reachability import Reach

WORK_PER_STEP = 200
"""Arcs looked at for each step of the net, on average. What is not known by then is left out."""


def step_tokens(reach: Reach, dominators: dict[int, int | None], endless: set[int]) -> dict[int, int | None]:
    """Return the greatest number of tokens at each step; None for the steps in `endless`, which has no bound."""
    return _Count(reach, dominators, endless).run()


class _Count:
    def __init__(self, reach: Reach, dominators: dict[int, int | None], endless: set[int]) -> None:
        self._reach = reach
        self._endless = endless
        self._into: list[list[int]] = [[] for _ in reach.components]
        """For each component, the components that its incoming arcs come from; one entry an arc."""
        for number, members in enumerate(reach.components):
            for step in members:
                for arc in reach.ways.onward[step]:
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
                if step in self._endless:
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
        if before is None or self._work <= 0 or self._reach.components[number][0] in self._endless:
            return None
        return min(MANY, before * self._between(above, number))

    def _between(self, above: int, number: int) -> int:
        """Return how many tokens come to a component from one token at its dominator."""
        region = {number}
        waiting = [number]
        while waiting:
            for source in self._into[waiting.pop()]:
                self._work -= 1
                if source not in region:
                    region.add(source)
                    if source != above:
                        waiting.append(source)
        reaching = {number: 1}
        count: Callable[[int], int] = lambda component: reaching.get(component, 0)  # noqa: E731 - a view of the table
        for component in sorted(region):  # a component comes after all that it leads to
            if component != number:
                reaching[component] = richest_ending(self._reach, component, count)[0]
        return reaching[above]
