"""The net as one SVG picture that needs nothing else: with its styles, light or dark as the viewer prefers."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from noetlc.graph.formats.palette import standalone_style
from noetlc.graph.layout.shapes import Rectangle, Route
from noetlc.graph.picture import HEADER, LINE_HEIGHT, Box, Drawing, Line, draw, picture_of, tag_texts
from noetlc.graph.report import GraphReport
from noetlc.report.junit import cleaned

_MARGIN = 24.0
_ROUND = {"begin": 8.0, "done": 14.0, "failed": 14.0, "decision": 14.0, "routing": 14.0}
_CORNER = 5.0


def text(value: str) -> str:
    return escape(cleaned(value), quote=False)


def attribute(value: str) -> str:
    """Return a text as value of an attribute between double quotes."""
    return escape(cleaned(value), quote=True).replace("\n", "&#10;")


def render(report: GraphReport, unfold: bool = False) -> str:
    """Return the picture as a file of its own."""
    drawing = draw(picture_of(report, unfold))
    return svg(drawing, title=report.net.name, style=standalone_style()) + "\n"


def svg(drawing: Drawing, *, title: str, style: str = "") -> str:
    width, height = _n(drawing.layout.width + 2 * _MARGIN), _n(drawing.layout.height + 2 * _MARGIN)
    inside = "\n".join(_group(drawing))
    styled = f"<style>{style}</style>\n" if style else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="picture" width="{width}" height="{height}" '
        f'viewBox="{_n(-_MARGIN)} {_n(-_MARGIN)} {width} {height}" role="group" aria-label="{attribute(title)}">\n'
        f"{styled}{inside}\n</svg>"
    )


def _group(drawing: Drawing) -> Iterator[str]:
    """Yield the parts: lines first, so that boxes and labels lie on top."""
    picture, layout = drawing.picture, drawing.layout
    titles = [box.title for box in picture.boxes]
    for line, route in zip(picture.lines, layout.routes, strict=True):
        yield from _line(line, route, tag_texts(line, titles), picture.boxes)
    for box, area, inner in zip(picture.boxes, layout.boxes, drawing.inner, strict=True):
        yield from _box(box, area, inner)


def _line(line: Line, route: Route, tags: tuple[str, str], boxes: tuple[Box, ...]) -> Iterator[str]:
    classes = f"line {line.style}{' back' if route.back else ''}"
    ends = f' data-from="{attribute(boxes[line.source].key)}" data-to="{attribute(boxes[line.target].key)}"'
    yield f'<g class="{classes}"{_data(line)}{ends}>{_hint(line.hint)}'
    if route.arrival is None:
        yield from _path(route, line.label, arrow=True)
    else:
        yield from _path(route, tags[0], arrow=False)
        yield from _path(route.arrival, tags[1], arrow=True)
    yield "</g>"


def _path(route: Route, label: str, *, arrow: bool) -> Iterator[str]:
    yield f'<path d="{path_data(route)}"/>'
    if arrow:
        yield f'<path class="head" d="{_arrow_head(route)}"/>'
    if route.label is not None and label:
        area = route.label
        middle = f'x="{_n(area.x + area.width / 2)}" y="{_n(area.y + area.height - 5)}"'
        yield f'<rect x="{_n(area.x)}" y="{_n(area.y)}" width="{_n(area.width)}" height="{_n(area.height)}"/>'
        yield f"<text {middle}>{text(label)}</text>"


def path_data(route: Route) -> str:
    parts = [f"M{_n(route.start[0])} {_n(route.start[1])}"]
    parts += [("L" if len(segment) == 2 else "C") + " ".join(map(_n, segment)) for segment in route.segments]
    return "".join(parts)


def _arrow_head(route: Route) -> str:
    """Return a triangle at the end, pointing the way the line arrives: down, up, or left into the side of a box."""
    last = route.segments[-1]
    x, y = last[-2:]
    if len(last) == 6 and last[2] > x:
        return f"M{_n(x)} {_n(y)}l8 -4v8z"
    return f"M{_n(x)} {_n(y)}l-4 {8 if route.back else -8}h8z"


def _box(box: Box, area: Rectangle, inner: Drawing | None) -> Iterator[str]:
    classes = " ".join(("box", box.kind, *(["found", *box.marks] if box.marks else [])))
    # A box is one stop of the tab key; marks are only to look at.
    focus = f' tabindex="0" role="button" aria-label="{attribute(box.hint)}"' if box.key else ""
    yield f'<g class="{classes}"{_data(box)}{focus}>{_hint(box.hint)}'
    corner = _ROUND.get(box.kind, _CORNER)
    size = f'x="{_n(area.x)}" y="{_n(area.y)}" width="{_n(area.width)}" height="{_n(area.height)}"'
    yield f'<rect {size} rx="{_n(corner)}"/>'
    if box.kind == "loop":
        yield f'<path class="again" d="M{_n(area.x + 4)} {_n(area.y + area.height + 3)}h{_n(area.width - 8)}"/>'
    middle = _n(area.x + area.width / 2)
    y = area.y + 6 + LINE_HEIGHT - 4
    if box.title:
        yield f'<text x="{middle}" y="{_n(y)}">{text(box.title)}</text>'
    for number, note in enumerate(box.notes, 1):
        yield f'<text class="note" x="{middle}" y="{_n(y + number * LINE_HEIGHT)}">{text(note)}</text>'
    if inner is not None:
        yield from _inner(box, area, inner)
    yield "</g>"


def _inner(box: Box, area: Rectangle, inner: Drawing) -> Iterator[str]:
    x = area.x + (area.width - inner.layout.width) / 2
    y = area.y + 6 + LINE_HEIGHT * (1 + len(box.notes)) + HEADER
    yield f'<g class="inner" transform="translate({_n(x)} {_n(y)})">'
    yield from _group(inner)
    yield "</g>"


def _data(drawn: Box | Line) -> str:
    key = f' data-key="{attribute(drawn.key)}"' if drawn.key else ""
    return key + (f' data-line="{drawn.where.line}"' if drawn.where else "")


def _hint(hint: str) -> str:
    return f"<title>{text(hint)}</title>" if hint else ""


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
