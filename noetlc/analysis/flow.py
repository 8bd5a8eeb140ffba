"""Where control can go in a pipeline: from each task, and from each test of `choose`, `while` and `until`, to what.

A guard may hold or not unless it is constant, so a way that is here may never be taken, but no way is missing. It
decides nothing about right or wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from noetlc.analysis.guards import decide
from noetlc.syntax import ast
from noetlvm.language.tool_kinds import find_kind
from noetlvm.record import Entity, Record

if TYPE_CHECKING:
    from noetlc.analysis.model import Owner, TaskView

DONE: Final = -1
"""The pipeline ends well."""
FAILED: Final = -2
"""The pipeline ends with a failure."""


class Way(Entity):
    """One way on: to another point by its number, or to `DONE` or `FAILED`."""

    to: int
    rule: ast.PolicyRule | None = None
    """The policy rule that leads there; None where the language itself does."""
    is_retry: bool = False
    """The same task again, or the failure once its attempts are used up."""


class Point(Entity):
    """Somewhere control can be: at a task, or at a block's test."""

    entry: ast.PipelineEntry
    block: ast.Choose | ast.Repeat | None
    """The innermost block around it."""
    before: int | None
    """The entry just before it in the same list; None for the first."""
    view: TaskView | None
    """The task; None for a block's test."""
    ways: tuple[Way, ...]


