"""The playbook's syntax tree: one frozen record for each object of `grammar/playbook.lark`.

An attribute has the name of its YAML key (with an underscore where Python reserves the word) and is None where the
key is absent. Values that are data stay YAML nodes. `keys` holds the place of each key, in the order written.
"""

from __future__ import annotations

import keyword
from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

from noetlc.syntax import nodes
from noetlc.syntax.nodes import MappingEntry, Node, Scalar
from noetlc.syntax.span import Span
from noetlvm.record import Record


class Struct(Record):
    """Base of all objects."""

    span: Span
    keys: Mapping[str, Span] = MappingProxyType({})
    extra: tuple[MappingEntry, ...] = ()
    """Fields of an open object that the grammar has no word for: inputs, settings, descriptions."""

    def key_span(self, key: str) -> Span:
        """Return the place of a key, or the object's beginning where the key is absent."""
        return self.keys.get(key) or Span(self.span.start, min(self.span.start + 1, self.span.end))

    def get_extra(self, key: str) -> Node | None:
        """Return the value of an open field, or None."""
        for entry in self.extra:
            if entry.key.text == key:
                return entry.value
        return None


class Metadata(Struct):
    """The name of the playbook and its path in the catalogue."""

    name: Scalar | None = None
    path: Scalar | None = None


class Credential(Struct):
    """One keychain entry."""

    name: Scalar | None = None
    kind: Scalar | None = None


class ExecutorDefaults(Struct):
    """Default timeouts and resources."""

    timeouts: nodes.Mapping | None = None
    resources: nodes.Mapping | None = None


class ExecutorResults(Struct):
    """How results are stored."""

    reference_first: Scalar | None = None


class LimitSettings(Struct):
    """Limits of one execution."""

    max_payload_bytes: Scalar | None = None
    max_transitions: Scalar | None = None
    max_step_runs: Scalar | None = None
    max_children: Scalar | None = None


class ExecutorPolicy(Struct):
    """Defaults for the whole playbook."""

    defaults: ExecutorDefaults | None = None
    results: ExecutorResults | None = None
    limits: LimitSettings | None = None
    placement: Node | None = None
    cost: Node | None = None
    backends: Node | None = None


class ExecutorSpec(Struct):
    """Settings that apply to every step and task unless an inner spec overrides them."""

    entry_step: Scalar | None = None
    final_step: Scalar | None = None
    no_next_is_error: Scalar | None = None
    unguarded_arcs: Scalar | None = None
    limits: LimitSettings | None = None
    policy: ExecutorPolicy | None = None


class Executor(Struct):
    """Runtime profile and defaults."""

    profile: Scalar | None = None
    version: Scalar | None = None
    spec: ExecutorSpec | None = None


class AdmitThen(Struct):
    """The decision of an admission rule."""

    allow: Scalar | None = None


class AdmitElse(Struct):
    """The decision if no rule before it matched."""

    then: AdmitThen | None = None


class AdmitRule(Struct):
    when: Scalar | None = None
    then: AdmitThen | None = None
    else_: AdmitElse | None = None

    @property
    def allows(self) -> bool:
        """Whether it admits a token, from `then` or `else`; one without `allow` is reported."""
        then = self.else_.then if self.else_ else self.then
        return then is not None and (then.allow is None or then.allow.value is True)


class Admit(Struct):
    """A step's admission gate."""

    mode: Scalar | None = None
    on_deny: Scalar | None = None
    rules: tuple[AdmitRule, ...] | None = None


class Lifecycle(Struct):
    """Time limits of a step run."""

    timeout_s: Scalar | None = None
    deadline_s: Scalar | None = None


class Failure(Struct):
    """How a failed iteration affects the step."""

    mode: Scalar | None = None


class Emit(Struct):
    """Further events to emit."""

    events: nodes.Sequence | None = None


class StepPolicy(Struct):
    """Admission and lifecycle of a step; no control directives."""

    admit: Admit | None = None
    lifecycle: Lifecycle | None = None
    failure: Failure | None = None
    emit: Emit | None = None
    tracing: Node | None = None
    quotas: Node | None = None
    compensation: Node | None = None


class StepSpec(Struct):
    """A step's settings."""

    policy: StepPolicy | None = None


class Reducers(Struct):
    """How writes of parallel iterations to one ctx key are combined, in `extra`: key to reducer name."""


class LoopPolicy(Struct):
    """How iterations are scheduled."""

    exec: Scalar | None = None
    mode: Scalar | None = None
    max_in_flight: Scalar | None = None
    reducers: Reducers | None = None
    ordering: Node | None = None
    backpressure: Node | None = None
    partitioning: Node | None = None


class Rate(Struct):
    """How many iterations of a loop begin in a time (S53)."""

    max: Scalar | None = None
    per: Scalar | None = None


