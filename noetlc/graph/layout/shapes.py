"""Input and output of the layout: sizes and links, boxes and routes. y grows downwards."""

from __future__ import annotations

from typing import TypeAlias

from noetlvm.record import Record

Segment: TypeAlias = "tuple[float, float] | tuple[float, float, float, float, float, float]"
"""A straight line to a point, or a cubic curve: two control points and the end."""


class Size(Record):
    """Width and height."""

    width: float = 0.0
    height: float = 0.0


NOTHING = Size()


class Link(Record):
    """A line from one box to another, both given by their numbers."""

    source: int
    target: int
    label: Size = NOTHING
    tag: Size = NOTHING
    """What stands at either end in place of the line where the line would be too long to draw."""
    style: str = ""
    """Lines of one style that lead to the same box join on their way."""


class Rectangle(Record):
    """A rectangle, by its upper left corner."""

    x: float
    y: float
    width: float
    height: float

    def moved(self, x: float, y: float) -> Rectangle:
        return Rectangle(self.x + x, self.y + y, self.width, self.height)


class Route(Record):
    """How a link is drawn."""

    start: tuple[float, float]
    segments: tuple[Segment, ...]
    label: Rectangle | None
    back: bool = False
    """It leads upwards: against the direction of the picture, or to the box it comes from."""
    arrival: Route | None = None
    """Where the line is cut: the piece that arrives. Labels of both pieces are tags."""

    def moved(self, x: float, y: float) -> Route:
        return Route(
            (self.start[0] + x, self.start[1] + y),
            tuple(_moved(segment, x, y) for segment in self.segments),
            self.label.moved(x, y) if self.label else None,
            self.back,
            self.arrival.moved(x, y) if self.arrival else None,
        )


class Layout(Record):
    """A picture's geometry; boxes and routes in the order in which sizes and links were given."""

    width: float
    height: float
    boxes: tuple[Rectangle, ...]
    routes: tuple[Route, ...]
    ranks: tuple[int, ...]
    """The row of each box, counted from its part's first."""


def _moved(segment: Segment, x: float, y: float) -> Segment:
    if len(segment) == 2:
        return (segment[0] + x, segment[1] + y)
    a, b, c, d, e, f = segment
    return (a + x, b + y, c + x, d + y, e + x, f + y)
