"""Shortest and longest ways through a net, counted in steps."""

from __future__ import annotations

from noetlc.net.firing import line_may_end, path_to
from noetlc.net.net import Arc
from noetlc.net.reachability import Reach


def shortest_path(reach: Reach) -> list[int]:
    """Return the fewest steps from the entry to one where a line of tokens may end; empty if there is none."""
    for step in reach.first_arcs:  # nearest first
        if line_may_end(reach.net.steps[step]):
            return steps_of(reach.net.entry, path_to(step, reach.first_arcs) or [])
    return []


def longest_path(reach: Reach) -> list[int] | None:
    """Return the most steps in a row from the entry on; None if a cycle makes them endless."""
    if reach.cycles:
        return None
    length: dict[int, int] = {}
    onward: dict[int, int] = {}
    for (step,) in reach.components:  # each comes after all that it leads to
        length[step] = 1
        for arc in reach.ways.onward[step]:
            if length[arc.target] + 1 > length[step]:
                length[step], onward[step] = length[arc.target] + 1, arc.target
    path = [reach.net.entry]
    while path[-1] in onward:
        path.append(onward[path[-1]])
    return path


def steps_of(start: int, arcs: list[Arc]) -> list[int]:
    """Return the steps on a way, its beginning included."""
    return [start, *(arc.target for arc in arcs)]
