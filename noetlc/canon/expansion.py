"""One step's pipeline as a flat list of labelled tasks: labels, workbook calls, sugar and effective specs."""

from __future__ import annotations

from collections.abc import Mapping

from noetlc.canon import sugar
from noetlc.canon.allowance import Allowance, require_few_calls
from noetlc.canon.arguments import Arguments
from noetlc.canon.flow import flow_of
from noetlc.canon.layering import Knobs, effective_knobs
from noetlc.canon.reach import without_dead_flow
from noetlc.canon.refusal import Refusal
from noetlc.canon.rewriting import rewritten_block, rewritten_task, with_policy
from noetlc.canon.steadiness import require_steady
from noetlc.canon.synthesis import task as labelled_task
from noetlc.canon.synthesis import task_spec
from noetlc.syntax import ast, nodes
from noetlc.syntax.nodes import Scalar
from noetlc.syntax.span import Span
from noetlvm.record import Record


class Origin(Record):
    """What the author wrote for a canonical task."""

    construct: str
    """`task fetch`, `choose`, `while`, `until`, or `workbook save` for what the workbook's `save` was put in for."""
    span: Span
    call: Span | None = None
    """For what a workbook call was replaced by: the call."""


class Setting(Record):
    """What a list of entries is expanded in."""

    arguments: Arguments
    layers: tuple[Knobs, ...]
    caller: str = ""
    """The label of the workbook call that the list is put in for; empty for a step's own."""
    is_lone: bool = False
    """The list is one task without a label, and goes by the caller's."""
    workbook_task: str = ""
    call: Span | None = None
    policy: ast.TaskPolicy | None = None
    """The call's own policy, for the one task that it stands for; its names and labels are the caller's."""
    path: tuple[str, ...] = ()
    """The workbook tasks that are being put in, outermost first."""

    def label(self, local: str) -> str:
        """Return the canonical form of a label."""
        if not self.caller:
            return local
        return self.caller if self.is_lone else f"{self.caller}.{local}"

    def origin(self, construct: str, span: Span) -> Origin:
        return Origin(f"workbook {self.workbook_task}" if self.workbook_task else construct, span, self.call)


class Pipeline(Record):
    """A step's tasks in canonical form."""

    tasks: tuple[ast.Task, ...]
    origins: Mapping[str, Origin]
    """By label."""


def expand_pipeline(
    entries: tuple[ast.PipelineEntry, ...],
    workbook: Mapping[str, ast.WorkbookTask],
    layers: tuple[Knobs, ...],
    allowance: Allowance,
) -> Pipeline:
    """Return a step's entries as labelled tasks."""
    expansion = _Expansion(workbook, allowance)
    expansion.entries(entries, "", Setting(Arguments(allowance), layers))
    tasks = without_dead_flow(expansion.tasks)
    return Pipeline(tasks, {name: expansion.origins[name] for name in map(_label, tasks)})


