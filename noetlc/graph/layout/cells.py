"""Everything that takes up room in a row: boxes, labels, and the places where lines pass between them.

Boxes stand in even rows, labels in the odd rows between. A line owns a cell in every row it crosses, so that nothing
else can stand in its way. Lines of one style on their way to the same box share their cells: they run as one rail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from noetlc.graph.layout.shapes import NOTHING, Link, Size

GAP = 22.0
"""Between two cells of a row."""
_RAIL = Size(4.0, 0.0)
_SELF_LOOP = 30.0
_CUT = 60
"""A line across more rows of boxes than this is cut, in a picture that is too large to draw every line in full."""
_BUDGET = 50_000


@dataclass(slots=True)
class Cells:
    """The cells of one connected part. Cells below `boxes` are the boxes."""

    boxes: int
    sizes: list[Size]
    margins: list[float]
    """Room left free at the right of a cell, for lines from a box to itself."""
    rows: list[list[int]]
    above: list[list[int]] = field(default_factory=list)
    below: list[list[int]] = field(default_factory=list)
    chains: dict[int, list[int]] = field(default_factory=dict)
    """By link: its cells from the upper box to the lower one."""
    cut: dict[int, tuple[list[int], list[int]]] = field(default_factory=dict)
    """By link: its cells at the upper box, and at the lower one, where the line between is not drawn."""
    labels: dict[int, int] = field(default_factory=dict)

    def width(self, cell: int) -> float:
        return self.sizes[cell].width + self.margins[cell]


def make_cells(sizes: Sequence[Size], links: Sequence[Link], back: Sequence[bool], ranks: Sequence[int]) -> Cells:
    """Thread every link through the rows."""
    rows: list[list[int]] = [[] for _ in range(2 * (max(ranks) - min(ranks)) + 1)]
    lowest = min(ranks)
    row_of = [2 * (rank - lowest) for rank in ranks]
    for box, row in enumerate(row_of):
        rows[row].append(box)
    cells = Cells(len(sizes), list(sizes), [0.0] * len(sizes), rows)
    cells.above = [[] for _ in sizes]
    cells.below = [[] for _ in sizes]
    longest = _longest_line(links, row_of)
    thread = _Thread(cells, row_of, longest)
    for number, link in enumerate(links):
        if link.source == link.target:
            cells.margins[link.source] += self_loop_room(link)
        else:
            thread.add(number, link, back[number])
    return cells


def self_loop_room(link: Link) -> float:
    """Return the width that a line from a box to itself takes up beside the box."""
    return _SELF_LOOP + link.label.width


def _longest_line(links: Sequence[Link], row_of: Sequence[int]) -> int:
    total = sum(abs(row_of[link.source] - row_of[link.target]) for link in links)
    return 2 * _CUT if total > _BUDGET + 20 * len(row_of) else len(row_of) * 2


@dataclass(slots=True)
class _Thread:
    cells: Cells
    row_of: list[int]
    longest: int
    rails: dict[tuple[int, str, int], int] = field(default_factory=dict)
    joined: set[tuple[int, int]] = field(default_factory=set)

    def add(self, number: int, link: Link, turned: bool) -> None:
        upper, lower = (link.target, link.source) if turned else (link.source, link.target)
        if self.row_of[lower] - self.row_of[upper] > self.longest:
            self._add_cut(number, link, upper, lower)
            return
        label_row = self._add_label(number, link, turned)
        style = f"{link.style}{'<' if turned else '>'}"
        between = range(self.row_of[upper] + 1, self.row_of[lower])
        passed = (
            self.cells.labels[number] if row == label_row else self._rail_cell(link.target, style, row)
            for row in between
        )
        chain = [upper, *passed, lower]
        self._join(chain)
        self.cells.chains[number] = chain

    def _add_label(self, number: int, link: Link, turned: bool) -> int | None:
        """Put a link's label beside its source, and return the row."""
        if link.label == NOTHING:
            return None
        row = self.row_of[link.source] + (-1 if turned else 1)
        self.cells.labels[number] = self._new(link.label, row)
        return row

    def _add_cut(self, number: int, link: Link, upper: int, lower: int) -> None:
        leaving = [upper, self._new(link.tag, self.row_of[upper] + 1)]
        arriving = [self._new(link.tag, self.row_of[lower] - 1), lower]
        self._join(leaving)
        self._join(arriving)
        self.cells.cut[number] = (leaving, arriving)

    def _rail_cell(self, target: int, style: str, row: int) -> int:
        key = (target, style, row)
        if key not in self.rails:
            self.rails[key] = self._new(_RAIL, row)
        return self.rails[key]

    def _new(self, size: Size, row: int) -> int:
        cells = self.cells
        cells.sizes.append(size)
        cells.margins.append(0.0)
        cells.above.append([])
        cells.below.append([])
        cells.rows[row].append(len(cells.sizes) - 1)
        return len(cells.sizes) - 1

    def _join(self, chain: Sequence[int]) -> None:
        for upper, lower in pairwise(chain):
            if (upper, lower) not in self.joined:
                self.joined.add((upper, lower))
                self.cells.below[upper].append(lower)
                self.cells.above[lower].append(upper)