class LoopSpec(Struct):
    """Mode and width of a loop."""

    mode: Scalar | None = None
    max_in_flight: Scalar | None = None
    rate: Rate | None = None
    policy: LoopPolicy | None = None


class Loop(Struct):
    """Runs the step's pipeline once for each element; may hold an inner loop."""

    in_: Scalar | nodes.Sequence | None = None
    iterator: Scalar | None = None
    spec: LoopSpec | None = None
    loop: Loop | None = None

    @property
    def policy(self) -> LoopPolicy | None:
        return self.spec.policy if self.spec else None


class Then(Struct):
    """What a policy rule does."""

    do: Scalar | None = None
    attempts: Scalar | None = None
    backoff: Scalar | None = None
    delay: Scalar | None = None
    to: Scalar | None = None
    set_iter: nodes.Mapping | None = None
    set_ctx: nodes.Mapping | None = None


class RuleElse(Struct):
    """What happens when no rule before it matched."""

    then: Then | None = None


class PolicyRule(Struct):
    when: Scalar | None = None
    then: Then | None = None
    else_: RuleElse | None = None

    @property
    def action(self) -> Then | None:
        """What it does: its `then`, or that of `else`."""
        return self.else_.then if self.else_ else self.then

    @property
    def skips(self) -> bool:
        then = self.action
        return bool(then and then.do and then.do.text == "skip")


class TaskPolicy(Struct):
    """Maps a task's outcome to a directive."""

    mode: Scalar | None = None
    on_unmatched: Scalar | None = None
    before: nodes.Sequence | None = None
    after: nodes.Sequence | None = None
    finally_: nodes.Sequence | None = None
    rules: tuple[PolicyRule, ...] | None = None


class TaskSpec(Struct):
    """A task's settings (in `extra`) and its policy."""

    policy: TaskPolicy | None = None


class Task(Struct):
    """One tool call. Its inputs are in `extra`. The label is a map key or `name`; without one it is generated."""

    label: Scalar | None = None
    kind: Scalar | None = None
    desc: Scalar | None = None
    spec: TaskSpec | None = None

    @property
    def tool_kind(self) -> str:
        """The name of its tool, or an empty text."""
        return self.kind.text if self.kind else ""

    @property
    def settings(self) -> tuple[nodes.MappingEntry, ...]:
        return self.spec.extra if self.spec else ()

    @property
    def policy(self) -> TaskPolicy | None:
        return self.spec.policy if self.spec else None

    @property
    def is_flow(self) -> bool:
        """Whether it is part of an expanded `choose`, `while` or `until`: it calls no tool."""
        return self.spec is not None and self.spec.get_extra("flow") is not None

    @property
    def rules(self) -> tuple[PolicyRule, ...]:
        """The policy's rules; empty where there is no policy."""
        policy = self.policy
        return (policy.rules or ()) if policy else ()


class BranchElse(Struct):
    """The branch taken when no other is."""

    then: tuple[PipelineEntry, ...] | None = None


class Branch(Struct):
    when: Scalar | None = None
    then: tuple[PipelineEntry, ...] | None = None
    else_: BranchElse | None = None


class Choose(Struct):
    """Takes the first branch that holds."""

    choose: tuple[Branch, ...] = ()

    @property
    def word(self) -> Literal["choose"]:
        return "choose"


class Repeat(Struct):
    """`while` tests before each round, `until` after each."""

    word: Literal["while", "until"] = "while"
    when: Scalar | None = None
    max: Scalar | None = None
    delay: Scalar | None = None
    """Seconds between two rounds (S53)."""
    do: tuple[PipelineEntry, ...] | None = None


PipelineEntry: TypeAlias = Task | Choose | Repeat
PIPELINE_ENTRIES = (Task, Choose, Repeat)


class Arc(Struct):
    """One way out of a step."""

    step: Scalar | None = None
    when: Scalar | None = None
    args: nodes.Mapping | None = None
    spec: nodes.Mapping | None = None


class RouterPolicy(Struct):
    """Routing hints."""

    priority: Node | None = None
    dedupe: Node | None = None
    partitioning: Node | None = None


class RouterSpec(Struct):
    """How many arcs fire."""

    mode: Scalar | None = None
    policy: RouterPolicy | None = None


class Router(Struct):
    """Where tokens go after the step."""

    spec: RouterSpec | None = None
    arcs: tuple[Arc, ...] | None = None


