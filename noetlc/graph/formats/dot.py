"""The net for Graphviz. Unfolded, a step is a cluster with its tasks inside."""

from __future__ import annotations

from collections.abc import Iterator

from noetlc.graph.picture import Box, Line, Picture, picture_of
from noetlc.graph.report import GraphReport
from noetlc.report.junit import cleaned

_SHAPES = {
    "begin": 'shape=circle, style=filled, fillcolor=black, width=0.15, label=""',
    "routing": 'shape=box, style="rounded"',
    "loop": "shape=box3d",
    "decision": "shape=diamond",
    "done": 'shape=box, style="rounded"',
    "failed": 'shape=box, style="rounded", color="#b3261e"',
}
_STYLES = {"failure": 'color="#b3261e", fontcolor="#b3261e"', "dead": 'color="#9aa4af", style=dashed'}
_FOUND = 'color="#9a5b00", penwidth=2'


def render(report: GraphReport, unfold: bool = False) -> str:
    return "\n".join(_lines(report.net.name, picture_of(report, unfold))) + "\n"


def _lines(name: str, picture: Picture) -> Iterator[str]:
    yield f"digraph {_q(name)} {{"
    yield "  compound=true;"
    yield '  node [fontname="monospace", fontsize=11, shape=box];'
    yield '  edge [fontname="monospace", fontsize=9];'
    for number, box in enumerate(picture.boxes):
        yield from _cluster(number, box) if box.inner else (f"  n{number} [{_box(box)}];",)
    for line in picture.lines:
        yield f"  n{line.source} -> n{line.target}{_attributes(_of_line(line, picture))};"
    yield "}"


def _cluster(number: int, box: Box) -> Iterator[str]:
    """Yield a step with its tasks. The mark where its tasks begin stands for the step."""
    assert box.inner is not None
    inner = box.inner
    yield f"  subgraph cluster_{number} {{"
    yield f"    label={_label(box)};"
    for place, task in enumerate(inner.boxes):
        yield f"    {_task(number, place)} [{_box(task)}];"
    for line in inner.lines:
        ends = f"{_task(number, line.source)} -> {_task(number, line.target)}"
        yield f"    {ends}{_attributes([*_text(line), *_style(line)])};"
    yield "  }"


def _task(step: int, place: int) -> str:
    return f"n{step}_{place}" if place else f"n{step}"


def _box(box: Box) -> str:
    parts = [f"label={_label(box)}"] if box.title else []
    if box.kind in _SHAPES:
        parts.append(_SHAPES[box.kind])
    if box.marks:
        parts.append(_FOUND)
    if box.hint:
        parts.append(f"tooltip={_q(box.hint)}")
    return ", ".join(parts)


def _label(box: Box) -> str:
    return _q("\n".join((box.title, *box.notes)))


def _of_line(line: Line, picture: Picture) -> list[str]:
    """Return an arc's attributes; one of an unfolded step ends at its frame."""
    ends = (("ltail", line.source), ("lhead", line.target))
    frames = [f"{word}=cluster_{place}" for word, place in ends if picture.boxes[place].inner]
    return [*_text(line), *_style(line), *(frames if line.source != line.target else [])]


def _text(line: Line) -> list[str]:
    return [f"label={_q(line.label)}"] if line.label else []


def _style(line: Line) -> list[str]:
    return [_STYLES[line.style]] if line.style in _STYLES else []


def _attributes(parts: list[str]) -> str:
    return f" [{', '.join(parts)}]" if parts else ""


def _q(text: str) -> str:
    """Return a quoted string. A backslash begins an escape in a label, so it is doubled."""
    escaped = cleaned(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", " ")
    return f'"{escaped}"'
