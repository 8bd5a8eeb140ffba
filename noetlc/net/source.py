"""From a playbook's source to its net: reads step summaries from the syntax tree, whether or not it compiles."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING

from noetlc.analysis.endings import FailureCause, LoopFacts, Write, loop_failures
from noetlc.analysis.flow import Flow, build_flow, inputs_of, is_called, tried_rules
from noetlc.analysis.formulas import NO_FACTS, UNDEFINED, Facts, Formula, if_, needed
from noetlc.analysis.guards import OTHER_NAMES, constant_of, guard_formula, names_read
from noetlc.analysis.model import Model, Owner, TaskView, loop_mode, loop_width
from noetlc.analysis.names import names_in
from noetlc.analysis.routers import NEXT_MODE
from noetlc.canon.canonicalize import StepExpansion
from noetlc.canon.flow import FLOW
from noetlc.net.net import (
    NO_PIPELINE,
    UNKNOWN_PIPELINE,
    ArcSummary,
    Net,
    NetArc,
    PipelineEnds,
    StepSummary,
    Where,
    build_net,
)
from noetlc.net.reach import Reach, reach
from noetlc.syntax import ast
from noetlc.syntax.nodes import Mapping, Node, Scalar, Sequence, plain, scalars
from noetlc.syntax.positions import Moment, placed_scalars
from noetlc.syntax.span import Span
from noetlc.syntax.template_parser import parse_template
from noetlvm.language.scopes import VISIBLE, TemplatePosition
from noetlvm.language.tool_kinds import NO_TIME_KIND
from noetlvm.limits import Limits
from noetlvm.record import IdentityRecord

if TYPE_CHECKING:
    from noetlc.canon.canonicalize import StepExpansion

_UNREAD = (
    ("playbook", "workflow"),
    ("playbook", "executor"),
    ("step", "step"),
    ("step", "next"),
    ("step", "spec"),
    ("step", "tool"),
    ("step", "loop"),
    ("router", "arcs"),
    ("router", "spec"),
    ("arc", "step"),
    *(("arc", key) for key in ("when", *OTHER_NAMES)),
)
"""Where one of these could not be read, the net is unknown."""


class SourceNet(IdentityRecord):
    """A net, what its tokens reach, and the steps that it was made from, in the same order."""

    net: Net
    reach: Reach
    steps: tuple[ast.Step, ...]

    def arc(self, arc: NetArc) -> ast.Arc:
        return self.steps[arc.source].arcs[arc.index]

    def name(self, step: int) -> str:
        return self.net.steps[step].name


@lru_cache(maxsize=1)  # the rules of one model use it one after the other
def source_net(model: Model) -> SourceNet | None:
    """Return a playbook's net; None where names or routers are in error, which rules report."""
    if not model.steps or model.is_reported(model.playbook.span, *_UNREAD):
        return None
    names = {step.step.text for step in model.steps if step.step}
    targets = {arc.step.text if arc.step else "" for step in model.steps for arc in step.arcs}
    spec = model.playbook.executor_spec
    named = {scalar.text for scalar in (spec.entry_step, spec.final_step) if scalar} if spec else set()
    if len(names) < len(model.steps) or not names >= targets | named:
        return None
    metadata = model.playbook.metadata
    net = build_net(
        metadata.name.text if metadata and metadata.name else "",
        metadata.path.text if metadata and metadata.path else "",
        list(_Summaries(model).steps()),
        _entry(model, spec),
        spec.final_step.text if spec and spec.final_step else None,
    )
    return SourceNet(net, reach(net), model.steps)


def _entry(model: Model, spec: ast.ExecutorSpec | None) -> str:
    """Return the step that gets the first token (S4)."""
    if spec and spec.entry_step:
        return spec.entry_step.text
    first = model.steps[0].step
    return "start" if "start" in model.steps_by_name or first is None else first.text


