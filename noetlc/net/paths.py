"""Paths through a net: whether one step can run before another, and paths on which a value is missing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from noetlc.net.net import NetArc
from noetlc.net.source import SourceNet

_VISITS_MAX = 500_000
"""Steps visited for one playbook; searches beyond that find nothing, so that every playbook is linted quickly."""


class Without:
    """Searches in one net; one search serves all readers of the same value."""

    def __init__(self, found: SourceNet) -> None:
        self._found = found
        self._visits_left = _VISITS_MAX
        self._numbers = {step.name: step.index for step in found.net.steps}
        self._known: dict[str, dict[int, NetArc | None]] = {}

    def steps(self, value: str, writers: set[int], reader: str) -> list[int] | None:
        """Return a path from the entry to a step on which no writer runs; None if there is none."""
        return self._way(value, reader, lambda arc: arc.source not in writers)

    def arcs(self, value: str, givers: set[tuple[int, int]], reader: str) -> list[int] | None:
        """Return a path from the entry to a step that takes none of these arcs; None if there is none."""
        return self._way(value, reader, lambda arc: (arc.source, arc.index) not in givers)

    def _way(self, value: str, reader: str, is_free: Callable[[NetArc], bool]) -> list[int] | None:
        if value not in self._known:
            self._known[value] = self._search(is_free)
        first_arcs, end = self._known[value], self._numbers[reader]
        if end not in first_arcs:
            return None
        way = [end]
        arc = first_arcs[end]
        while arc is not None:
            way.append(arc.source)
            arc = first_arcs[arc.source]
        return way[::-1]

    def _search(self, is_free: Callable[[NetArc], bool]) -> dict[int, NetArc | None]:
        entry = self._found.net.entry
        first_arcs: dict[int, NetArc | None] = {entry: None}
        pending = deque([entry])
        while pending and self._visits_left > 0:
            self._visits_left -= 1
            for arc in self._found.reach.paths.onward[pending.popleft()]:
                if arc.target not in first_arcs and is_free(arc):
                    first_arcs[arc.target] = arc
                    pending.append(arc.target)
        return first_arcs


class Precedence:
    """Whether one step can have run before another; where the net does not decide it, it can."""

    def __init__(self, found: SourceNet | None) -> None:
        # With one token there is one order. Several tokens can overtake each other in any way.
        self._found = None if found is None or any(step.inclusive for step in found.net.steps) else found
        self._numbers = {step.name: step.index for step in found.net.steps} if found else {}
        self._after: dict[int, set[int]] = {}
        self._visits_left = _VISITS_MAX

    def can_precede(self, earlier: str, later: str) -> bool:
        """True if a run of `earlier` can be over when a run of `later` begins."""
        if self._found is None or self._numbers[later] == self._found.net.final or self._visits_left <= 0:
            return True
        start = self._numbers[earlier]
        if start not in self._after:
            onward = self._found.reach.paths.onward
            self._after[start] = set()
            for arc in onward[start]:
                if arc.target not in self._after[start]:
                    self._after[start] |= self._found.reach.paths.first_arcs(arc.target).keys()
            self._visits_left -= len(self._after[start])
        return self._numbers[later] in self._after[start]
