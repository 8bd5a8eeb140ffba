"""The control flow of a pipeline: from each task, and from each test of `choose`, `while`, `until`, to the next; waits.

A guard may hold or not unless it is constant, or decided by whether the task succeeded. So an edge that is here may
never be taken, but no edge is missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from noetlc.analysis.endings import ALWAYS_THERE, FailureCause
from noetlc.analysis.formulas import ERROR_OUTCOME, OK_OUTCOME, UNDEFINED, Facts
from noetlc.analysis.guards import constant_of, decide, guard_can_raise, names_read
from noetlc.syntax import ast
from noetlc.syntax.nodes import Mapping, MappingEntry, Node, Scalar, scalars
from noetlvm.language.tool_kinds import find_kind
from noetlvm.record import IdentityRecord, Record

if TYPE_CHECKING:
    from noetlc.analysis.model import Owner, TaskView


DONE: Final = -1
"""The pipeline ends as done."""
FAILED: Final = -2
"""The pipeline ends with a failure."""
BITS_MAX = 64 * 1024 * 1024
"""Bits in the sets of all points of one pipeline: 8,000 tasks that read each other's results. Of larger ones the order
of writing and reading is not checked."""


class Way(IdentityRecord):
    """An edge: to another point by its index, or to `DONE` or `FAILED`."""

    to: int
    rule: ast.PolicyRule | None = None
    """The policy rule behind it; None if it follows from the language."""
    failure: FailureCause | None = None
    """Why it fails where it leads to `FAILED`."""
    is_retry: bool = False
    """The same task again, or the failure once its attempts are used up."""
    repeats: bool = False
    """From the test of an `until` back to its body."""


class Point(IdentityRecord):
    """A task, or the test of a block."""

    entry: ast.PipelineEntry
    block: ast.Choose | ast.Repeat | None
    """The innermost enclosing block."""
    before: int | None
    """The previous entry of the same list; None for the first."""
    view: TaskView | None
    """The task; None for a block's test."""
    ways: tuple[Way, ...]