class _Summaries:
    """Summarises the steps of one playbook."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._file = model.source.path.rpartition("/")[2]
        # Without inclusive routers there is one token, so that there are no races to look for.
        self._can_race = any(map(_is_inclusive, model.steps))

    @cached_property
    def _expansion(self) -> StepExpansion:
        return StepExpansion(self._model.playbook, self._model.names_before_labels)

    def steps(self) -> Iterator[StepSummary]:
        for owner in self._model.owners:
            if owner.step is not None:
                yield self._step(owner, owner.step)

    def _step(self, owner: Owner, step: ast.Step) -> StepSummary:
        tasks = self._tasks(owner)
        flow = build_flow(tasks[0].owner, tasks) if tasks and tasks[0].owner is not owner else self._model.flows[owner]
        policy = step.policy
        admit = policy.admit if policy else None
        failure = policy.failure if policy else None
        sizes = _loop_sizes(step.loops)
        called = [view for view in _reached(flow) if is_called(view.task) and not view.task.is_flow]
        return StepSummary(
            name=owner.name,
            ends=self._ends(flow) if owner.entries else NO_PIPELINE,
            loop_sizes=sizes,
            loop_failures=loop_failures(list(map(_loop_facts, step.loops, sizes)), _writes(flow)),
            widths=tuple(width if isinstance(width, int) else None for width in map(loop_width, step.loops)),
            best_effort=_is(failure.mode if failure else None, "best_effort"),
            has_limits=step.lifecycle is not None and bool(step.lifecycle.keys),
            gate=_admission(admit),
            drops_denied=_is(admit.on_deny if admit else None, "drop"),
            inclusive=_is_inclusive(step),
            arcs=tuple(map(self._arc, step.arcs)),
            reads=frozenset(_keys_read(step, flow)) if self._can_race else frozenset(),
            writes=frozenset(key for key, _ in _writes(flow)) if self._can_race else frozenset(),
            awaits=frozenset(_keys_awaited(admit)),
            has_tool=bool(owner.entries),
            tools=tuple(dict.fromkeys([*(view.kind for view in called), *_waiting_tools(flow)])),
            desc=step.desc.text if step.desc else "",
            where=self._where(step.step.span) if step.step else None,
        )

    def _tasks(self, owner: Owner) -> tuple[TaskView, ...]:
        """Return the tasks of a step, with workbook calls expanded where that is possible."""
        views = self._model.tasks_by_owner[owner]
        if not any(view.kind == "workbook" for view in views) or owner.step is None or self._model.problems:
            return views
        tasks = self._expansion.tasks(owner.step)
        if tasks is None:
            return views
        inlined = Owner(owner.name, owner.step, tasks)
        return tuple(TaskView(task, task.label.text if task.label else "", inlined, ()) for task in tasks)

    def _ends(self, flow: Flow) -> PipelineEnds:
        if not flow.is_certain:
            return UNKNOWN_PIPELINE
        fuel = {FailureCause.FUEL} if flow.tasks_entered > self._tasks_max else set()
        return PipelineEnds(flow.can_finish, flow.failures | fuel)

    @cached_property
    def _tasks_max(self) -> int:
        """Task runs that a pipeline may make (S20)."""
        spec = self._model.playbook.executor_spec
        policy = spec.policy.limits if spec and spec.policy else None
        given = {"limits": _most_tasks(spec.limits if spec else None), "policy": {"limits": _most_tasks(policy)}}
        return Limits.of({"spec": given}).max_transitions

    def _arc(self, arc: ast.Arc) -> ArcSummary:
        return ArcSummary(
            arc.step.text if arc.step else "",
            arc.when.text if arc.when else None,
            partial(guard_formula, arc.when),
            "event" in names_read(arc.when),
            self._where(arc.step.span) if arc.step else None,
        )

    def _where(self, span: Span) -> Where:
        return Where(self._file, *self._model.source.position(span.start))


def _is(scalar: Scalar | None, word: str) -> bool:
    return scalar is not None and scalar.text == word


def _is_inclusive(step: ast.Step) -> bool:
    mode = step.next.spec.mode if step.next and step.next.spec else None
    older = step.spec.get_extra(NEXT_MODE) if step.spec and mode is None else None
    return step.is_inclusive or (isinstance(older, Scalar) and older.text == "inclusive")


def _reached(flow: Flow) -> Iterator[TaskView]:
    return (view for number in sorted(flow.reachable) if (view := flow.points[number].view) is not None)


def _waiting_tools(flow: Flow) -> Iterator[str]:
    """Yield the kind of the task that a `delay` between rounds becomes (S53)."""
    entries = (flow.points[number].entry for number in flow.reachable)
    return (NO_TIME_KIND for entry in entries if _waits(entry))


def _waits(entry: ast.PipelineEntry) -> bool:
    if isinstance(entry, ast.Task):
        setting = entry.spec.get_extra(FLOW) if entry.spec else None
        return isinstance(setting, Mapping) and setting.get("wait") is not None
    return isinstance(entry, ast.Repeat) and entry.delay is not None


def _writes(flow: Flow) -> Iterator[Write]:
    """Yield what the tasks write to `ctx`; the values only of a patch of constants."""
    for view in _reached(flow):
        for rule, matches in tried_rules(view):
            then = rule.action
            if matches and then and then.set_ctx:
                values = [_constant(entry.value) for entry in then.set_ctx.entries]
                is_known = UNDEFINED not in values
                for entry, value in zip(then.set_ctx.entries, values, strict=True):
                    yield entry.key.text, value if is_known else UNDEFINED


def _most_tasks(limits: ast.LimitSettings | None) -> dict[str, object]:
    most = limits.max_transitions if limits else None
    return {"max_transitions": most.value} if most else {}


def _constant(node: Node) -> object:
    if isinstance(node, Scalar):
        return constant_of(node)
    return UNDEFINED if any(scalar.is_template for scalar in scalars(node)) else plain(node)


def _loop_facts(loop: ast.Loop, size: int | None) -> LoopFacts:
    spec, policy = loop.spec, loop.policy
    rate = spec.rate if spec else None
    numbers = (loop_width(loop), rate.max if rate else None, rate.per if rate else None)
    reducers = policy.reducers.extra if policy and policy.reducers else ()
    return LoopFacts(
        size,
        loop_mode(loop) == "parallel",
        any(isinstance(number, Scalar) and number.is_template for number in numbers),
        {entry.key.text: entry.value.text for entry in reducers if isinstance(entry.value, Scalar)},
    )


def _keys_read(step: ast.Step, flow: Flow) -> Iterator[str]:
    """Yield the keys of `ctx` that templates of a step may read. A bare name may be one of them (S11)."""
    for scalar, position in _evaluated(step, flow):
        if scalar.is_template and constant_of(scalar) is UNDEFINED:
            for use in names_in(parse_template(scalar.text)).uses:
                if use.name == "ctx":
                    yield from (field.name for field in use.fields[:1])
                elif use.name not in VISIBLE[position]:
                    yield use.name


def _keys_awaited(admit: ast.Admit | None) -> Iterator[str]:
    """Yield the keys of `ctx` that must be there before a gate opens."""
    guards = [rule.when for rule in (admit.rules or ()) if rule.when] if admit else []
    uses = (use for guard in guards if guard.is_template for use in names_in(parse_template(guard.text)).uses)
    paths = {f"ctx.{use.fields[0].name}" for use in uses if use.name == "ctx" and use.fields}
    return (path.removeprefix("ctx.") for path in needed(partial(_admission, admit), paths))


def _evaluated(step: ast.Step, flow: Flow) -> Iterator[tuple[Scalar, TemplatePosition]]:
    yield from _all_of(step)
    for number in flow.reachable:
        point = flow.points[number]
        if point.view is not None:
            yield from _evaluated_by_task(point.view)
        elif not isinstance(point.entry, ast.Task):
            yield from _all_of(point.entry)


def _all_of(struct: ast.Struct) -> Iterator[tuple[Scalar, TemplatePosition]]:
    return ((scalar, placed.key.position) for scalar, placed in placed_scalars(struct))


def _evaluated_by_task(view: TaskView) -> Iterator[tuple[Scalar, TemplatePosition]]:
    """Yield what can be evaluated: inputs if the tool is called, rules that are tried, and what those do that match."""
    called = is_called(view.task)
    if called:
        for entry in inputs_of(view):
            yield from ((scalar, TemplatePosition.TASK_INPUT) for scalar in scalars(entry.value))
    tried = list(tried_rules(view))
    moments = {(id(rule), Moment.RULE) for rule, _ in tried} | {(id(rule), Moment.THEN) for rule, yes in tried if yes}
    for scalar, placed in placed_scalars(view.task):
        rule = placed.rule
        if rule is None:
            if called or placed.key.moment is not Moment.CALL:
                yield scalar, placed.key.position
        elif (id(rule), placed.key.moment) in moments:
            yield scalar, placed.key.position


def _loop_sizes(loops: tuple[ast.Loop, ...]) -> tuple[int | None, ...]:
    found: list[int | None] = []
    for loop in loops:
        found.append(_size(loop.in_))
        if found[-1] == 0:
            break
    return tuple(found)


def _size(collection: Scalar | Sequence | None) -> int | None:
    if isinstance(collection, Sequence):
        return None if any(scalar.is_template for scalar in scalars(collection)) else len(collection.items)
    value = constant_of(collection) if collection else UNDEFINED
    return len(value) if isinstance(value, list | dict) else None


def _admission(admit: ast.Admit | None, facts: Facts = NO_FACTS) -> Formula:
    """Return the gate's formula: the first rule that matches decides, and without one nothing is admitted (S30)."""
    formula: Formula = admit is None
    for rule in reversed((admit.rules or ()) if admit else ()):
        formula = if_(True if rule.else_ else guard_formula(rule.when, facts), rule.allows, formula)
    return formula


