"""The net for Mermaid, as Markdown viewers draw it. Unfolded, a step is a subgraph with its tasks inside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from noetlc.graph.picture import Box, Line, Picture, picture_of
from noetlc.graph.report import GraphReport

_SHAPES = {
    "begin": ("((", "))"),
    "routing": ("([", "])"),
    "loop": ("[[", "]]"),
    "decision": ("{", "}"),
    "done": ("([", "])"),
    "failed": ("([", "])"),
}
_ARROWS = {"dead": "-.->"}
_PLAIN = frozenset(" _-.,:/+*=!?()…→'")
_FAILURE = "stroke:#b3261e"


def render(report: GraphReport, unfold: bool = False) -> str:
    return "\n".join(_lines(picture_of(report, unfold))) + "\n"


def _lines(picture: Picture) -> Iterator[str]:
    yield "flowchart TD"
    failures: list[int] = []
    drawn = 0
    for number, box in enumerate(picture.boxes):
        if not box.inner:
            yield f"  {_node(f'n{number}', box)}"
            continue
        inner = box.inner
        yield f'  subgraph n{number}["{_label(box)}"]'
        yield from (f"    {_node(f'n{number}_{place}', task)}" for place, task in enumerate(inner.boxes))
        yield from (f"    {_arc(f'n{number}_', line)}" for line in inner.lines)
        failures += _failures(inner.lines, drawn)
        drawn += len(inner.lines)
        yield "  end"
    yield from (f"  {_arc('n', line)}" for line in picture.lines)
    failures += _failures(picture.lines, drawn)
    if failures:
        yield f"  linkStyle {','.join(map(str, failures))} {_FAILURE}"
    found = [f"n{number}" for number, box in enumerate(picture.boxes) if box.marks]
    if found:
        yield "  classDef found stroke:#9a5b00,stroke-width:3px"
        yield f"  class {','.join(found)} found"


def _node(name: str, box: Box) -> str:
    before, after = _SHAPES.get(box.kind, ("[", "]"))
    return f'{name}{before}"{_label(box) or " "}"{after}'


def _label(box: Box) -> str:
    return "<br/>".join(escaped(text) for text in (box.title, *box.notes) if text)


def _arc(prefix: str, line: Line) -> str:
    label = f'|"{escaped(line.label)}"|' if line.label else ""
    return f"{prefix}{line.source} {_ARROWS.get(line.style, '-->')}{label} {prefix}{line.target}"


def _failures(lines: Iterable[Line], first: int) -> list[int]:
    """Return the numbers of failure lines; Mermaid counts lines in the order in which they are written."""
    return [number for number, line in enumerate(lines, first) if line.style == "failure"]


def escaped(text: str) -> str:
    """Return a text in which no character means anything to Mermaid, HTML or Markdown."""
    return "".join(char if char.isalnum() or char in _PLAIN else f"#{ord(char)};" for char in text)