class Step(Struct):
    """A transition of the net: gate, pipeline, router."""

    step: Scalar | None = None
    desc: Scalar | None = None
    spec: StepSpec | None = None
    loop: Loop | None = None
    tool: tuple[PipelineEntry, ...] | None = None
    next: Router | None = None

    @property
    def name(self) -> str:
        return self.step.text if self.step else ""

    @property
    def policy(self) -> StepPolicy | None:
        return self.spec.policy if self.spec else None

    @property
    def loops(self) -> tuple[Loop, ...]:
        """The loop and its inner loops, outermost first."""
        found, loop = [], self.loop
        while loop is not None:
            found.append(loop)
            loop = loop.loop
        return tuple(found)

    @property
    def lifecycle(self) -> Lifecycle | None:
        return self.policy.lifecycle if self.policy else None

    @property
    def admission_rules(self) -> tuple[AdmitRule, ...]:
        admit = self.policy.admit if self.policy else None
        return (admit.rules or ()) if admit else ()

    @property
    def arcs(self) -> tuple[Arc, ...]:
        return (self.next.arcs or ()) if self.next else ()

    @property
    def is_inclusive(self) -> bool:
        """Whether all arcs that hold are taken, not only the first."""
        mode = self.next.spec.mode if self.next and self.next.spec else None
        return mode is not None and mode.text == "inclusive"


class WorkbookTask(Record):
    """A named task or list of tasks that steps can use."""

    name: Scalar
    entries: tuple[PipelineEntry, ...]


class Workbook(Struct):
    """Reusable tasks."""

    tasks: tuple[WorkbookTask, ...] | None = None


class Playbook(Struct):
    """The whole document."""

    api_version: Scalar | None = None
    kind: Scalar | None = None
    metadata: Metadata | None = None
    keychain: tuple[Credential, ...] | None = None
    executor: Executor | None = None
    workload: nodes.Mapping | None = None
    workflow: tuple[Step, ...] | None = None
    workbook: Workbook | None = None

    @property
    def executor_spec(self) -> ExecutorSpec | None:
        return self.executor.spec if self.executor else None

    @property
    def shared_tasks(self) -> tuple[WorkbookTask, ...]:
        """The tasks of the workbook."""
        return (self.workbook.tasks or ()) if self.workbook else ()

    @property
    def all_tasks(self) -> Iterator[Task]:
        """Every task, the steps' and the workbook's, those inside sugar included."""
        for entries in (
            *(step.tool or () for step in self.workflow or ()),
            *(one.entries for one in self.shared_tasks),
        ):
            yield from nested_tasks(entries)


def attribute(key: str) -> str:
    """Return the attribute that holds a YAML key."""
    if key == "apiVersion":
        return "api_version"
    return f"{key}_" if keyword.iskeyword(key) else key


def yaml_key(attribute: str) -> str:
    """Return the YAML key that an attribute holds; the inverse of `attribute`."""
    return "apiVersion" if attribute == "api_version" else attribute.rstrip("_")


def nested_tasks(entries: tuple[PipelineEntry, ...]) -> Iterator[Task]:
    """Yield every task of a pipeline, those inside sugar included, in the order written."""
    for entry in entries:
        if isinstance(entry, Task):
            yield entry
            continue
        for body in bodies(entry):
            yield from nested_tasks(body)


def nested_blocks(entries: tuple[PipelineEntry, ...]) -> Iterator[Choose | Repeat]:
    """Yield every block of a pipeline, those inside others included, in the order written."""
    for entry in entries:
        if not isinstance(entry, Task):
            yield entry
            for body in bodies(entry):
                yield from nested_blocks(body)


def bodies(block: Choose | Repeat) -> Iterator[tuple[PipelineEntry, ...]]:
    """Yield the task lists inside a sugar block."""
    for _, body in named_bodies(block):
        yield body


def named_bodies(block: Choose | Repeat) -> Iterator[tuple[str, tuple[PipelineEntry, ...]]]:
    """Yield the task lists inside a sugar block, each with its part of the labels generated in it (S40)."""
    if isinstance(block, Repeat):
        yield "do", block.do or ()
        return
    for number, branch in enumerate(block.choose, 1):
        if branch.then is not None or branch.else_ is None:
            yield f"when_{number}", branch.then or ()
        if branch.else_:
            yield "else", branch.else_.then or ()


def labelled(entries: tuple[PipelineEntry, ...], prefix: str = "") -> Iterator[tuple[PipelineEntry, str]]:
    """Yield each entry of a list with its label: the written one, or one generated from its position (S5, S40).

    Lint, jumps, the canonical form and the bundle all take their labels from here. `prefix` is the list's own:
    empty for a step's list, `choose_1.when_2.` for the list inside a branch.
    """
    counts: Counter[str] = Counter()
    for position, entry in enumerate(entries, 1):
        if isinstance(entry, Task):
            yield entry, entry.label.text if entry.label else f"{prefix}task_{position}"
        else:
            counts[entry.word] += 1
            yield entry, f"{prefix}{entry.word}_{counts[entry.word]}"
