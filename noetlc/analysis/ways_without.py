"""Ways through a net that pass none of some steps or arcs: the way on which a value is missing. It reports nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from noetlc.analysis.step_net import StepNet
from noetlc.net.net import Arc

_VISITS_MAX = 500_000
"""Steps looked at for one playbook; searches beyond that find nothing, so that no playbook takes long."""


class Without:
    """Searches for one playbook. What one search finds out serves all readers of the same value."""

    def __init__(self, found: StepNet) -> None:
        self._found = found
        self._visits_left = _VISITS_MAX
        self._numbers = {step.name: step.index for step in found.net.steps}
        self._known: dict[str, dict[int, Arc | None]] = {}

    def steps(self, value: str, writers: set[int], reader: str) -> list[int] | None:
        """Return a way from the entry to a step that leaves no writer before it; None if there is none."""
        return self._way(value, reader, lambda arc: arc.source not in writers)

    def arcs(self, value: str, givers: set[tuple[int, int]], reader: str) -> list[int] | None:
        """Return a way from the entry to a step that takes none of these arcs; None if there is none."""
        return self._way(value, reader, lambda arc: (arc.source, arc.index) not in givers)

    def _way(self, value: str, reader: str, is_free: Callable[[Arc], bool]) -> list[int] | None:
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

    def _search(self, is_free: Callable[[Arc], bool]) -> dict[int, Arc | None]:
        entry = self._found.net.entry
        first_arcs: dict[int, Arc | None] = {entry: None}
        waiting = deque([entry])
        while waiting and self._visits_left > 0:
            self._visits_left -= 1
            for arc in self._found.reach.ways.onward[waiting.popleft()]:
                if arc.target not in first_arcs and is_free(arc):
                    first_arcs[arc.target] = arc
                    waiting.append(arc.target)
        return first_arcs
