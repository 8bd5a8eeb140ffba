"""The layout of a whole picture: each connected part by itself, then the parts packed in shelves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from noetlc.graph.layout.cells import make_cells
from noetlc.graph.layout.coordinates import place_cells
from noetlc.graph.layout.order import order_rows
from noetlc.graph.layout.ranks import leads_back, rank_boxes
from noetlc.graph.layout.routes import LinkRouter
from noetlc.graph.layout.shapes import Layout, Link, Rectangle, Route, Size
from noetlvm.record import Record, changed

_APART = 48.0
"""Between two parts that no line joins."""
_SHELF = 1200.0
"""A shelf is at least this wide before the next one begins."""


def lay_out(sizes: Sequence[Size], links: Sequence[Link]) -> Layout:
    """Place boxes of these sizes and the links between them. The first box is where reading begins."""
    boxes: list[Rectangle] = [Rectangle(0, 0, 0, 0)] * len(sizes)
    routes: list[Route | None] = [None] * len(links)
    ranks = [0] * len(sizes)
    parts = [_lay_out_part(part, sizes, links) for part in _parts(len(sizes), links)]
    width = height = 0.0
    for part, (x, y) in zip(parts, _shelves(parts), strict=True):
        for box, area, rank in zip(part.boxes, part.areas, part.ranks, strict=True):
            boxes[box], ranks[box] = area.moved(x, y), rank
        for link, route in zip(part.links, part.routes, strict=True):
            routes[link] = route.moved(x, y)
        width, height = max(width, x + part.width), max(height, y + part.height)
    return Layout(width, height, tuple(boxes), tuple(route for route in routes if route), tuple(ranks))


class _Part(Record):
    boxes: list[int]
    links: list[int]
    areas: list[Rectangle]
    routes: list[Route]
    ranks: list[int]
    width: float
    height: float


def _lay_out_part(part: tuple[list[int], list[int]], sizes: Sequence[Size], links: Sequence[Link]) -> _Part:
    boxes, numbers = part
    within = {box: index for index, box in enumerate(boxes)}
    own = [changed(links[n], source=within[links[n].source], target=within[links[n].target]) for n in numbers]
    back = leads_back(len(boxes), own)
    ranks = rank_boxes(len(boxes), own, back)
    cells = make_cells([sizes[box] for box in boxes], own, back, ranks)
    rows = order_rows(cells)
    places = place_cells(cells, rows)
    router = LinkRouter(cells, places)
    right = max(places.x[cell] + cells.sizes[cell].width / 2 + cells.margins[cell] for row in rows for cell in row)
    areas = [router.area(box) for box in range(len(boxes))]
    return _Part(boxes, numbers, areas, router.routes(own, back), ranks, right, places.bottoms[-1])


def _parts(count: int, links: Sequence[Link]) -> list[tuple[list[int], list[int]]]:
    """Return the boxes and links of each connected part, the first box's part first."""
    import networkx as nx

    graph: Any = nx.Graph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from((link.source, link.target) for link in links)
    components = sorted(map(sorted, nx.connected_components(graph)))
    parts: list[tuple[list[int], list[int]]] = [(boxes, []) for boxes in components]
    part_of = {box: part for part in parts for box in part[0]}
    for number, link in enumerate(links):
        part_of[link.source][1].append(number)
    return parts


def _shelves(parts: Sequence[_Part]) -> Iterator[tuple[float, float]]:
    """Yield where each part goes: side by side until a shelf is full, then below."""
    limit = max([_SHELF, *(part.width for part in parts)])
    x = y = tallest = 0.0
    for part in parts:
        if x and x + part.width > limit:
            x, y, tallest = 0.0, y + tallest + _APART, 0.0
        yield x, y
        x, tallest = x + part.width + _APART, max(tallest, part.height)
