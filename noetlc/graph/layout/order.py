"""The order of cells in their rows, with few crossings: sweeps that put each cell at the middle of its neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from noetlc.graph.layout.cells import Cells

_SWEEPS = 24
_PATIENCE = 4
"""Sweeps without a better answer before giving up."""
_LARGE = 20_000
_SWEEPS_OF_LARGE = 4


def order_rows(cells: Cells) -> list[list[int]]:
    rows = _first_order(cells)
    best, fewest = rows, _crossings(rows, cells.below)
    idle = 0
    for sweep in range(_SWEEPS if len(cells.sizes) < _LARGE else _SWEEPS_OF_LARGE):
        rows = _sweep(rows, cells, downwards=sweep % 2 == 0)
        crossings = _crossings(rows, cells.below)
        idle = 0 if crossings < fewest else idle + 1
        if crossings < fewest:
            best, fewest = rows, crossings
        if not fewest or idle > _PATIENCE:
            break
    return best


def _first_order(cells: Cells) -> list[list[int]]:
    """Order each row as a walk from the top meets its cells, so that what belongs together starts out together."""
    place: dict[int, int] = {}
    stack = [cell for row in reversed(cells.rows) for cell in reversed(row)]
    while stack:
        cell = stack.pop()
        if cell not in place:
            place[cell] = len(place)
            stack.extend(lower for lower in reversed(cells.below[cell]) if lower not in place)
    return [sorted(row, key=place.__getitem__) for row in cells.rows]


def _sweep(rows: list[list[int]], cells: Cells, *, downwards: bool) -> list[list[int]]:
    neighbours = cells.above if downwards else cells.below
    ordered = list(rows)
    numbers = range(1, len(rows)) if downwards else range(len(rows) - 2, -1, -1)
    for number in numbers:
        beside = ordered[number - 1 if downwards else number + 1]
        place = {cell: index for index, cell in enumerate(beside)}
        ordered[number] = _by_middle(ordered[number], neighbours, place, len(beside))
    return ordered


def _by_middle(row: list[int], neighbours: list[list[int]], place: dict[int, int], width: int) -> list[int]:
    scale = width / len(row)
    middles = {}
    for index, cell in enumerate(row):
        near = neighbours[cell]
        middles[cell] = sum(place[other] for other in near) / len(near) if near else index * scale
    return sorted(row, key=middles.__getitem__)


def _crossings(rows: Sequence[Sequence[int]], below: list[list[int]]) -> int:
    return sum(_crossings_between(upper, lower, below) for upper, lower in pairwise(rows))


def _crossings_between(upper: Sequence[int], lower: Sequence[int], below: list[list[int]]) -> int:
    """Count pairs of lines whose ends are in opposite order, with a tree of partial sums."""
    place = {cell: index for index, cell in enumerate(lower)}
    ends = [end for cell in upper for end in sorted(place[other] for other in below[cell])]
    sums = [0] * (len(lower) + 1)
    crossings = 0
    for seen, end in enumerate(ends):
        crossings += seen - _sum_up_to(sums, end + 1)
        at = end + 1
        while at < len(sums):
            sums[at] += 1
            at += at & -at
    return crossings


def _sum_up_to(sums: list[int], at: int) -> int:
    total = 0
    while at:
        total += sums[at]
        at -= at & -at
    return total
