"""Moves of the token game: what a step can fire, and firing sequences along ways through the net."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from noetlc.net.net import Arc, Choice, Ending, Net, Step

DROPPED = "token.dropped"
"""Stands for the boundary event of a token that the gate turned away."""
REJECTED = "token.rejected"
"""The same for a token that the gate held until the run ended (S30). It is still there then."""


class Move(NamedTuple):
    """A token leaves a step; one token comes to the end of each arc that fires."""

    step: int
    event: str
    arcs: tuple[int, ...]


def arcs_of(choice: Choice) -> set[int]:
    """Return every arc that some alternative of a choice fires."""
    return {arc for alternative in choice for arc in alternative}


def live_arcs(step: Step) -> Iterator[tuple[Arc, Ending]]:
    """Yield each arc that may fire once a token is let in, with the first ending in which it may."""
    found: dict[int, Ending] = {}
    if step.can_run:
        for ending in step.endings:
            for choice in ending.choices:
                for index in arcs_of(choice):
                    found.setdefault(index, ending)
    for index in sorted(found):
        yield step.arcs[index], found[index]


def fires_nothing(ending: Ending) -> bool:
    """Tell whether a step may end so and put no token anywhere."""
    return all(() in choice for choice in ending.choices)


def line_may_end(step: Step) -> bool:
    """Tell whether a token at the step may leave none behind, or stay for good."""
    if step.gate.value != "open":
        return True
    return any(fires_nothing(ending) for ending in step.endings)


def firing(step: Step, ending: Ending, wanted: Collection[int] = ()) -> Move | None:
    """Return the smallest move with this ending in which all wanted arcs fire; None if they never do together."""
    fired: list[int] = []
    for choice in ending.choices:
        own = arcs_of(choice) & set(wanted)
        fitting = [alternative for alternative in choice if own <= set(alternative)]
        if not fitting:
            return None
        smallest: tuple[int, ...] = min(fitting, key=len)
        fired += smallest
    return Move(step.index, ending.event, tuple(sorted(fired))) if set(wanted) <= set(fired) else None


def denial(step: Step) -> Move:
    """Return what becomes of a token that the gate denies."""
    return Move(step.index, DROPPED if step.drops_denied else REJECTED, ())


def any_firing(step: Step, *wanted: int) -> Move | None:
    """Return a move of the step, whatever its ending, in which all wanted arcs fire."""
    moves = (firing(step, ending, wanted) for ending in step.endings)
    return next((move for move in moves if move is not None), None)


def joint_firings(step: Step) -> Iterator[tuple[Ending, int, int]]:
    """Yield every two arcs that may fire together, and an ending in which they do."""
    for ending in step.endings if step.can_run else ():
        for number, choice in enumerate(ending.choices):
            for alternative in choice:
                yield from ((ending, one, other) for one in alternative for other in alternative if one < other)
            own = arcs_of(choice)
            for later in ending.choices[number + 1 :]:
                yield from ((ending, one, other) for one in own for other in arcs_of(later))


class Ways:
    """Where a token can go in a net, arc by arc: the live arcs, found once."""

    def __init__(self, net: Net) -> None:
        self.net = net
        self.onward: list[list[Arc]] = [[arc for arc, _ in live_arcs(step)] for step in net.steps]
        self._moves: dict[tuple[int, int], Move | None] = {}

    def first_arcs(self, start: int, end: int | None = None) -> dict[int, Arc | None]:
        """Return each step that a token from `start` can come to, with the arc by which it comes there soonest.

        With an `end`, look no further once it is found.
        """
        found: dict[int, Arc | None] = {start: None}
        waiting = deque([start])
        while waiting and end not in found:
            for arc in self.onward[waiting.popleft()]:
                if arc.target not in found:
                    found[arc.target] = arc
                    waiting.append(arc.target)
        return found

    def path(self, start: int, end: int) -> list[Arc] | None:
        """Return the fewest arcs that lead from one step to another; None if none do."""
        return path_to(end, self.first_arcs(start, end))

    def round_trip(self, step: int) -> list[Arc] | None:
        """Return the fewest arcs that lead from a step back to it; None if none do."""
        trips = []
        for arc in self.onward[step]:
            back = self.path(arc.target, step)
            if back is not None:
                trips.append([arc, *back])
        return min(trips, key=len, default=None)

    def moves(self, arcs: Iterable[Arc]) -> list[Move]:
        """Return the moves of a token that goes along these arcs."""
        found = (self._move(arc) for arc in arcs)
        return [move for move in found if move is not None]

    def _move(self, arc: Arc) -> Move | None:
        """Return the move along one arc; ways meet, so each is found once."""
        key = (arc.source, arc.index)
        if key not in self._moves:
            self._moves[key] = any_firing(self.net.steps[arc.source], arc.index)
        return self._moves[key]


def path_to(end: int, first_arcs: Mapping[int, Arc | None]) -> list[Arc] | None:
    """Return the arcs to a step out of what `Ways.first_arcs` found."""
    if end not in first_arcs:
        return None
    path: list[Arc] = []
    arc = first_arcs[end]
    while arc is not None:
        path.append(arc)
        arc = first_arcs[arc.source]
    return path[::-1]
