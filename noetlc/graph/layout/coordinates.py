"""Where each cell stands: x by least squares towards its neighbours under minimal distances, y row by row."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from noetlc.graph.layout.cells import GAP, Cells
from noetlc.graph.layout.straighten import straighten
from noetlvm.record import Record

_ROUNDS = 12
_ROUNDS_OF_LARGE = 3
_LARGE = 20_000
_ROW_GAP = 20.0
_MOST_ROW_GAP = 76.0
_SLOPE = 0.11
"""How much higher the gap between rows gets for each unit that the widest line in it travels sideways."""
_RAIL_PULL = 6.0
"""Weight of keeping a passing line straight, relative to a box."""
_NO_PULL = 0.05
"""Weight of the current position of a cell without neighbours."""


class Coordinates(Record):
    """Centres of cells, and top and bottom of rows."""

    x: list[float]
    tops: list[float]
    bottoms: list[float]
    row_of: list[int]


def place_cells(cells: Cells, rows: Sequence[Sequence[int]]) -> Coordinates:
    x = [0.0] * len(cells.sizes)
    offsets = [_offsets(row, cells) for row in rows]
    for row, least in zip(rows, offsets, strict=True):
        for cell, offset in zip(row, least, strict=True):
            x[cell] = offset - least[-1] / 2
    uppers, lowers = _straight(cells, cells.above), _straight(cells, cells.below)
    above, below = _Pull(cells, uppers), _Pull(cells, lowers)
    both = _Pull(cells, [up + down for up, down in zip(uppers, lowers, strict=True)])
    numbered = list(zip(rows, offsets, strict=True))
    for _ in range(_ROUNDS if len(cells.sizes) < _LARGE else _ROUNDS_OF_LARGE):
        above.apply(numbered[1:], x)
        below.apply(numbered[-2::-1], x)
    for _ in range(2):
        straighten(cells, rows, x)
        both.apply(numbered, x)
    straighten(cells, rows, x)
    return _with_rows(cells, rows, x)


def _straight(cells: Cells, neighbours: Sequence[list[int]]) -> list[list[int]]:
    """Return the neighbours that draw each cell: a box stands in line with the boxes of the next row that it leads to.

    Lines that continue past that row, such as those to a step that handles every failure, would bend long rows.
    """
    boxes = cells.boxes
    found = []
    for cell, near in enumerate(neighbours):
        short = [one for one in near if one < boxes or any(far < boxes for far in neighbours[one])]
        found.append(short if cell < boxes and short else near)
    return found


class _Pull:
    """What draws each cell where: its neighbours, and among these a line's own cells before all others."""

    def __init__(self, cells: Cells, neighbours: Sequence[list[int]]) -> None:
        self._near: list[list[int]] = []
        self._weights: list[float] = []
        for cell, near in enumerate(neighbours):
            own = [other for other in near if other >= cells.boxes] if cell >= cells.boxes else []
            self._near.append(own or near)
            self._weights.append(_RAIL_PULL if own else 1.0 if near else _NO_PULL)

    def apply(self, rows: Sequence[tuple[Sequence[int], list[float]]], x: list[float]) -> None:
        for row, offsets in rows:
            wishes = []
            for cell in row:
                near = self._near[cell]
                wishes.append(sum([x[other] for other in near]) / len(near) if near else x[cell])
            _put(row, offsets, x, wishes, [self._weights[cell] for cell in row])


def _put(
    row: Sequence[int], offsets: list[float], x: list[float], wishes: Sequence[float], weights: Sequence[float]
) -> None:
    """Set the row's x as near to the wishes as order and distances allow.

    Taking the least distances off leaves plain order, and the nearest ordered numbers come from pooling neighbours
    that are in the wrong order.
    """
    pools: list[tuple[float, float, int]] = []  # mean, weight, how many
    for wish, weight, offset in zip(wishes, weights, offsets, strict=True):
        mean, total, count = wish - offset, weight, 1
        while pools and pools[-1][0] > mean:
            other, more, further = pools.pop()
            mean = (mean * total + other * more) / (total + more)
            total, count = total + more, count + further
        pools.append((mean, total, count))
    at = 0
    for mean, _, count in pools:
        for index in range(at, at + count):
            x[row[index]] = mean + offsets[index]
        at += count


def _offsets(row: Sequence[int], cells: Cells) -> list[float]:
    """Return the least x of each cell, with the first at 0. A cell's centre is its own, its margin is at the right."""
    offsets = [0.0]
    for left, right in pairwise(row):
        apart = cells.sizes[left].width / 2 + cells.margins[left] + GAP + cells.sizes[right].width / 2
        offsets.append(offsets[-1] + apart)
    return offsets


def _with_rows(cells: Cells, rows: Sequence[Sequence[int]], x: list[float]) -> Coordinates:
    leftmost = min(x[cell] - cells.sizes[cell].width / 2 for row in rows for cell in row)
    x = [round(value - leftmost, 1) for value in x]
    row_of = [0] * len(x)
    tops, bottoms = [], []
    y = 0.0
    for number, row in enumerate(rows):
        height = max((cells.sizes[cell].height for cell in row), default=0.0)
        tops.append(round(y, 1))
        bottoms.append(round(y + height, 1))
        travel = max((abs(x[cell] - x[other]) for cell in row for other in cells.below[cell]), default=0.0)
        y += height + round(min(_MOST_ROW_GAP, _ROW_GAP + _SLOPE * travel), 1)
        for cell in row:
            row_of[cell] = number
    return Coordinates(x, tops, bottoms, row_of)
