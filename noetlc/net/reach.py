"""Which steps can run and which arcs can fire, why the others cannot, and the ways between steps.

`Reach` uses two small searches of its own, so that `lint` does not pay for importing networkx. `noetlc.graph` replaces
them by networkx; a property test holds both to the same answers (docs/decisions.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from noetlc.net.moves import Move, Paths, any_firing, denial, path_to
from noetlc.net.net import Net, NetArc, NetStep, Reason
from noetlvm.record import Record


class Reach(Record, cached=True):
    """The part of a net that tokens from the entry can reach. The final step's own token does not count."""

    net: Net
    paths: Paths

    @cached_property
    def first_arcs(self) -> dict[int, NetArc | None]:
        """Each step that a token reaches, nearest first, with the last arc of a shortest path to it."""
        return self.paths.first_arcs(self.net.entry)

    @cached_property
    def arrived(self) -> list[int]:
        """The steps that a token reaches, in source order."""
        return sorted(self.first_arcs)

    @cached_property
    def components(self) -> list[list[int]]:
        """The strongly connected components of these steps, in reverse topological order."""
        return components([self.net.entry], lambda step: (arc.target for arc in self.paths.onward[step]))

    @cached_property
    def component_of(self) -> dict[int, int]:
        """The index of each step's component."""
        return {step: number for number, members in enumerate(self.components) for step in members}

    @cached_property
    def cycles(self) -> list[list[int]]:
        """The components that contain a cycle, each with its steps in source order."""
        return sorted(members for members in self.components if self.is_cycle(members))

    @cached_property
    def arcs_to(self) -> dict[int, list[NetArc]]:
        """The arcs that lead to each step, dead ones included."""
        found: dict[int, list[NetArc]] = {}
        for step in self.net.steps:
            for arc in step.arcs:
                found.setdefault(arc.target, []).append(arc)
        return found

    def is_cycle(self, members: list[int]) -> bool:
        return len(members) > 1 or any(arc.target == members[0] for arc in self.paths.onward[members[0]])

    def runs(self, step: int) -> bool:
        """True if a step can run, other than as the final step."""
        return step in self.first_arcs and self.net.steps[step].can_run

    def moves_to(self, step: int) -> list[Move]:
        """Return a shortest firing sequence that brings a token to a step."""
        return self.paths.moves(path_to(step, self.first_arcs) or [])


def reach(net: Net) -> Reach:
    return Reach(net, Paths(net))


def why_never(reach: Reach, step: NetStep) -> Reason:
    if step.index == reach.net.final:
        return Reason.NO_END if step.can_run else Reason.GATE
    if step.index in reach.first_arcs:
        return Reason.GATE
    return Reason.ARCS if reach.arcs_to.get(step.index, []) else Reason.NO_ARC


def dead_arcs(reach: Reach) -> Iterator[tuple[NetArc, Reason]]:
    """Yield each arc that never fires, and why."""
    for step in reach.net.steps:
        for arc in step.arcs:
            if not reach.runs(step.index):
                yield arc, Reason.FINAL if step.index == reach.net.final else Reason.SOURCE
            elif arc.reason is not None:
                yield arc, arc.reason


def near_miss(reach: Reach, step: NetStep) -> list[Move]:
    """Return a firing sequence that gets as near as possible to a step that never runs."""
    if step.index in reach.first_arcs:
        return [*reach.moves_to(step.index), denial(step)]
    sources = [arc.source for arc in reach.arcs_to.get(step.index, []) if reach.runs(arc.source)]
    return moves_from(reach, min(sources)) if sources else first_move(reach)


def moves_from(reach: Reach, source: int, *arcs: int) -> list[Move]:
    """Return a firing sequence that ends with a step firing these arcs."""
    last = any_firing(reach.net.steps[source], *arcs)
    return [*reach.moves_to(source), *([last] if last else [])]


def first_move(reach: Reach) -> list[Move]:
    entry = reach.net.steps[reach.net.entry]
    return moves_from(reach, entry.index) if entry.can_run else [denial(entry)]


def components(roots: Iterable[int], onward: Callable[[int], Iterable[int]]) -> list[list[int]]:
    """Return the strongly connected components reachable from the roots, in reverse topological order."""
    search = _Tarjan(onward)
    for root in roots:
        if root not in search.number:
            search.run(root)
    return search.found


class _Tarjan:
    """Tarjan's algorithm with an explicit stack, because nets may be deeper than the recursion limit."""

    def __init__(self, onward: Callable[[int], Iterable[int]]) -> None:
        self._onward = onward
        self.number: dict[int, int] = {}
        self._low: dict[int, int] = {}
        self._open: list[int] = []
        self._is_open: set[int] = set()
        self._calls: list[tuple[int, Iterator[int]]] = []
        self.found: list[list[int]] = []

    def run(self, root: int) -> None:
        self._enter(root)
        while self._calls:
            node, rest = self._calls[-1]
            new = self._next_new(node, rest)
            if new is not None:
                self._enter(new)
            else:
                self._leave()

    def _enter(self, node: int) -> None:
        self.number[node] = self._low[node] = len(self.number)
        self._open.append(node)
        self._is_open.add(node)
        self._calls.append((node, iter(self._onward(node))))

    def _next_new(self, node: int, rest: Iterator[int]) -> int | None:
        for target in rest:
            if target not in self.number:
                return target
            if target in self._is_open:
                self._low[node] = min(self._low[node], self.number[target])
        return None

    def _leave(self) -> None:
        node, _ = self._calls.pop()
        if self._calls:
            above = self._calls[-1][0]
            self._low[above] = min(self._low[above], self._low[node])
        if self._low[node] == self.number[node]:
            members: list[int] = []
            while not members or members[-1] != node:
                members.append(self._open.pop())
                self._is_open.discard(members[-1])
            self.found.append(sorted(members))
