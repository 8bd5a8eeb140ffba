"""Moves of the token game: what a step can fire, and firing sequences along paths of the net."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from noetlc.analysis.routers import Choice
from noetlc.net.net import Boundary, Gate, Net, NetArc, NetStep

DROPPED = "token.dropped"
"""Used in place of a boundary event for a token that the gate dropped."""
REJECTED = "token.rejected"
"""The same for a token that the gate held until the run ended (S30). The token stays."""


class Move(NamedTuple):
    """A token leaves a step; one token arrives at the target of each arc that fires."""

    step: int
    event: str
    arcs: tuple[int, ...]


def arcs_of(choice: Choice) -> set[int]:
    """Return every arc that some alternative of a choice fires."""
    return {arc for alternative in choice for arc in alternative}


def live_arcs(step: NetStep) -> Iterator[NetArc]:
    """Yield each arc that can fire once a token is admitted, in order."""
    if step.can_run:
        live = {arc for ending in step.endings for choice in ending.choices for fired in choice for arc in fired}
        yield from (step.arcs[index] for index in sorted(live))


def branch_may_end(step: NetStep) -> bool:
    """True if a token at the step can vanish without a successor, or stay for good."""
    if step.gate is not Gate.OPEN:
        return True
    return any(all(() in choice for choice in ending.choices) for ending in step.endings)


def firing(step: NetStep, ending: Boundary, wanted: Collection[int] = ()) -> Move | None:
    """Return the smallest move with this ending in which all wanted arcs fire; None if they never fire together."""
    fired: list[int] = []
    for choice in ending.choices:
        own = arcs_of(choice) & set(wanted)
        fitting = [alternative for alternative in choice if own <= set(alternative)]
        if not fitting:
            return None
        smallest: tuple[int, ...] = min(fitting, key=len)
        fired += smallest
    return Move(step.index, ending.event, tuple(sorted(fired))) if set(wanted) <= set(fired) else None


def denial(step: NetStep) -> Move:
    """Return the move of a token that the gate denies."""
    return Move(step.index, DROPPED if step.drops_denied else REJECTED, ())


def any_firing(step: NetStep, *wanted: int) -> Move | None:
    moves = (firing(step, ending, wanted) for ending in step.endings)
    return next((move for move in moves if move is not None), None)


def joint_firings(step: NetStep) -> Iterator[tuple[Boundary, int, int]]:
    """Yield every two arcs that can fire together, with an ending in which they do."""
    for ending in step.endings if step.can_run else ():
        for number, choice in enumerate(ending.choices):
            for alternative in choice:
                yield from ((ending, one, other) for one in alternative for other in alternative if one < other)
            own = arcs_of(choice)
            for later in ending.choices[number + 1 :]:
                yield from ((ending, one, other) for one in own for other in arcs_of(later))


class Paths:
    """Paths of a token along the live arcs of a net."""

    def __init__(self, net: Net) -> None:
        self.net = net
        self.onward: list[list[NetArc]] = [list(live_arcs(step)) for step in net.steps]
        self._moves: dict[tuple[int, int], Move | None] = {}

    def first_arcs(self, start: int, end: int | None = None) -> dict[int, NetArc | None]:
        """Return each step that a token from `start` can reach, with the last arc of a shortest path to it.

        With an `end`, the search stops when it is found.
        """
        found: dict[int, NetArc | None] = {start: None}
        pending = deque([start])
        while pending and end not in found:
            for arc in self.onward[pending.popleft()]:
                if arc.target not in found:
                    found[arc.target] = arc
                    pending.append(arc.target)
        return found

    def path(self, start: int, end: int) -> list[NetArc] | None:
        """Return a shortest path from one step to another; None if there is none."""
        return path_to(end, self.first_arcs(start, end))

    def round_trip(self, step: int) -> list[NetArc] | None:
        """Return a shortest cycle through a step; None if there is none."""
        found = self.first_arcs(step)
        for nearest in found:  # in order of distance
            for arc in self.onward[nearest]:
                if arc.target == step:
                    return [*(path_to(nearest, found) or []), arc]
        return None

    def moves(self, arcs: Iterable[NetArc]) -> list[Move]:
        """Return the moves of a token along these arcs."""
        found = (self._move(arc) for arc in arcs)
        return [move for move in found if move is not None]

    def _move(self, arc: NetArc) -> Move | None:
        key = (arc.source, arc.index)
        if key not in self._moves:
            self._moves[key] = any_firing(self.net.steps[arc.source], arc.index)
        return self._moves[key]


def path_to(end: int, first_arcs: Mapping[int, NetArc | None]) -> list[NetArc] | None:
    """Return the path to a step from what `Paths.first_arcs` found."""
    if end not in first_arcs:
        return None
    path: list[NetArc] = []
    arc = first_arcs[end]
    while arc is not None:
        path.append(arc)
        arc = first_arcs[arc.source]
    return path[::-1]
