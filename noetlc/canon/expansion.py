"""One step's pipeline as a flat list of labelled tasks: labels, workbook calls, sugar and effective specs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias, TypeVar

from noetlc.analysis.placement import placing_settings
from noetlc.analysis.workbook_calls import ReadLabel, is_lone, read_labels
from noetlc.canon.arguments import ARGS, ArgumentInliner, Arguments, reads
from noetlc.canon.errors import CALLS_DEPTH_MAX, ExpansionBudget, ExpansionError, require_few_calls, require_short
from noetlc.canon.flow import (
    FLOW,
    Body,
    entry,
    expand,
    flow_of,
    labelled_task,
    mark,
    scalar,
    with_policy,
    with_settings,
    without_dead_flow,
)
from noetlc.canon.stability import require_stable
from noetlc.syntax import ast, nodes
from noetlc.syntax import template_ast as t
from noetlc.syntax.nodes import MappingEntry, Node, Scalar, Sequence
from noetlc.syntax.span import Span
from noetlc.syntax.template_printer import print_expression
from noetlvm.language.tool_kinds import find_kind
from noetlvm.record import Record, changed

AnyEntry = TypeVar("AnyEntry", ast.Task, ast.Choose, ast.Repeat, ast.Choose | ast.Repeat)


class TaskOrigin(Record):
    """What the author wrote for a canonical task."""

    construct: str
    """`task fetch`, `choose`, `while`, `until`, or `workbook save` for a task that replaces a call of `save`."""
    span: Span
    call: Span | None = None
    """The workbook call that the task replaces."""


class ExpansionContext(Record):
    """Arguments, spec layers and label prefix in force while one entry list is expanded."""

    arguments: Arguments
    layers: tuple[SpecSettings, ...]
    caller: str = ""
    """The label of the workbook call that the list replaces; empty for a step's own list."""
    is_lone: bool = False
    """The list is one task without a label, which gets the caller's."""
    workbook_task: str = ""
    call: Span | None = None
    called_at: Scalar | None = None
    """The label of the call, if it has one, else its kind: where a task stands that gets the caller's label."""
    policy: ast.TaskPolicy | None = None
    """The call's own policy, for the one task that replaces it; its names and labels are the caller's."""
    path: tuple[str, ...] = ()
    """The workbook tasks that are being inlined, outermost first."""

    def label(self, local: str) -> str:
        if not self.caller:
            return local
        return self.caller if self.is_lone else f"{self.caller}.{local}"

    def inlined(self, entry: AnyEntry) -> AnyEntry:
        """Return an entry with the call's arguments and canonical labels; entries inside it are expanded later."""
        if not self.caller and self.arguments.is_empty:
            return entry
        return ArgumentInliner(self.arguments, self.label).rewrite(entry)

    def origin(self, construct: str, span: Span) -> TaskOrigin:
        return TaskOrigin(f"workbook {self.workbook_task}" if self.workbook_task else construct, span, self.call)


class ExpandedPipeline(Record):
    """A step's tasks in canonical form."""

    tasks: tuple[ast.Task, ...]
    origins: Mapping[str, TaskOrigin]
    """By label."""


def expand_pipeline(
    entries: tuple[ast.PipelineEntry, ...],
    workbook: Mapping[str, ast.WorkbookTask],
    layers: tuple[SpecSettings, ...],
    budget: ExpansionBudget,
    hiding: frozenset[str] = frozenset(),
) -> ExpandedPipeline:
    """Return a step's entries as labelled tasks. `hiding` has the names that win over a label (S48)."""
    expansion = _Expansion(workbook, budget, hiding)
    arguments = Arguments(budget, labels=expansion.labels(entries, ""), hiding=hiding)
    expansion.entries(entries, "", ExpansionContext(arguments, layers))
    tasks = without_dead_flow(expansion.tasks)
    return ExpandedPipeline(tasks, {name: expansion.origins[name] for name in map(_label, tasks)})


