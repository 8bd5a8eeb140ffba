"""Immediate dominators by Lengauer and Tarjan's method, without recursion.

The simpler method that walks up the tree takes quadratic time where thousands of steps lead to one error handler,
which is what playbooks look like.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator


def immediate_dominators(root: int, onward: Callable[[int], Iterable[int]]) -> dict[int, int | None]:
    """Return, for each node that can be reached from the root, its immediate dominator; None for the root."""
    return _Forest(root, onward).dominators()


class _Forest:
    """Nodes go by their number in the order of a depth-first search; the root is 0."""

    def __init__(self, root: int, onward: Callable[[int], Iterable[int]]) -> None:
        self._nodes: list[int] = []
        self._parent: list[int] = []
        self._into: list[list[int]] = []
        self._number_all(root, onward)
        count = len(self._nodes)
        self._semi = list(range(count))
        self._best = list(range(count))
        """On the way up from a node within its tree of the forest, the one with the least semi-dominator."""
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
        waiting: list[list[int]] = [[] for _ in range(count)]
        for node in range(count - 1, 0, -1):
            for source in self._into[node]:
                self._semi[node] = min(self._semi[node], self._semi[self._evaluate(source)])
            waiting[self._semi[node]].append(node)
            parent = self._parent[node]
            self._ancestor[node] = parent
            for other in waiting[parent]:
                best = self._evaluate(other)
                found[other] = best if self._semi[best] < self._semi[other] else parent
            waiting[parent].clear()
        for node in range(1, count):
            if found[node] != self._semi[node]:
                found[node] = found[found[node]]
        named: dict[int, int | None] = {self._nodes[n]: self._nodes[found[n]] for n in range(1, count)}
        return {self._nodes[0]: None, **named}

    def _evaluate(self, node: int) -> int:
        """Return the best node on the way up, and shorten that way for the next time."""
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
