"""Straightens lines: aligns cells of one line vertically where there is space."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from noetlc.graph.layout.cells import GAP, Cells

_PASSES = 3


def straighten(cells: Cells, rows: Sequence[Sequence[int]], x: list[float]) -> None:
    """Move cells within the room that their neighbours leave, so that as many as possible line up."""
    left, right = _neighbours(cells, rows)
    spines = list(_spines(cells, rows))
    labels = [cell for cell in range(cells.boxes, len(cells.sizes)) if cells.above[cell] and cells.sizes[cell].height]
    for _ in range(_PASSES):
        for cell in labels:
            _move([cell], cells, x, *_room(cell, cells, x, left, right))
        for spine in spines:
            _line_up(spine, cells, x, left, right)


def _neighbours(cells: Cells, rows: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
    left, right = [-1] * len(cells.sizes), [-1] * len(cells.sizes)
    for row in rows:
        for a, b in pairwise(row):
            right[a], left[b] = b, a
    return left, right


def _spines(cells: Cells, rows: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Yield runs of cells, one a row, that one line passes; a cell is in one run at most. Longer runs come first."""
    runs: list[list[int]] = []
    run_of: dict[int, list[int]] = {}
    for row in rows:
        for cell in row:
            upper = next((one for one in _partners(cells, cell) if one in run_of and run_of[one][-1] == one), None)
            if upper is None:
                run_of[cell] = [cell]
                runs.append(run_of[cell])
            else:
                run_of[cell] = run_of[upper]
                run_of[cell].append(cell)
    return iter(sorted((run for run in runs if len(run) > 1), key=len, reverse=True))


def _partners(cells: Cells, cell: int) -> list[int]:
    """Return the cells above that this one may continue: parts of the same line, or the only neighbour of both."""
    above = cells.above[cell]
    if cell >= cells.boxes:
        same = [one for one in above if one >= cells.boxes]
        if same:
            return same
    return above if len(above) == 1 and len(cells.below[above[0]]) == 1 else []


def _line_up(spine: list[int], cells: Cells, x: list[float], left: list[int], right: list[int]) -> None:
    """Give stretches of a spine one x each, as long as some x suits the whole stretch."""
    stretch: list[int] = []
    low, high = float("-inf"), float("inf")
    for cell in spine:
        least, most = _room(cell, cells, x, left, right)
        if stretch and max(low, least) > min(high, most):
            _move(stretch, cells, x, low, high)
            stretch, low, high = [], float("-inf"), float("inf")
        stretch.append(cell)
        low, high = max(low, least), min(high, most)
    _move(stretch, cells, x, low, high)


def _room(cell: int, cells: Cells, x: list[float], left: list[int], right: list[int]) -> tuple[float, float]:
    half, margin = cells.sizes[cell].width / 2, cells.margins[cell]
    least, most = float("-inf"), float("inf")
    if left[cell] >= 0:
        other = left[cell]
        least = x[other] + cells.sizes[other].width / 2 + cells.margins[other] + GAP + half
    if right[cell] >= 0:
        other = right[cell]
        most = x[other] - cells.sizes[other].width / 2 - GAP - half - margin
    # Where it stands now always suits, whatever the rounding.
    return min(least, x[cell]), max(most, x[cell])


def _move(stretch: list[int], cells: Cells, x: list[float], low: float, high: float) -> None:
    """Put a stretch where it is, or, if it has no box, near to what it leads from."""
    wish = sum(x[cell] for cell in stretch) / len(stretch)
    if all(cell >= cells.boxes for cell in stretch):
        inside = set(stretch)
        sources = [x[one] for cell in stretch for one in cells.above[cell] if one not in inside]
        wish = sum(sources) / len(sources) if sources else wish
    for cell in stretch:
        x[cell] = min(max(wish, low), high)