class Flow(Record, cached=True):
    """One pipeline's points, in the order written, and the ways between them."""

    points: tuple[Point, ...]
    start: int
    is_certain: bool
    """Every rule says where it leads. If one does not, that is told elsewhere, and nothing follows from this flow."""

    @cached_property
    def reachable(self) -> frozenset[int]:
        """The points that control can come to."""
        return _closure((self.start,), lambda number: (way.to for way in self.points[number].ways))

    @cached_property
    def can_end(self) -> frozenset[int]:
        """The points from which the pipeline can end, other than by using up a retry."""
        into: list[list[int]] = [[] for _ in self.points]
        ending: list[int] = []
        for number, point in enumerate(self.points):
            for way in point.ways:
                if way.to >= 0:
                    into[way.to].append(number)
                elif not way.is_retry:
                    ending.append(number)
        return _closure(ending, lambda number: into[number])

    @cached_property
    def can_fail(self) -> bool:
        """Whether some way that can be taken ends with a failure."""
        return any(way.to == FAILED for number in self.reachable for way in self.points[number].ways)

    def before(self, given: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return, for each point, what every way to it gives and what some way to it gives.

        `given` holds a set of bits for each point: what has happened once control leaves it.
        """
        everything = -1
        surely, maybe = [everything] * len(self.points), [0] * len(self.points)
        if self.start < 0:
            return surely, maybe
        surely[self.start] = 0
        waiting = [self.start]
        seen = {self.start}
        while waiting:
            number = waiting.pop()
            for way in self.points[number].ways:
                if way.to < 0:
                    continue
                sure = surely[way.to] & (surely[number] | given[number])
                possible = maybe[way.to] | maybe[number] | given[number]
                if (sure, possible) != (surely[way.to], maybe[way.to]) or way.to not in seen:
                    surely[way.to], maybe[way.to] = sure, possible
                    seen.add(way.to)
                    waiting.append(way.to)
        return surely, maybe


def can_fail(kind_name: str) -> bool:
    """Tell whether a task of that kind is known to be able to fail by itself."""
    kind = find_kind(kind_name) if kind_name else None
    return kind is not None and kind.can_fail


def build_flow(owner: Owner, views: Iterable[TaskView]) -> Flow:
    """Lay out the flow of one pipeline."""
    return _Layout(owner, views).flow()


def _closure(start: Iterable[int], onward: Callable[[int], Iterable[int]]) -> frozenset[int]:
    seen = {number for number in start if number >= 0}
    waiting = list(seen)
    while waiting:
        for number in onward(waiting.pop()):
            if number >= 0 and number not in seen:
                seen.add(number)
                waiting.append(number)
    return frozenset(seen)


class _Layout:
    """Numbers the entries of one pipeline first, so that ways can lead forwards, then finds the ways."""

    def __init__(self, owner: Owner, views: Iterable[TaskView]) -> None:
        self._views = {id(view.task): view for view in views}
        self._labels: dict[str, int] = {}
        self._entries: list[tuple[ast.PipelineEntry, ast.Choose | ast.Repeat | None, int | None]] = []
        self._numbers: dict[int, int] = {}
        self._ways: dict[int, tuple[Way, ...]] = {}
        self._is_certain = True
        self._number_all(owner.entries, None)
        self._start = self._first(owner.entries, DONE)
        self._lead(owner.entries, DONE)

    def flow(self) -> Flow:
        points = tuple(
            Point(entry, block, before, self._views.get(id(entry)), self._ways[number])
            for number, (entry, block, before) in enumerate(self._entries)
        )
        return Flow(points, self._start, self._is_certain)

    def _number_all(self, entries: Sequence[ast.PipelineEntry], block: ast.Choose | ast.Repeat | None) -> None:
        before: int | None = None
        for entry in entries:
            number = len(self._entries)
            self._numbers[id(entry)] = number
            self._entries.append((entry, block, before))
            before = number
            if isinstance(entry, ast.Task):
                self._labels.setdefault(self._views[id(entry)].label, number)
                continue
            for body in ast.bodies(entry):
                self._number_all(body, entry)

    def _first(self, entries: Sequence[ast.PipelineEntry], otherwise: int) -> int:
        """Return where control enters a list of entries."""
        if not entries:
            return otherwise
        entry = entries[0]
        if isinstance(entry, ast.Repeat) and entry.word == "until":
            return self._first(entry.do or (), self._numbers[id(entry)])
        return self._numbers[id(entry)]

    def _lead(self, entries: Sequence[ast.PipelineEntry], after: int) -> None:
        """Find the ways out of each entry; the last one leads to `after`."""
        for position, entry in enumerate(entries):
            onward = self._first(entries[position + 1 : position + 2], after)
            number = self._numbers[id(entry)]
            if isinstance(entry, ast.Task):
                self._ways[number] = tuple(self._task_ways(entry, number, onward))
            elif isinstance(entry, ast.Choose):
                self._ways[number] = tuple(self._choose_ways(entry, onward))
                for body in ast.bodies(entry):
                    self._lead(body, onward)
            else:
                self._ways[number] = tuple(self._repeat_ways(entry, number, onward))
                self._lead(entry.do or (), number)

    def _choose_ways(self, choose: ast.Choose, onward: int) -> Iterator[Way]:
        for branch in choose.choose:
            body = (branch.else_.then if branch.else_ else branch.then) or ()
            always = True if branch.else_ else decide(branch.when)
            if always is not False:
                yield Way(self._first(body, onward))
            if always:
                return
        yield Way(onward)

    def _repeat_ways(self, repeat: ast.Repeat, number: int, onward: int) -> Iterator[Way]:
        always = decide(repeat.when) if repeat.when else None
        goes_round = None if always is None else always == (repeat.word == "while")
        if goes_round is not False:
            yield Way(self._first(repeat.do or (), number))
        if not goes_round:
            yield Way(onward)

    def _task_ways(self, task: ast.Task, number: int, onward: int) -> Iterator[Way]:
        if self._views[id(task)].kind == "workbook":
            yield Way(DONE)  # the tasks put in its place may `break` or fail, whatever this one's policy says
            yield Way(FAILED)
        if not task.rules:
            yield Way(onward)
            if can_fail(self._views[id(task)].kind):
                yield Way(FAILED)
            return
        for rule in task.rules:
            always = True if rule.else_ else decide(rule.when) if rule.when else None
            if always is not False:
                yield from self._rule_ways(rule, number, onward)
            if always:
                return
        yield Way(onward)

    def _rule_ways(self, rule: ast.PolicyRule, number: int, onward: int) -> Iterator[Way]:
        then = rule.else_.then if rule.else_ else rule.then
        directive = then.do.text if then and then.do else ""
        if directive in ("continue", "skip"):
            yield Way(onward, rule)
        elif directive == "break":
            yield Way(DONE, rule)
        elif directive == "fail":
            yield Way(FAILED, rule)
        elif directive == "retry":
            yield Way(number, rule, is_retry=True)
            yield Way(FAILED, rule, is_retry=True)
        else:
            yield from self._jump_ways(rule, then, directive, onward)

    def _jump_ways(self, rule: ast.PolicyRule, then: ast.Then | None, directive: str, onward: int) -> Iterator[Way]:
        target = self._labels.get(then.to.text) if then and then.to and directive == "jump" else None
        if target is None:
            self._is_certain = False
        yield Way(onward if target is None else target, rule)
