"""How many tokens there can be (bound, most at once, of each step), and whether every run can complete.

Unbounded exactly if a step on a reachable cycle can fire an arc of the cycle together with another arc: every round
leaves one more token. If no step can, a token on a cycle stays one token, so that a whole component counts as one
step, and the components form no cycle.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

from noetlc.net.moves import Move, denial, firing, joint_firings
from noetlc.net.net import Boundary, Net, NetArc, NetStep
from noetlc.net.reach import Reach, components
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


MANY = 1_000_000_000
"""Numbers saturate here."""

ENDING_MOVES_MAX = 10_000
"""Moves of a run that are listed."""


class Completion(Record):
    """For each step, the shortest run from one token there to the end."""

    net: Net
    length: dict[int, int]
    """Number of moves; steps from which no run ends are missing."""
    first: dict[int, Move | None]
    """The first of these moves; None if the token is held."""

    def can_end(self, step: int) -> bool:
        return step in self.length

    def moves(self, start: int) -> list[Move]:
        """Return the shortest run from one token to the end; a very long one is cut."""
        found: list[Move] = []
        pending = [start]
        while pending and len(found) < ENDING_MOVES_MAX:
            step = pending.pop()
            move = self.first[step]
            if move is not None:
                found.append(move)
                pending += [self.net.steps[step].arcs[arc].target for arc in move.arcs]
        return found


def completion(net: Net) -> Completion:
    """Compute the shortest run to the end from each step."""
    return _Search(net).run()


def traps(reach: Reach, ends: Completion) -> list[list[int]]:
    """Return the innermost sets of steps that tokens reach and from which no run ends."""
    stuck = [step for step in reach.arrived if not ends.can_end(step)]

    def onward(step: int) -> Iterator[int]:
        return (arc.target for arc in reach.paths.onward[step] if not ends.can_end(arc.target))

    found = components(stuck, onward)
    component = {step: number for number, members in enumerate(found) for step in members}
    innermost = [
        members
        for number, members in enumerate(found)
        if all(component[target] == number for step in members for target in onward(step))
    ]
    return sorted(innermost)


def trap_moves(reach: Reach, step: int) -> list[Move]:
    """Return a firing sequence that reaches a step and completes one cycle from there."""
    return [*reach.moves_to(step), *reach.paths.moves(reach.paths.round_trip(step) or [])]


class _Search:
    """Dijkstra's algorithm over an and-or graph.

    A step takes its best ending, an ending needs all of its choices, a choice takes its best alternative, an
    alternative needs all of its targets. Each is a node; nodes are settled in order of cost.
    """

    def __init__(self, net: Net) -> None:
        self._net = net
        self._parents: list[list[int]] = [[] for _ in net.steps]
        self._missing: list[int] = [-1] * len(net.steps)
        """Children that a node still needs; -1 for a node that takes the best of them."""
        self._cost: list[int] = [0] * len(net.steps)
        self._best: list[int | None] = [None] * len(net.steps)
        self._arcs: dict[int, tuple[int, ...]] = {}
        self._children: dict[int, list[int]] = {}
        self._endings: dict[int, Boundary] = {}
        self._queue: list[tuple[int, int]] = []
        self._settled: set[int] = set()

    def run(self) -> Completion:
        for step in self._net.steps:
            self._add_step(step)
        while self._queue:
            cost, node = heapq.heappop(self._queue)
            if node not in self._settled:
                self._settled.add(node)
                self._cost[node] = cost
                for parent in self._parents[node]:
                    self._settle(parent, node, cost)
        done = [step for step in range(len(self._net.steps)) if step in self._settled]
        return Completion(self._net, {step: self._cost[step] for step in done}, {n: self._move(n) for n in done})

    def _node(self, missing: int, cost: int = 0) -> int:
        self._parents.append([])
        self._missing.append(missing)
        self._cost.append(cost)
        self._best.append(None)
        if missing == 0:
            heapq.heappush(self._queue, (cost, len(self._parents) - 1))
        return len(self._parents) - 1

    def _add_step(self, step: NetStep) -> None:
        if step.may_hold:
            heapq.heappush(self._queue, (0, step.index))
            return
        if step.may_drop:
            self._parents[self._node(0, 1)].append(step.index)
        for ending in step.endings if step.can_run else ():
            node = self._node(len(ending.choices), 1)
            self._endings[node] = ending
            self._parents[node].append(step.index)
            self._children[node] = [self._add_choice(step, choice, node) for choice in ending.choices]

    def _add_choice(self, step: NetStep, choice: tuple[tuple[int, ...], ...], ending: int) -> int:
        node = self._node(-1)
        self._parents[node].append(ending)
        for alternative in choice:
            option = self._node(len(alternative))
            self._arcs[option] = alternative
            self._parents[option].append(node)
            for arc in alternative:
                self._parents[step.arcs[arc].target].append(option)
        return node

    def _settle(self, node: int, child: int, cost: int) -> None:
        """Propagate a settled child to its parent. Children settle in order of cost, so the first is the cheapest."""
        if self._missing[node] == -1:
            if self._best[node] is None:
                self._best[node] = child
                heapq.heappush(self._queue, (cost, node))
            return
        self._missing[node] -= 1
        self._cost[node] = min(MANY, self._cost[node] + cost)
        if self._missing[node] == 0:
            heapq.heappush(self._queue, (self._cost[node], node))

    def _move(self, step: int) -> Move | None:
        ending = self._best[step]
        if ending is None:
            return None
        if ending not in self._endings:
            return denial(self._net.steps[step])
        fired = [arc for choice in self._children[ending] for arc in self._arcs[self._best[choice] or 0]]
        return Move(step, self._endings[ending].event, tuple(sorted(fired)))
