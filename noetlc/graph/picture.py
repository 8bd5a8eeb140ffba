"""From a report to a picture: which boxes and lines there are, their texts, and how much room that takes.

Every format that draws uses it, so that svg, html and dot show the same. Text is measured in characters of a
monospaced font: the only width that is known without the font.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

from noetlc.analysis.formulas import STEP_FAILED
from noetlc.graph.layout.place import lay_out
from noetlc.graph.layout.shapes import NOTHING, Layout, Link, Size
from noetlc.graph.report import GraphReport
from noetlc.graph.tasks import NodeKind, TaskEdge, TaskGraph, TaskNode, task_graph
from noetlc.net.net import Gate, Net, NetArc, NetStep, StepKind, Where
from noetlvm.bytecode.isa import LABELLED
from noetlvm.record import Record, changed

TITLE_EM, NOTE_EM = 13.0, 11.0
LINE_HEIGHT = 15.0
_ADVANCE = 0.61
"""Width of a character in a monospaced font, for each unit of its size."""
_PAD = 12.0
_LONGEST_LABEL = 40
_LONGEST_TITLE = 44
HEADER = 8.0
"""Between the text of an unfolded box and what is drawn in it."""


class Box(Record):
    """A step, a task, or a mark that shows where something begins or ends."""

    key: str
    """What it is called in links and code: a step's name, `step/label` for a task; empty for a mark."""
    kind: str
    title: str
    notes: tuple[str, ...] = ()
    where: Where | None = None
    marks: tuple[str, ...] = ()
    """Kinds of the findings about it."""
    hint: str = ""
    """The tooltip: all details."""
    inner: Picture | None = None
    """What is drawn in it."""


class Line(Record):
    """An arc, or a way from task to task. Ends are places among the boxes."""

    key: str
    """`step/arc.1`; empty for a line that is nobody's arc."""
    source: int
    target: int
    label: str = ""
    style: str = "plain"
    """`plain`, `failure` or `dead`."""
    where: Where | None = None
    hint: str = ""


class Picture(Record):
    """Boxes and lines."""

    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]


class Drawing(Record):
    picture: Picture
    layout: Layout
    inner: tuple[Drawing | None, ...]
    """For each box the drawing in it."""


def draw(picture: Picture) -> Drawing:
    inner = tuple(draw(box.inner) if box.inner else None for box in picture.boxes)
    sizes = [_box_size(box, within) for box, within in zip(picture.boxes, inner, strict=True)]
    titles = [box.title for box in picture.boxes]
    links = [
        Link(line.source, line.target, label_size(line.label), _tag_size(line, titles), line.style)
        for line in picture.lines
    ]
    return Drawing(picture, lay_out(sizes, links), inner)


# ---- what there is to draw


def picture_of(report: GraphReport, unfold: bool = False) -> Picture:
    """Return the picture of a whole net; with `unfold`, pipelines are drawn inside their steps."""
    net = report.net
    marks = marks_of(report)
    dead = {(arc.step, arc.arc) for arc in report.dead_arcs}
    boxes = [step_box(step, net, marks.get(step.name, ()), unfold) for step in net.steps]
    lines = [arc_line(step, arc, net, dead) for step in net.steps for arc in step.arcs]
    begin = Box("", "begin", "", hint="the run begins here")
    first = Line("", 0, net.entry + 1, hint="the first token")
    shifted = [changed(line, source=line.source + 1, target=line.target + 1) for line in lines]
    return Picture((begin, *boxes), (first, *shifted))


def marks_of(report: GraphReport) -> dict[str, tuple[str, ...]]:
    """Return the kinds of findings about each step."""
    marks: dict[str, dict[str, None]] = {}
    for finding in report.findings:
        for step in (finding.step, *finding.steps):
            marks.setdefault(step, {})[finding.kind.value] = None
    return {step: tuple(kinds) for step, kinds in marks.items()}


def step_box(step: NetStep, net: Net, marks: tuple[str, ...], unfold: bool = False) -> Box:
    inner = inside(step) if unfold and has_flow(step) else None
    notes = tuple(_notes(step, net))
    desc = [step.desc] if step.desc else []
    hint = "\n".join((step.name, *desc, *notes, *([f"at {step.where}"] if step.where else [])))
    notes = tuple(shortened(" ".join(one.split()), _LONGEST_TITLE) for one in (*desc, *notes))
    return Box(step.name, step.kind.value, shortened(step.name, _LONGEST_TITLE), notes, step.where, marks, hint, inner)


def has_flow(step: NetStep) -> bool:
    """True if a step has more than one task, so that there is something to see inside it."""
    return step.pipeline is not None and sum(i.opcode.name in LABELLED for i in step.pipeline.code) > 1


