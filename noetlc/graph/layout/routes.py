"""How lines run: straight down through every row they cross, curved only in the gaps between rows.

A cell's column is its line's own all the way through its row, so a line never touches a box or a label of another.
"""

from __future__ import annotations

from collections.abc import Sequence

from noetlc.graph.layout.cells import Cells, self_loop_room
from noetlc.graph.layout.coordinates import Coordinates
from noetlc.graph.layout.shapes import Link, Rectangle, Route, Segment

_PORT = 20.0
"""Between two lines at one side of a box."""
_EDGE = 10.0
"""From a box's corner to the first line."""
_NOTHING = 0.15
"""A line shorter than this is what rounding left over."""
_LOOP_REACH = 22.0
_LOOP_SPREAD = 6.0


class LinkRouter:
    """Draws the links of one connected part."""

    def __init__(self, cells: Cells, places: Coordinates) -> None:
        self.cells = cells
        self.places = places
        self._ports: dict[tuple[int, int], float] = {}
        for box in range(cells.boxes):
            self._spread(box, cells.below[box])
            self._spread(box, cells.above[box])

    def area(self, cell: int) -> Rectangle:
        """Return where a cell stands, in the middle of its row."""
        size, row = self.cells.sizes[cell], self.places.row_of[cell]
        middle = (self.places.tops[row] + self.places.bottoms[row]) / 2
        return Rectangle(
            round(self.places.x[cell] - size.width / 2, 1), round(middle - size.height / 2, 1), size.width, size.height
        )

    def routes(self, links: Sequence[Link], back: Sequence[bool]) -> list[Route]:
        taken: dict[int, float] = {}
        return [self._route(number, link, back[number], taken) for number, link in enumerate(links)]

    def _route(self, number: int, link: Link, back: bool, taken: dict[int, float]) -> Route:
        if link.source == link.target:
            return self._loop(link, taken)
        if number in self.cells.cut:
            return self._cut(number, back)
        label = self.cells.labels.get(number)
        return self._line(self.cells.chains[number], self.area(label) if label is not None else None, back)

    def _cut(self, number: int, back: bool) -> Route:
        leaving, arriving = self.cells.cut[number]
        top = self._line(leaving, self.area(leaving[1]), back)
        bottom = self._line(arriving, self.area(arriving[0]), back)
        first, last = (bottom, top) if back else (top, bottom)
        return Route(first.start, first.segments, first.label, back, last)

    def _line(self, chain: Sequence[int], label: Rectangle | None, back: bool) -> Route:
        stops = [self._stop(cell, chain, index) for index, cell in enumerate(chain)]
        points = [(x, y) for x, top, bottom in stops for y in (top, bottom)]
        if back:
            points.reverse()
        return Route(points[0], tuple(_segments(points)), label, back)

    def _stop(self, cell: int, chain: Sequence[int], index: int) -> tuple[float, float, float]:
        """Return x of a line in a row, and where it enters and leaves that row."""
        row = self.places.row_of[cell]
        top, bottom = self.places.tops[row], self.places.bottoms[row]
        if cell >= self.cells.boxes:
            return self.places.x[cell], top, bottom
        area = self.area(cell)
        if index == 0:
            return self._ports[cell, chain[1]], area.y + area.height, bottom
        return self._ports[cell, chain[index - 1]], top, area.y

    def _spread(self, box: int, others: Sequence[int]) -> None:
        """Give the lines at one side of a box places of their own, in the order in which they arrive."""
        room = self.cells.sizes[box].width - 2 * _EDGE
        step = min(_PORT, room / len(others)) if others else 0.0
        first = self.places.x[box] - step * (len(others) - 1) / 2
        for index, other in enumerate(sorted(others, key=lambda cell: (self.places.x[cell], cell))):
            self._ports[box, other] = round(first + index * step, 1)

    def _loop(self, link: Link, taken: dict[int, float]) -> Route:
        """Draw a line from a box to itself at the right of the box. All of a box look alike; labels stand in a row."""
        box, size = self.area(link.source), link.label
        right, middle = box.x + box.width, box.y + box.height / 2
        shift = taken.get(link.source, 0.0)
        taken[link.source] = shift + self_loop_room(link)
        low, high = round(middle + _LOOP_SPREAD, 1), round(middle - _LOOP_SPREAD, 1)
        reach = round(right + _LOOP_REACH, 1)
        label = Rectangle(round(reach + 2 + shift, 1), round(middle - size.height / 2, 1), size.width, size.height)
        curve = (reach, low + _LOOP_SPREAD, reach, high - _LOOP_SPREAD, right, high)
        return Route((right, low), (curve,), label if size.width else None, back=True)


def _segments(points: Sequence[tuple[float, float]]) -> list[Segment]:
    """Join points with lines where they are above each other and with curves where they are not."""
    segments: list[Segment] = []
    x, y = points[0]
    for to_x, to_y in points[1:]:
        if to_x == x:
            if abs(to_y - y) > _NOTHING:
                _extend(segments, to_x, to_y)
        else:
            middle = round((y + to_y) / 2, 1)
            segments.append((x, middle, to_x, middle, to_x, to_y))
        x, y = to_x, to_y
    return segments


def _extend(segments: list[Segment], x: float, y: float) -> None:
    if segments and len(segments[-1]) == 2 and segments[-1][0] == x:
        segments[-1] = (x, y)
    else:
        segments.append((x, y))
