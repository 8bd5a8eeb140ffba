"""Strongly connected components, without recursion and in linear time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator


def components(roots: Iterable[int], onward: Callable[[int], Iterable[int]]) -> list[list[int]]:
    """Return the components that can be reached from the roots; each comes after all that it leads to."""
    search = _Search(onward)
    for root in roots:
        search.begin(root)
    return search.found


class _Search:
    """Tarjan's search, with its own stack of calls."""

    def __init__(self, onward: Callable[[int], Iterable[int]]) -> None:
        self._onward = onward
        self._number: dict[int, int] = {}
        self._low: dict[int, int] = {}
        self._open: list[int] = []
        self._is_open: set[int] = set()
        self.found: list[list[int]] = []

    def begin(self, root: int) -> None:
        if root in self._number:
            return
        calls: list[tuple[int, Iterator[int]]] = [self._enter(root)]
        while calls:
            node, rest = calls[-1]
            inner = self._next_new(node, rest)
            if inner is not None:
                calls.append(self._enter(inner))
                continue
            calls.pop()
            if calls:
                above = calls[-1][0]
                self._low[above] = min(self._low[above], self._low[node])
            if self._low[node] == self._number[node]:
                self._close(node)

    def _enter(self, node: int) -> tuple[int, Iterator[int]]:
        self._number[node] = self._low[node] = len(self._number)
        self._open.append(node)
        self._is_open.add(node)
        return node, iter(self._onward(node))

    def _next_new(self, node: int, rest: Iterator[int]) -> int | None:
        for target in rest:
            if target not in self._number:
                return target
            if target in self._is_open:
                self._low[node] = min(self._low[node], self._number[target])
        return None

    def _close(self, node: int) -> None:
        members: list[int] = []
        while not members or members[-1] != node:
            members.append(self._open.pop())
            self._is_open.discard(members[-1])
        self.found.append(sorted(members))
