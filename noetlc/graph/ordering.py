"""What always comes before a step, and what always comes after it: dominators and post-dominators.

Before: every path of a token to the step passes there. After: every line of tokens from the step that ends passes
there; a line is a token, one of the tokens it becomes, and so on.

Dominators by Lengauer and Tarjan's algorithm. `networkx.immediate_dominators` takes quadratic time where thousands of
steps lead to one error handler, as they do in playbooks (docs/decisions.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from noetlc.net.moves import branch_may_end
from noetlc.net.reach import Reach

_END = -1


def always_before(reach: Reach) -> dict[int, int | None]:
    """Return, for each step that tokens reach, its immediate dominator; None for the entry."""
    found = immediate_dominators(reach.net.entry, lambda step: (arc.target for arc in reach.paths.onward[step]))
    return {step: found[step] for step in reach.arrived}


def always_after(reach: Reach) -> dict[int, int | None]:
    """Return, for each step that tokens reach, its immediate post-dominator; None where there is none."""
    into: dict[int, list[int]] = {_END: [step for step in reach.arrived if branch_may_end(reach.net.steps[step])]}
    for step in reach.arrived:
        for arc in reach.paths.onward[step]:
            into.setdefault(arc.target, []).append(step)
    found = immediate_dominators(_END, lambda step: into.get(step, ()))
    nearest = {step: found.get(step) for step in reach.arrived}
    return {step: None if above == _END else above for step, above in nearest.items()}


def immediate_dominators(root: int, onward: Callable[[int], Iterable[int]]) -> dict[int, int | None]:
    """Return the immediate dominator of each node reachable from the root; None for the root."""
    return _Forest(root, onward).dominators()


class _Forest:
    """Nodes are numbered in depth-first order; the root is 0."""

    def __init__(self, root: int, onward: Callable[[int], Iterable[int]]) -> None:
        self._nodes: list[int] = []
        self._parent: list[int] = []
        self._into: list[list[int]] = []
        self._number_all(root, onward)
        count = len(self._nodes)
        self._semi = list(range(count))
        self._best = list(range(count))
        """The ancestor of a node within its tree of the forest that has the least semi-dominator."""
        self._ancestor: list[int] = [-1] * count

    def _number_all(self, root: int, onward: Callable[[int], Iterable[int]]) -> None:
        numbers: dict[int, int] = {}
        calls: list[tuple[int, Iterator[int]]] = []

        def enter(node: int, parent: int) -> None:
            numbers[node] = len(self._nodes)
            self._nodes.append(node)
            self._parent.append(parent)
            self._into.append([])
            calls.append((numbers[node], iter(onward(node))))

        enter(root, 0)
        while calls:
            number, rest = calls[-1]
            target = next(rest, None)
            if target is None:
                calls.pop()
                continue
            if target not in numbers:
                enter(target, number)
            self._into[numbers[target]].append(number)

    def dominators(self) -> dict[int, int | None]:
        count = len(self._nodes)
        found = [0] * count
        pending: list[list[int]] = [[] for _ in range(count)]
        for node in range(count - 1, 0, -1):
            for source in self._into[node]:
                self._semi[node] = min(self._semi[node], self._semi[self._evaluate(source)])
            pending[self._semi[node]].append(node)
            parent = self._parent[node]
            self._ancestor[node] = parent
            for other in pending[parent]:
                best = self._evaluate(other)
                found[other] = best if self._semi[best] < self._semi[other] else parent
            pending[parent].clear()
        for node in range(1, count):
            if found[node] != self._semi[node]:
                found[node] = found[found[node]]
        named: dict[int, int | None] = {self._nodes[n]: self._nodes[found[n]] for n in range(1, count)}
        return {self._nodes[0]: None, **named}

    def _evaluate(self, node: int) -> int:
        """Return the best ancestor, with path compression."""
        if self._ancestor[node] == -1:
            return node
        line = [node]
        while self._ancestor[self._ancestor[line[-1]]] != -1:
            line.append(self._ancestor[line[-1]])
        for lower in reversed(line[:-1]):
            above = self._ancestor[lower]
            if self._semi[self._best[above]] < self._semi[self._best[lower]]:
                self._best[lower] = self._best[above]
            self._ancestor[lower] = self._ancestor[above]
        return self._best[node]