class _Expansion:
    def __init__(
        self, workbook: Mapping[str, ast.WorkbookTask], budget: ExpansionBudget, hiding: frozenset[str]
    ) -> None:
        self.workbook = workbook
        self.hiding = hiding
        self.budget = budget
        self.tasks: list[ast.Task] = []
        self.origins: dict[str, TaskOrigin] = {}
        self._least: dict[str, int] = {}

    def labels(self, entries: tuple[ast.PipelineEntry, ...], caller: str) -> dict[str, ReadLabel]:
        """Return what the labels of a list stand for, if templates of the list must be rewritten to read them."""
        found = read_labels(entries, self.workbook, caller) if self.workbook else {}
        return {name: read for name, read in found.items() if read != ReadLabel(name, name) and name not in self.hiding}

    def entries(self, entries: tuple[ast.PipelineEntry, ...], prefix: str, context: ExpansionContext) -> None:
        """Expand one list; `prefix` begins the labels that are generated in it."""
        for item, label in ast.labelled(entries, prefix):
            if isinstance(item, ast.Task):
                self._task(item, label, context)
            else:
                self._block(item, label, context)

    def _block(self, block: ast.Choose | ast.Repeat, local: str, context: ExpansionContext) -> None:
        origin = context.origin(block.word, block.span)
        for expanded in expand(context.inlined(block), context.label(local)):
            if isinstance(expanded, Body):
                self.entries(expanded.entries, f"{local}.{expanded.name}.", context)
            else:
                self._emit(expanded, origin)

    def _task(self, written: ast.Task, local: str, context: ExpansionContext) -> None:
        label = context.label(local)
        task = context.inlined(written)
        if context.is_lone and not _reads_arguments(written, context.arguments):
            task = _with_arguments(task, context.arguments)
        if context.policy:
            task = with_policy(task, context.policy)
        if task.kind and task.kind.text == "workbook":
            self._call(task, label, context)
            return
        origin = context.origin(f"task {label}", task.span)
        spec = task.spec
        if flow_of(task) is None:
            spec = with_settings(task.spec, task.span, effective_settings(task, context.layers))
        made = labelled_task(task, label, spec)
        if context.is_lone and context.called_at:
            made = changed(made, label=scalar(context.called_at.span, label))
        self._emit(made, origin)

    def _call(self, call: ast.Task, label: str, context: ExpansionContext) -> None:
        name, entries = self._called(call, context)
        if not context.call:
            self.budget.require_tasks(self._least_tasks(name, 0), call.span)
        arguments = context.arguments.overlaid(_given(call))
        require_stable(entries, arguments, self.workbook, label)
        lone = is_lone(entries)
        labels = {} if lone else self.labels(entries, label)
        inner = ExpansionContext(
            arguments=changed(arguments, labels=labels),
            layers=(*context.layers, call.settings),
            caller=label,
            is_lone=lone,
            workbook_task=name,
            call=context.call or call.span,
            called_at=(context.called_at if context.is_lone else None) or call.label or call.kind,
            policy=_policy_for(entries, call),
            path=(*context.path, name),
        )
        if not lone:
            self._emit(mark(call.span, label), TaskOrigin(f"workbook {name}", call.span, inner.call))
        self.entries(entries, "", inner)

    def _called(self, call: ast.Task, context: ExpansionContext) -> tuple[str, tuple[ast.PipelineEntry, ...]]:
        named = call.get_extra("task")
        if not isinstance(named, Scalar) or named.is_template or named.text not in self.workbook:
            raise ExpansionError(
                "P107",
                call.span,
                "this call names no task of the workbook",
                "write `task:` and a name of `workbook.tasks`",
            )
        if named.text in context.path:
            cycle = " → ".join((*context.path, named.text))
            raise ExpansionError(
                "P108", named.span, f"the workbook task contains itself: {cycle}", "break the cycle at one of its calls"
            )
        require_few_calls(context.path, named.span)
        return named.text, self.workbook[named.text].entries

    def _least_tasks(self, name: str, depth: int) -> int:
        """Return how many tasks a call makes at least: without its blocks, and nothing for a call that is an error."""
        if name not in self.workbook or depth > CALLS_DEPTH_MAX:
            return 0
        if name not in self._least:
            self._least[name] = 0  # what it has inside itself is an error
            tasks = [entry for entry in self.workbook[name].entries if isinstance(entry, ast.Task)]
            self._least[name] = sum(self._least_of(task, depth) for task in tasks)
        return self._least[name]

    def _least_of(self, task: ast.Task, depth: int) -> int:
        if not task.kind or task.kind.text != "workbook":
            return 1
        called = task.get_extra("task")
        return self._least_tasks(called.text, depth + 1) if isinstance(called, Scalar) else 0

    def _emit(self, task: ast.Task, origin: TaskOrigin) -> None:
        label = _label(task)
        if label in self.origins:
            help = "give your task another label"
            raise ExpansionError(
                "P116", task.key_span("kind"), f"two tasks of the pipeline would have the label `{label}`", help
            )
        require_short(label, origin.call or task.span)
        if origin.call:
            self.budget.take_task(origin.call)
        self.origins[label] = origin
        self.tasks.append(task)


def _label(task: ast.Task) -> str:
    assert task.label is not None  # every task gets one before it is emitted
    return task.label.text


def _reads_arguments(task: ast.Task, arguments: Arguments) -> bool:
    uses = (use for item in task.extra for use in reads(item.value))
    return any(use.name == ARGS or use.name in arguments.given for use in uses)