def _notes(step: NetStep, net: Net) -> Iterator[str]:
    if step.tools:
        yield ", ".join(step.tools)
    if step.index == net.final:
        yield "last, when all is at rest"
    for level, width in enumerate(step.widths):
        at_once = "one at a time" if width == 1 else f"{width or 'n'} at once"
        yield f"{'loop' if level == 0 else 'inner loop'}, {at_once}"
    if step.gate is Gate.SHUT:
        yield "gate never opens"
    elif step.gate is Gate.UNSURE:
        yield "gate, drops the denied" if step.drops_denied else "gate, holds the denied"
    if len(step.arcs) > 1:
        yield "all that hold" if step.inclusive else "first that holds"
    if step.kind is StepKind.ROUTING and len(step.arcs) < 2:
        yield "routing only"


def arc_line(step: NetStep, arc: NetArc, net: Net, dead: set[tuple[str, int]]) -> Line:
    """Return the line of an arc, its ends being places of steps."""
    target = net.steps[arc.target].name
    style = "dead" if (step.name, arc.number) in dead else "failure" if _only_on_failure(step, arc) else "plain"
    first = f"{step.name} → {target}, arc {arc.number}"
    hint = "\n".join(part for part in (first, arc.label, f"at {arc.where}" if arc.where else "") if part)
    return Line(f"{step.name}/arc.{arc.number}", step.index, arc.target, _arc_label(step, arc), style, arc.where, hint)


def _arc_label(step: NetStep, arc: NetArc) -> str:
    label = shortened(_bare(arc.label), _LONGEST_LABEL)
    if step.inclusive or len(step.arcs) < 2:
        return label
    return f"{arc.number}. {label or 'otherwise'}"


def _bare(guard: str) -> str:
    """Return a guard without its braces."""
    text = " ".join(guard.split())
    if text.startswith("{{") and text.endswith("}}") and text.count("{{") == 1:
        return text[2:-2].strip()
    return text


def _only_on_failure(step: NetStep, arc: NetArc) -> bool:
    events = {
        ending.event
        for ending in step.endings
        for choice in ending.choices
        for alternative in choice
        if arc.index in alternative
    }
    return events == {STEP_FAILED}


# ---- inside a step


def inside(step: NetStep) -> Picture:
    assert step.pipeline is not None
    graph: TaskGraph = task_graph(step.pipeline)
    boxes = tuple(_task_box(step, node) for node in graph.nodes)
    return Picture(boxes, tuple(_task_line(edge) for edge in graph.edges))


def _task_box(step: NetStep, node: TaskNode) -> Box:
    if node.kind in (NodeKind.BEGIN, NodeKind.DONE, NodeKind.FAILED):
        return Box("", node.kind.value, "" if node.kind is NodeKind.BEGIN else node.label, hint=node.label)
    notes = (node.tool,) if node.tool else ()
    hint = "\n".join((f"{step.name}/{node.label}", *notes))
    return Box(f"{step.name}/{node.label}", node.kind.value, shortened(node.label, _LONGEST_TITLE), notes, hint=hint)


def _task_line(edge: TaskEdge) -> Line:
    return Line("", edge.source, edge.target, edge.label, "failure" if edge.is_failure else "plain", hint=edge.label)


# ---- how much room it takes


def shortened(text: str, longest: int) -> str:
    """Return a text, cut in the middle if it is too long."""
    if len(text) <= longest:
        return text
    half = (longest - 1) // 2
    return f"{text[:half]}…{text[-half:]}"


def text_width(text: str, em: float) -> float:
    """Return how wide a text is; characters of East Asian scripts take two places."""
    places = sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)
    return places * em * _ADVANCE


def _box_size(box: Box, inner: Drawing | None) -> Size:
    if box.kind == "begin":
        return Size(16.0, 16.0)
    texts = [(box.title, TITLE_EM), *((note, NOTE_EM) for note in box.notes)]
    width = max(text_width(text, em) for text, em in texts)
    height = LINE_HEIGHT * (1 + len(box.notes)) + _PAD
    if inner is None:
        return Size(round(width + 2 * _PAD, 1), height)
    within = inner.layout
    return Size(round(max(width, within.width) + 2 * _PAD, 1), round(height + HEADER + within.height + _PAD, 1))


def label_size(label: str) -> Size:
    """Return the room that a line's label takes."""
    return Size(round(text_width(label, NOTE_EM) + 8, 1), LINE_HEIGHT + 1) if label else NOTHING


def tag_texts(line: Line, titles: Sequence[str]) -> tuple[str, str]:
    """Return what stands at the two ends of a line that is not drawn in full."""
    return f"to {titles[line.target]}", f"from {titles[line.source]}"


def _tag_size(line: Line, titles: Sequence[str]) -> Size:
    first, last = (label_size(text) for text in tag_texts(line, titles))
    return first if first.width >= last.width else last
