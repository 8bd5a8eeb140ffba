"""The layout: nothing stands on anything else, lines touch only what they join, and the same input looks the same."""

from __future__ import annotations

import random
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

import pytest

from noetlc.graph.layout.place import lay_out
from noetlc.graph.layout.shapes import Layout, Link, Rectangle, Route, Size

if TYPE_CHECKING:
    from collections.abc import Iterator

SEEDS = range(60)


def random_picture(seed: int) -> tuple[list[Size], list[Link]]:
    chance = random.Random(seed)
    count = chance.randint(1, 40)
    sizes = [Size(chance.randint(16, 220), chance.randint(16, 90)) for _ in range(count)]
    links = []
    for _ in range(chance.randint(0, 2 * count)):
        label = Size(chance.randint(10, 200), 16) if chance.random() < 0.6 else Size()
        style = chance.choice(("plain", "failure"))
        links.append(Link(chance.randrange(count), chance.randrange(count), label, Size(40, 16), style))
    return sizes, links


def areas(layout: Layout) -> list[Rectangle]:
    pieces = [piece for route in layout.routes for piece in (route, route.arrival) if piece is not None]
    return [*layout.boxes, *(piece.label for piece in pieces if piece.label)]


def overlap(a: Rectangle, b: Rectangle) -> bool:
    return a.x < b.x + b.width and b.x < a.x + a.width and a.y < b.y + b.height and b.y < a.y + a.height


def points(route: Route) -> Iterator[tuple[float, float]]:
    """Yield points along a route, close enough to each other that no label fits between two."""
    x, y = route.start
    for segment in route.segments:
        a, b, c, d, e, f = segment if len(segment) == 6 else (x, y, *segment, *segment)
        for step in range(41):
            t = step / 40
            u = 1 - t
            yield (
                u**3 * x + 3 * u * u * t * a + 3 * u * t * t * c + t**3 * e,
                u**3 * y + 3 * u * u * t * b + 3 * u * t * t * d + t**3 * f,
            )
        x, y = e, f


def holds(area: Rectangle, x: float, y: float) -> bool:
    slack = 0.2  # coordinates are rounded to a tenth
    return area.x + slack < x < area.x + area.width - slack and area.y + slack < y < area.y + area.height - slack


@pytest.mark.parametrize("seed", SEEDS)
def test_no_box_or_label_stands_on_another(seed: int) -> None:
    layout = lay_out(*random_picture(seed))
    assert [pair for pair in combinations(areas(layout), 2) if overlap(*pair)] == []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_line_touches_no_box_and_no_label_but_its_own(seed: int) -> None:
    layout = lay_out(*random_picture(seed))
    for route in layout.routes:
        others = [area for area in areas(layout) if area != route.label]
        assert [(point, area) for point in points(route) for area in others if holds(area, *point)] == []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_line_begins_and_ends_at_its_boxes(seed: int) -> None:
    sizes, links = random_picture(seed)
    layout = lay_out(sizes, links)
    for link, route in zip(links, layout.routes, strict=True):
        for box, (x, y) in ((link.source, route.start), (link.target, route.segments[-1][-2:])):
            area = layout.boxes[box]
            assert area.x - 0.2 <= x <= area.x + area.width + 0.2
            assert area.y - 0.2 <= y <= area.y + area.height + 0.2


@pytest.mark.parametrize("seed", SEEDS)
def test_a_line_arrives_at_a_box_from_outside(seed: int) -> None:
    sizes, links = random_picture(seed)
    for link, route in zip(links, lay_out(sizes, links).routes, strict=True):
        if link.source == link.target:
            continue
        *_, before, end = points(route)
        corners = [route.start, *(segment[-2:] for segment in route.segments)]
        lengths = [abs(a[0] - b[0]) + abs(a[1] - b[1]) for a, b in pairwise(corners)]
        assert min(lengths) > 0.1
        assert before[1] > end[1] if route.back else before[1] < end[1]


@pytest.mark.parametrize("seed", SEEDS)
def test_everything_is_inside_the_picture(seed: int) -> None:
    layout = lay_out(*random_picture(seed))
    for area in areas(layout):
        assert min(area.x, area.y) >= -0.2
        assert area.x + area.width <= layout.width + 0.2
        assert area.y + area.height <= layout.height + 0.2


def test_the_same_picture_is_laid_out_in_the_same_way() -> None:
    assert lay_out(*random_picture(7)) == lay_out(*random_picture(7))


def test_lines_lead_down_unless_they_close_a_cycle() -> None:
    box = Size(50, 30)
    layout = lay_out([box] * 3, [Link(0, 1), Link(1, 2), Link(2, 0), Link(1, 1)])
    assert [route.back for route in layout.routes] == [False, False, True, True]
    assert layout.ranks == (0, 1, 2)


def test_lines_to_one_box_run_together() -> None:
    box = Size(50, 30)
    chain = [Link(number, number + 1) for number in range(5)]
    layout = lay_out([box] * 6, [*chain, Link(0, 5), Link(1, 5), Link(2, 5)])
    ends = {route.segments[-1][-2:] for route in layout.routes[5:]}
    assert len(ends) == 1


def test_a_line_too_long_for_a_large_picture_is_cut_in_two() -> None:
    count = 700
    chain = [Link(number, number + 1) for number in range(count - 1)]
    far = [Link(number, count - 1, tag=Size(60, 16), style=str(number)) for number in range(300)]
    layout = lay_out([Size(50, 30)] * count, [*chain, *far])
    cut = [route for route in layout.routes if route.arrival is not None]
    assert len(cut) == len(far)
    assert all(route.label and route.arrival and route.arrival.label for route in cut)


def test_the_number_of_cells_grows_with_the_picture_and_not_with_its_square() -> None:
    def steps(count: int) -> int:
        chance = random.Random(count)
        links = [Link(number, number + 1) for number in range(count - 1)]
        links += [Link(chance.randrange(count), chance.randrange(count), style=str(n)) for n in range(count)]
        return sum(len(route.segments) for route in lay_out([Size(20, 20)] * count, links).routes)

    assert steps(1200) < 6 * steps(300)


def test_steps_that_share_a_failure_handler_stand_in_one_line() -> None:
    count, label = 12, Size(150, 16)
    links = [Link(n, n + 1, label, Size(40, 16), "plain") for n in range(count)]
    links += [Link(n, count + 1, label, Size(40, 16), "failure") for n in range(count)]
    layout = lay_out([Size(200, 60)] * (count + 2), links)
    chain = layout.boxes[:count]
    assert max(box.x for box in chain) - min(box.x for box in chain) < 1
    assert layout.boxes[count + 1].x < chain[0].x + 3 * 200  # the handler stands beside them, not far away