def _with_arguments(task: ast.Task, arguments: Arguments) -> ast.Task:
    """Return a task that is called like a function: one that takes `args` and has none gets those of the call."""
    kind = find_kind(task.kind.text) if task.kind else None
    if kind is None or kind.input(ARGS) is None or kind.name == "workbook" or not arguments.given:
        return task
    if task.get_extra(ARGS) is not None:
        return task
    given = entry(task.span, ARGS, dict(arguments.given))
    return changed(task, keys={**task.keys, ARGS: task.span}, extra=(*task.extra, given))


def _given(call: ast.Task) -> nodes.Mapping | None:
    given = call.get_extra("args")
    if given is None or isinstance(given, nodes.Mapping):
        return given
    if isinstance(given, Scalar) and given.value is None:
        return None
    raise ExpansionError(
        "P117", given.span, "the arguments of a workbook call must be written out", "write `args:` as a mapping"
    )


def _policy_for(entries: tuple[ast.PipelineEntry, ...], call: ast.Task) -> ast.TaskPolicy | None:
    policy = call.policy
    if policy is None:
        return None
    first = entries[0] if len(entries) == 1 else None
    if not isinstance(first, ast.Task):
        help = "put the policy on a task of the list, or call a workbook task that is a single one"
        raise ExpansionError(
            "P119", policy.span, "a list of tasks has no outcome of its own for this policy to judge", help
        )
    if first.policy:
        help = "keep one of the two policies"
        raise ExpansionError("P119", policy.span, "both the call and the task of the workbook have a policy", help)
    return policy


SpecSettings: TypeAlias = tuple[MappingEntry, ...]


def outer_layers(playbook: ast.Playbook, step: ast.Step) -> tuple[SpecSettings, ...]:
    """Return the settings around a step's tasks, outermost first."""
    executor = _inner_settings(playbook.executor_spec)
    literal = tuple(MappingEntry(setting.key, _literal(setting.value)) for setting in executor)
    return (literal, _inner_settings(step.spec), *(_inner_settings(loop.spec) for loop in step.loops))


def _inner_settings(spec: ast.Struct | None) -> SpecSettings:
    """Return the settings of a `spec` around tasks that are for them."""
    placing = placing_settings(spec) if spec else ()
    return tuple(setting for setting in spec.extra if setting not in placing) if spec else ()


def effective_settings(task: ast.Task, outer: Iterable[SpecSettings]) -> SpecSettings:
    """Return a task's effective settings, its kind's defaults first."""
    kind = task.tool_kind
    merged: dict[str, MappingEntry] = {}
    for layer in (
        _defaults(kind, task.key_span("kind")),
        *_for_kind(kind, outer),
        task.settings,
    ):
        _lay_over(merged, layer)
    return tuple(merged.values())


def _defaults(kind: str, span: Span) -> SpecSettings:
    found = find_kind(kind) if kind else None
    settings = found.settings if found else ()
    return tuple(entry(span, setting.name, setting.default) for setting in settings if setting.default is not None)


def _for_kind(kind: str, outer: Iterable[SpecSettings]) -> Iterator[SpecSettings]:
    """Yield each outer scope as two layers: settings of every task, then settings of this kind of task."""
    for layer in outer:
        yield tuple(setting for setting in layer if setting.key.text != FLOW and not _is_scoped(setting))
        for setting in layer:
            if setting.key.text == kind and isinstance(setting.value, nodes.Mapping):
                yield setting.value.entries


def _is_scoped(setting: MappingEntry) -> bool:
    return isinstance(setting.value, nodes.Mapping) and find_kind(setting.key.text) is not None


def _lay_over(merged: dict[str, MappingEntry], layer: Iterable[MappingEntry]) -> None:
    for setting in layer:
        name = setting.key.text
        merged[name] = (
            MappingEntry(setting.key, _merge(merged[name].value, setting.value)) if name in merged else setting
        )


def _merge(outer: Node, inner: Node) -> Node:
    if not (isinstance(outer, nodes.Mapping) and isinstance(inner, nodes.Mapping)):
        return inner
    merged = {item.key.text: item for item in outer.entries}
    _lay_over(merged, inner.entries)
    return nodes.Mapping(inner.span, tuple(merged.values()))


def _literal(node: Node) -> Node:
    """Quote templates: under `executor` nothing is evaluated, and in a task's spec it would be."""
    if isinstance(node, Sequence):
        return Sequence(node.span, tuple(_literal(item) for item in node.items))
    if isinstance(node, nodes.Mapping):
        return nodes.Mapping(node.span, tuple(MappingEntry(item.key, _literal(item.value)) for item in node.entries))
    if not node.is_template:
        return node
    return scalar(node.span, f"{{{{ {print_expression(t.Const(node.span, node.text))} }}}}")