_VISITS_MAX = 500_000
"""Steps visited for one playbook; searches beyond that find nothing, so that every playbook is linted quickly."""


class Without:
    """Searches in one net; one search serves all readers of the same value."""

    def __init__(self, found: SourceNet) -> None:
        self._found = found
        self._visits_left = _VISITS_MAX
        self._numbers = {step.name: step.index for step in found.net.steps}
        self._known: dict[str, dict[int, NetArc | None]] = {}

    def steps(self, value: str, writers: set[int], reader: str) -> list[int] | None:
        """Return a path from the entry to a step on which no writer runs and no gate waits for one; None if none."""
        steps = self._found.net.steps
        return self._way(value, reader, lambda arc: arc.source not in writers and value not in steps[arc.target].awaits)

    def arcs(self, value: str, givers: set[tuple[int, int]], reader: str) -> list[int] | None:
        """Return a path from the entry to a step that takes none of these arcs; None if there is none."""
        return self._way(value, reader, lambda arc: (arc.source, arc.index) not in givers)

    def _way(self, value: str, reader: str, is_free: Callable[[NetArc], bool]) -> list[int] | None:
        if value not in self._known:
            self._known[value] = self._search(is_free)
        first_arcs, end = self._known[value], self._numbers[reader]
        if end not in first_arcs:
            return None
        way = [end]
        arc = first_arcs[end]
        while arc is not None:
            way.append(arc.source)
            arc = first_arcs[arc.source]
        return way[::-1]

    def _search(self, is_free: Callable[[NetArc], bool]) -> dict[int, NetArc | None]:
        entry = self._found.net.entry
        first_arcs: dict[int, NetArc | None] = {entry: None}
        pending = deque([entry])
        while pending and self._visits_left > 0:
            self._visits_left -= 1
            for arc in self._found.reach.paths.onward[pending.popleft()]:
                if arc.target not in first_arcs and is_free(arc):
                    first_arcs[arc.target] = arc
                    pending.append(arc.target)
        return first_arcs


class Precedence:
    """Whether one step can have run before another; where the net does not decide it, it can."""

    def __init__(self, found: SourceNet | None) -> None:
        # With one token there is one order. Several tokens can overtake each other in any way.
        self._found = None if found is None or any(step.inclusive for step in found.net.steps) else found
        self._numbers = {step.name: step.index for step in found.net.steps} if found else {}
        self._after: dict[int, set[int]] = {}
        self._visits_left = _VISITS_MAX

    def can_precede(self, earlier: str, later: str) -> bool:
        """True if a run of `earlier` can be over when a run of `later` begins."""
        if self._found is None or self._numbers[later] == self._found.net.final or self._visits_left <= 0:
            return True
        start = self._numbers[earlier]
        if start not in self._after:
            onward = self._found.reach.paths.onward
            self._after[start] = set()
            for arc in onward[start]:
                if arc.target not in self._after[start]:
                    self._after[start] |= self._found.reach.paths.first_arcs(arc.target).keys()
            self._visits_left -= len(self._after[start])
        return self._numbers[later] in self._after[start]
