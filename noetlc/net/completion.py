"""Whether every run can end, the shortest run to an end, and the traps: steps from which no run ends.

A run has ended when no token can move: all have vanished, or are held by gates (S30, S34). Tokens never wait for each
other, so a marking can end exactly if each of its tokens can.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from noetlc.net.moves import Move, denial
from noetlc.net.net import Boundary, Net, NetStep
from noetlc.net.reach import Reach, components
from noetlvm.record import Record

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