class _Expansion:
    def __init__(self, workbook: Mapping[str, ast.WorkbookTask], allowance: Allowance) -> None:
        self.workbook = workbook
        self.allowance = allowance
        self.tasks: list[ast.Task] = []
        self.origins: dict[str, Origin] = {}

    def entries(self, entries: tuple[ast.PipelineEntry, ...], prefix: str, setting: Setting) -> None:
        """Expand one list; `prefix` stands before the labels that are generated in it."""
        counts = {"choose": 0, "while": 0, "until": 0}
        for position, entry in enumerate(entries, 1):
            if isinstance(entry, ast.Task):
                self._task(entry, entry.label.text if entry.label else f"{prefix}task_{position}", setting)
                continue
            word = sugar.word_of(entry)
            counts[word] += 1
            self._block(entry, f"{prefix}{word}_{counts[word]}", setting)

    def _block(self, block: ast.Choose | ast.Repeat, local: str, setting: Setting) -> None:
        origin = setting.origin(sugar.word_of(block), block.span)
        label = setting.label(local)
        rewritten = rewritten_block(block, setting.arguments) if setting.caller else block
        for piece in sugar.expand(rewritten, label):
            if isinstance(piece, sugar.Body):
                self.entries(piece.entries, local + piece.prefix.removeprefix(label), setting)
            else:
                self._emit(piece, origin)

    def _task(self, written: ast.Task, local: str, setting: Setting) -> None:
        label = setting.label(local)
        task = rewritten_task(written, setting.arguments, setting.label) if setting.caller else written
        if setting.policy:
            task = with_policy(task, setting.policy)
        if task.kind and task.kind.text == "workbook":
            self._call(task, label, setting)
            return
        origin = setting.origin(f"task {label}", task.span)
        if flow_of(task) is not None:
            self._emit(labelled_task(task, label=label, spec=task.spec), origin)
            return
        policy = task.spec.policy if task.spec else None
        span = task.spec.span if task.spec else task.span
        spec = task_spec(span, effective_knobs(task, setting.layers), policy)
        self._emit(labelled_task(task, label=label, spec=spec), origin)

    def _call(self, call: ast.Task, label: str, setting: Setting) -> None:
        """Put the tasks of the workbook in place of a call."""
        name, entries = self._called(call, setting)
        arguments = setting.arguments.overlaid(_given(call))
        require_steady(entries, arguments, self.workbook)
        is_lone = len(entries) == 1 and isinstance(entries[0], ast.Task) and entries[0].label is None
        inner = Setting(
            arguments=arguments,
            layers=(*setting.layers, call.spec.extra if call.spec else ()),
            caller=label,
            is_lone=is_lone,
            workbook_task=name,
            call=setting.call or call.span,
            policy=_policy_for(entries, call),
            path=(*setting.path, name),
        )
        if not is_lone:
            self._emit(sugar.mark(call.span, label), Origin(f"workbook {name}", call.span, inner.call))
        self.entries(entries, "", inner)

    def _called(self, call: ast.Task, setting: Setting) -> tuple[str, tuple[ast.PipelineEntry, ...]]:
        named = call.get_extra("task")
        if not isinstance(named, Scalar) or named.is_template or named.text not in self.workbook:
            raise Refusal(
                "P107",
                call.span,
                "this call names no task of the workbook",
                "write `task:` and a name of `workbook.tasks`",
            )
        if named.text in setting.path:
            cycle = " → ".join((*setting.path, named.text))
            raise Refusal(
                "P108", named.span, f"the workbook task contains itself: {cycle}", "break the cycle at one of its calls"
            )
        require_few_calls(setting.path, named.span)
        return named.text, self.workbook[named.text].entries

    def _emit(self, task: ast.Task, origin: Origin) -> None:
        label = _label(task)
        if label in self.origins:
            help = "give the task that you labelled so another label"
            raise Refusal(
                "P116", task.key_span("kind"), f"two places of the pipeline would have the label `{label}`", help
            )
        if origin.call:
            self.allowance.take_task(origin.call)
        self.origins[label] = origin
        self.tasks.append(task)


def _label(task: ast.Task) -> str:
    assert task.label is not None  # every task gets one before it is emitted
    return task.label.text


def _given(call: ast.Task) -> nodes.Mapping | None:
    given = call.get_extra("args")
    if given is None or isinstance(given, nodes.Mapping):
        return given
    if isinstance(given, Scalar) and given.value is None:
        return None
    raise Refusal(
        "P117", given.span, "the arguments of a workbook call must be written out", "write `args:` as a mapping"
    )


def _policy_for(entries: tuple[ast.PipelineEntry, ...], call: ast.Task) -> ast.TaskPolicy | None:
    """Return the policy of a call, which the one task that it stands for gets."""
    policy = call.spec.policy if call.spec else None
    if policy is None:
        return None
    first = entries[0] if len(entries) == 1 else None
    if not isinstance(first, ast.Task):
        help = "put the policy on a task of the list, or call a workbook task that is a single one"
        raise Refusal("P119", policy.span, "a list of tasks has no outcome of its own for this policy to judge", help)
    if first.spec and first.spec.policy:
        help = "keep one of the two policies"
        raise Refusal("P119", policy.span, "both the call and the task of the workbook have a policy", help)
    return policy
