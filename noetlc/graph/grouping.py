"""A net too large for one picture, in groups of consecutive steps, with a picture of each group."""

from __future__ import annotations

from collections import Counter

from noetlc.graph.picture import Box, Line, Picture, arc_line, marks_of, shortened, step_box
from noetlc.graph.report import GraphReport
from noetlc.net.net import Net, NetArc
from noetlvm.record import Record

LARGE = 300
"""More steps than this are shown in groups."""
_GROUP = 40
_GROUPS_MAX = 150
_LONGEST_NAME = 30


class StepGroup(Record):
    """Steps that are drawn together."""

    key: str
    steps: tuple[int, ...]


def groups_of(net: Net) -> list[StepGroup]:
    """Split a net into groups of a readable size, in the order in which a run reaches them."""
    order = _order(net)
    size = max(_GROUP, -(-len(order) // _GROUPS_MAX))
    count = -(-len(order) // size)
    size = -(-len(order) // count)
    return [StepGroup(f"#{at // size + 1}", tuple(order[at : at + size])) for at in range(0, len(order), size)]


def _order(net: Net) -> list[int]:
    """Return the steps so that what an arc leads to comes later, cycles aside, and branches stay together."""
    seen = [False] * len(net.steps)
    order: list[int] = []
    for root in (net.entry, *range(len(net.steps))):
        if not seen[root]:
            finished: list[int] = []
            _walk(net, root, seen, finished)
            order += reversed(finished)
    return order


def _walk(net: Net, root: int, seen: list[bool], finished: list[int]) -> None:
    seen[root] = True
    stack = [(root, iter(net.steps[root].arcs))]
    while stack:
        step, arcs = stack[-1]
        arc = next(arcs, None)
        if arc is None:
            finished.append(step)
            stack.pop()
        elif not seen[arc.target]:
            seen[arc.target] = True
            stack.append((arc.target, iter(net.steps[arc.target].arcs)))


class Grouping:
    """A report's net in groups, and the pictures of it."""

    def __init__(self, report: GraphReport) -> None:
        self.net = report.net
        self.groups = groups_of(report.net)
        self.group_of = {step: number for number, group in enumerate(self.groups) for step in group.steps}
        self._marks = marks_of(report)
        self._dead = {(arc.step, arc.arc) for arc in report.dead_arcs}
        self._arcs: list[list[NetArc]] = [[] for _ in self.groups]
        """For each group the arcs that begin or end in it."""
        for step in self.net.steps:
            for arc in step.arcs:
                for number in {self.group_of[arc.source], self.group_of[arc.target]}:
                    self._arcs[number].append(arc)

    def overview(self) -> Picture:
        boxes = [Box("", "begin", "", hint="the run begins here"), *map(self._group_box, self.groups)]
        between: Counter[tuple[int, int]] = Counter()
        for step in self.net.steps:
            between.update((self.group_of[step.index], self.group_of[arc.target]) for arc in step.arcs)
        lines = [Line("", 0, self.group_of[self.net.entry] + 1)]
        lines += [
            Line("", source + 1, target + 1, _arcs(count))
            for (source, target), count in sorted(between.items())
            if source != target
        ]
        return Picture(tuple(boxes), tuple(lines))

    def picture(self, number: int) -> Picture:
        """Return the picture of one group; each group around it is one box."""
        group = self.groups[number]
        boxes = [self._step_box(step) for step in group.steps]
        place = {step: at for at, step in enumerate(group.steps)}
        around: dict[int, int] = {}
        for arc in self._arcs[number]:
            for other in (self.group_of[arc.source], self.group_of[arc.target]):
                if other != number and other not in around:
                    around[other] = len(boxes)
                    boxes.append(self._outside(self.groups[other]))
        lines: list[Line] = []
        crossing: dict[tuple[int, int], list[Line]] = {}
        for arc in self._arcs[number]:
            source = place.get(arc.source, around.get(self.group_of[arc.source], -1))
            target = place.get(arc.target, around.get(self.group_of[arc.target], -1))
            known = arc_line(self.net.steps[arc.source], arc, self.net, self._dead)
            line = Line(known.key, source, target, known.label, known.style, known.where, known.hint)
            within = arc.source in place and arc.target in place
            (lines if within else crossing.setdefault((source, target), [])).append(line)
        lines += [_joined(ends, several) for ends, several in crossing.items()]
        return Picture(tuple(boxes), tuple(lines))

    def _step_box(self, index: int) -> Box:
        step = self.net.steps[index]
        return step_box(step, self.net, self._marks.get(step.name, ()))

    def _group_box(self, group: StepGroup) -> Box:
        first, last = (self.net.steps[group.steps[end]].name for end in (0, -1))
        marks = {mark: None for step in group.steps for mark in self._marks.get(self.net.steps[step].name, ())}
        notes = (f"… {shortened(last, _LONGEST_NAME)}", f"{len(group.steps):,} steps")
        hint = f"{first} … {last}: {len(group.steps):,} steps"
        return Box(group.key, "group", shortened(first, _LONGEST_NAME), notes, marks=tuple(marks), hint=hint)

    def _outside(self, group: StepGroup) -> Box:
        first = self.net.steps[group.steps[0]].name
        note = f"{shortened(first, _LONGEST_NAME)} …"
        return Box(group.key, "outside", f"group {group.key[1:]}", (note,), hint=first)


def _joined(ends: tuple[int, int], lines: list[Line]) -> Line:
    """Return one line for all that have the same ends."""
    if len(lines) == 1:
        return lines[0]
    return Line("", *ends, _arcs(len(lines)), hint="\n".join(line.hint.split("\n")[0] for line in lines[:20]))


def _arcs(count: int) -> str:
    return "" if count == 1 else f"{count:,} arcs"