class Flow(Record, cached=True):
    """The points of a pipeline, in source order, and the edges between them."""

    points: tuple[Point, ...]
    start: int
    is_certain: bool
    """Every rule has a valid directive. If one has not, another rule reports it, and nothing follows from this flow."""

    @cached_property
    def reachable(self) -> frozenset[int]:
        """The points that control can reach."""
        return _closure((self.start,), lambda number: (way.to for way in self.points[number].ways))

    @cached_property
    def can_end(self) -> frozenset[int]:
        """The points from which the pipeline can end, other than by using up a retry or by a value that fails."""
        into: list[list[int]] = [[] for _ in self.points]
        ending: list[int] = []
        for number, point in enumerate(self.points):
            for way in point.ways:
                if way.to >= 0:
                    into[way.to].append(number)
                elif not way.is_retry and way.failure in (None, FailureCause.OUTCOME):
                    ending.append(number)
        return _closure(ending, lambda number: into[number])

    @cached_property
    def can_finish(self) -> bool:
        """Whether some path ends as done."""
        return self.start == DONE or any(way.to == DONE for _, way in self._taken())

    @cached_property
    def failures(self) -> frozenset[FailureCause]:
        """How the pipeline can fail. One that goes back can run out of rounds or of fuel (S20, S39)."""
        found = {way.failure or FailureCause.OUTCOME for _, way in self._taken() if way.to == FAILED}
        if any(self._goes_back(number, way) for number, way in self._taken()):
            found.add(FailureCause.FUEL)
        if any(_is_computed(max) for max in self._rounds_of_until()):
            found.add(FailureCause.NUMBER)
        return frozenset(found)

    def _rounds_of_until(self) -> Iterator[Scalar]:
        """Yield what counts the rounds of an `until`, before its body: its own point is the test after that."""
        for point in self.points:
            if isinstance(point.entry, ast.Repeat) and point.entry.word == "until" and point.entry.max:
                yield point.entry.max

    @property
    def tasks_entered(self) -> int:
        """How many tasks control can reach."""
        views = (self.points[number].view for number in self.reachable)
        return sum(view is not None and not view.task.is_flow for view in views)

    def _taken(self) -> Iterator[tuple[int, Way]]:
        return ((number, way) for number in self.reachable for way in self.points[number].ways)

    def _goes_back(self, number: int, way: Way) -> bool:
        if way.repeats or way.is_retry or way.to < 0:
            return way.repeats
        target = self.points[way.to].entry
        is_end_of_until = isinstance(target, ast.Repeat) and target.word == "until"  # its test stands before its body
        return way.to <= number and not is_end_of_until

    def may_have_run(self, label: str, entry: ast.PipelineEntry) -> bool:
        """True if a task with this label can have run before an entry, or if that is not known."""
        bits, before = self._labels_before
        return label not in bits or bool(before.get(id(entry), -1) & bits[label])

    @cached_property
    def _labels_before(self) -> tuple[dict[str, int], dict[int, int]]:
        """A bit for each label, and for each entry, by identity, the labels whose tasks can have run before it."""
        bits: dict[str, int] = {}
        labels = [point.view.label if point.view else "" for point in self.points]
        given = [bits.setdefault(label, 1 << len(bits)) if label else 0 for label in labels]
        if not self.can_follow(len(bits)):
            return {}, {}
        _, maybe = self.before(given)
        return bits, {id(point.entry): mask for point, mask in zip(self.points, maybe, strict=True)}

    def can_follow(self, bits: int) -> bool:
        """True if this many bits can be followed through the pipeline: every point has a set of them."""
        return bits * len(self.points) <= BITS_MAX

    def before(self, given: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return, for each point, the bits that are set on every path to it, and those that are set on some path.

        `given` has the bits that each point sets.
        """
        everything = -1
        surely, maybe = [everything] * len(self.points), [0] * len(self.points)
        if self.start < 0:
            return surely, maybe
        surely[self.start] = 0
        pending = [self.start]
        seen = {self.start}
        while pending:
            number = pending.pop()
            for way in self.points[number].ways:
                if way.to < 0:
                    continue
                sure = surely[way.to] & (surely[number] | given[number])
                possible = maybe[way.to] | maybe[number] | given[number]
                if (sure, possible) != (surely[way.to], maybe[way.to]) or way.to not in seen:
                    surely[way.to], maybe[way.to] = sure, possible
                    seen.add(way.to)
                    pending.append(way.to)
        return surely, maybe


def tool_can_fail(kind_name: str) -> bool:
    """True if tasks of a known kind can fail by themselves."""
    kind = find_kind(kind_name) if kind_name else None
    return kind is not None and kind.can_fail


def task_can_fail(view: TaskView) -> bool:
    """True if a task can fail: its tool can, its kind is unknown, or an input is computed and so may be undefined."""
    kind = find_kind(view.kind) if view.kind else None
    return kind is None or kind.can_fail or any(may_fail(entry.value) for entry in inputs_of(view))


def is_called(task: ast.Task) -> bool:
    """False if the first rule always skips the task before its tool is called (S17)."""
    for rule in task.rules:
        if not rule.skips or _reads_outcome(rule):
            return True
        if rule.else_ or decide(rule.when) is True:
            return False
    return True


def _reads_outcome(rule: ast.PolicyRule) -> bool:
    then = rule.action
    patches = (then.set_iter, then.set_ctx) if then else ()
    return any("outcome" in names_read(text) for text in (rule.when, *(s for p in patches if p for s in scalars(p))))


def tried_rules(view: TaskView) -> Iterator[tuple[ast.PolicyRule, bool]]:
    """Yield the rules of a task that can be tried, and whether each can match."""
    for facts in (OK_OUTCOME, ERROR_OUTCOME) if task_can_fail(view) else (OK_OUTCOME,):
        yield from ((rule, always is not False) for rule, always in _tried(view.task, facts))


def _tried(task: ast.Task, facts: Facts) -> Iterator[tuple[ast.PolicyRule, bool | None]]:
    """Yield the rules that are tried after an outcome, and whether each always or never matches."""
    for rule in task.rules:
        always = True if rule.else_ else decide(rule.when, facts) if rule.when else None
        yield rule, always
        if always:
            return


def may_fail(value: Node) -> bool:
    """True if a value is computed and so may be undefined, other than one that is always there."""
    return any(_is_computed(scalar) and _path(scalar) not in ALWAYS_THERE for scalar in scalars(value))


def _is_computed(scalar: Scalar | None) -> bool:
    return scalar is not None and scalar.is_template and constant_of(scalar) is UNDEFINED


def _path(scalar: Scalar) -> str:
    return scalar.text.removeprefix("{{").removesuffix("}}").strip()


def inputs_of(view: TaskView) -> Iterator[MappingEntry]:
    """Yield a task's inputs and settings, those that enclosing scopes give it included (S38)."""
    yield from (*view.task.extra, *view.task.settings)
    step = view.owner.step
    for spec in (step.spec, *(loop.spec for loop in step.loops)) if step else ():
        for entry in spec.extra if spec else ():
            if not isinstance(entry.value, Mapping) or entry.key.text == view.kind or not find_kind(entry.key.text):
                yield entry


def build_flow(owner: Owner, views: Iterable[TaskView]) -> Flow:
    return _Layout(owner, views).flow()


def _closure(start: Iterable[int], onward: Callable[[int], Iterable[int]]) -> frozenset[int]:
    seen = {number for number in start if number >= 0}
    pending = list(seen)
    while pending:
        for number in onward(pending.pop()):
            if number >= 0 and number not in seen:
                seen.add(number)
                pending.append(number)
    return frozenset(seen)


def _distinct(ways: Iterable[Way]) -> tuple[Way, ...]:
    return tuple({(way.to, id(way.rule), way.failure, way.is_retry): way for way in ways}.values())


class _Layout:
    """Numbers the entries of one pipeline first, because edges may lead forwards, then finds the edges."""

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
        """Return the point where control enters a list of entries."""
        if not entries:
            return otherwise
        entry = entries[0]
        if isinstance(entry, ast.Repeat) and entry.word == "until":
            return self._first(entry.do or (), self._numbers[id(entry)])
        return self._numbers[id(entry)]

    def _lead(self, entries: Sequence[ast.PipelineEntry], after: int) -> None:
        """Find the edges out of each entry; the last one leads to `after`."""
        for position, entry in enumerate(entries):
            onward = self._first(entries[position + 1 : position + 2], after)
            number = self._numbers[id(entry)]
            if isinstance(entry, ast.Task):
                self._ways[number] = _distinct(self._task_ways(entry, number, onward))
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
            if guard_can_raise(branch.when):
                yield Way(FAILED, failure=FailureCause.GUARD)
            if always is not False:
                yield Way(self._first(body, onward))
            if always:
                return
        yield Way(onward)

    def _repeat_ways(self, repeat: ast.Repeat, number: int, onward: int) -> Iterator[Way]:
        always = decide(repeat.when) if repeat.when else None
        is_until = repeat.word == "until"
        goes_round = None if always is None else always != is_until
        if guard_can_raise(repeat.when):
            yield Way(FAILED, failure=FailureCause.GUARD)
        if goes_round is not False and (_is_computed(repeat.max) or _is_computed(repeat.delay)):
            yield Way(FAILED, failure=FailureCause.NUMBER)
        if goes_round is not False:
            yield Way(self._first(repeat.do or (), number), repeats=is_until)
        if not goes_round:
            yield Way(onward)

    def _task_ways(self, task: ast.Task, number: int, onward: int) -> Iterator[Way]:
        view = self._views[id(task)]
        if view.kind == "workbook":
            yield Way(DONE)  # the tasks put in its place may `break` or fail, whatever this one's policy
            yield Way(FAILED, failure=FailureCause.OUTCOME)
        yield from self._ways_after(task, number, onward, OK_OUTCOME)
        if task.is_flow:
            if any(_is_computed(scalar) for entry in task.settings for scalar in scalars(entry.value)):
                yield Way(FAILED, failure=FailureCause.NUMBER)
        elif task_can_fail(view):
            yield from self._ways_after(task, number, onward, ERROR_OUTCOME)

    def _ways_after(self, task: ast.Task, number: int, onward: int, facts: Facts) -> Iterator[Way]:
        if task.spec is None or task.spec.policy is None:
            is_error = facts is ERROR_OUTCOME
            yield Way(FAILED, failure=FailureCause.OUTCOME) if is_error else Way(onward)
            return
        always: bool | None = False
        for rule, always in _tried(task, facts):
            if guard_can_raise(rule.when, facts):
                yield Way(FAILED, rule, FailureCause.GUARD)
            if always is not False:
                yield from self._rule_ways(rule, number, onward)
        if not always:
            yield Way(onward)

    def _rule_ways(self, rule: ast.PolicyRule, number: int, onward: int) -> Iterator[Way]:
        then = rule.action
        directive = then.do.text if then and then.do else ""
        for patch in (then.set_iter, then.set_ctx) if then else ():
            if patch is not None and may_fail(patch):
                yield Way(FAILED, rule, FailureCause.PATCH)
        if then and directive == "retry" and (_is_computed(then.attempts) or _is_computed(then.delay)):
            yield Way(FAILED, rule, FailureCause.NUMBER)
        if directive in ("continue", "skip"):
            yield Way(onward, rule)
        elif directive == "break":
            yield Way(DONE, rule)
        elif directive == "fail":
            yield Way(FAILED, rule, FailureCause.OUTCOME)
        elif directive == "retry":
            yield Way(number, rule, is_retry=True)
            yield Way(FAILED, rule, FailureCause.OUTCOME, is_retry=True)
        else:
            yield from self._jump_ways(rule, then, directive, onward)

    def _jump_ways(self, rule: ast.PolicyRule, then: ast.Then | None, directive: str, onward: int) -> Iterator[Way]:
        target = self._labels.get(then.to.text) if then and then.to and directive == "jump" else None
        if target is None:
            self._is_certain = False
        yield Way(onward if target is None else target, rule)


WAIT_MAX = 3600.0
"""Seconds: no single wait is longer."""
_DELAY_MIN = 1e-6
_RETRIES_MAX = 10**9

DEFAULT_ATTEMPTS = 3
"""Runs of the task, the first included, if the playbook does not specify (S14)."""


class Waits(Record):
    """What all retries of one task run can wait, at the worst."""

    total: float
    capped_from: int | None
    """Number of the first retry, from 1, whose wait would be over the limit."""


def waits(then: ast.Then) -> Waits | None:
    """Return the waits of a `retry`, or None where they are not known before a run."""
    attempts = then.attempts.value if then.attempts else DEFAULT_ATTEMPTS
    delay = then.delay.value if then.delay else 0
    if not isinstance(attempts, int) or not isinstance(delay, int | float) or not delay > 0:
        return None
    # Numbers may be as large, or as small, as an author can write.
    first = float(max(min(delay, 2 * WAIT_MAX), _DELAY_MIN))
    backoff = then.backoff.text if then.backoff else "none"
    return _sum(_GROWTH.get(backoff, _none)(first), first, backoff, min(max(0, attempts - 1), _RETRIES_MAX))


def _none(delay: float) -> int:
    return 0 if delay > WAIT_MAX else -1


def _linear(delay: float) -> int:
    return math.floor(WAIT_MAX / delay)


def _exponential(delay: float) -> int:
    return max(0, math.floor(math.log2(WAIT_MAX / delay)) + 1)


_GROWTH = {"none": _none, "linear": _linear, "exponential": _exponential}
"""How many retries stay within the limit, by backoff; -1 if all of them do."""


def _sum(within: int, delay: float, backoff: str, retries: int) -> Waits:
    uncapped = retries if within < 0 else min(within, retries)
    if backoff == "linear":
        total = delay * uncapped * (uncapped + 1) / 2
    elif backoff == "exponential":
        total = delay * (2.0**uncapped - 1)
    else:
        total = delay * uncapped
    over = retries - uncapped
    return Waits(total + over * WAIT_MAX, uncapped + 1 if over else None)


def duration(seconds: float) -> str:
    """Return a length of time for people: `17 min 2 s`."""
    parts: list[str] = []
    left = round(seconds)
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"
