"""A playbook laid out for checking: steps, tasks with their effective labels, every template with its position.

Built once for a file and read by all rules. It decides nothing and reports nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from noetlc.analysis.names import Access, Definitions, Reading
from noetlc.syntax import ast
from noetlc.syntax.nodes import Mapping, MappingEntry, Scalar
from noetlc.syntax.positions import GUARDS, placed_scalars
from noetlc.syntax.scalar_offsets import Offsets, scalar_offsets, span_through
from noetlc.syntax.span import Problem, Source, Span, holds_any
from noetlc.syntax.template_ast import Template
from noetlc.syntax.template_parser import parse_template
from noetlc.syntax.yaml_reader import Document
from noetlvm.language.scopes import TemplatePosition
from noetlvm.language.tool_kinds import find_kind
from noetlvm.nearest import Suggestions
from noetlvm.record import IdentityRecord, changed

if TYPE_CHECKING:
    from noetlc.analysis.flow import Flow
    from noetlc.analysis.inputs import Respelling
    from noetlc.analysis.label_paths import LabelPaths
    from noetlc.analysis.taint import SecretRead
    from noetlc.analysis.workbook_calls import NamesBeforeLabels


Block: TypeAlias = ast.Choose | ast.Repeat


class Owner(IdentityRecord):
    """What a pipeline belongs to: a step, or an entry of the workbook that any step may use."""

    name: str
    step: ast.Step | None
    entries: tuple[ast.PipelineEntry, ...]

    @property
    def in_workbook(self) -> bool:
        return self.step is None

    @property
    def loops(self) -> tuple[ast.Loop, ...]:
        return self.step.loops if self.step else ()

    @property
    def is_parallel(self) -> bool:
        """Return whether several iterations of the pipeline may run at once."""
        return any(loop_mode(loop) == "parallel" for loop in self.loops)


class TaskView(IdentityRecord):
    task: ast.Task
    label: str
    """The label that jumps and events use: written, or generated from the task's position (S5)."""
    owner: Owner
    blocks: tuple[Block, ...]
    """The sugar blocks around the task, outermost first."""

    @property
    def kind(self) -> str:
        return self.task.tool_kind

    @property
    def name_span(self) -> Span:
        """Where to point when the task itself is meant: its label, else its kind, else its beginning."""
        named = self.task.label or self.task.kind
        return named.span if named else self.task.key_span("")


class Site(IdentityRecord):
    """A scalar that is evaluated, or that a template could stand in, and what surrounds it."""

    scalar: Scalar
    position: TemplatePosition
    role: str
    """The field it belongs to: `when`, `delay`, an input's name, `set_ctx.total`, `args.page`."""
    owner: Owner | None = None
    task: TaskView | None = None
    rule: ast.PolicyRule | None = None
    arc: ast.Arc | None = None
    loop_depth: int = 0
    """How many loops are around it: how far `iter.parent` reaches."""

    @property
    def template(self) -> Template | None:
        return parse_template(self.scalar.text) if self.scalar.is_template else None

    @property
    def is_guard(self) -> bool:
        """Return whether the value is read as true or false."""
        return self.position in GUARDS

    @property
    def input(self) -> str:
        """The name of the task input that the scalar is part of, or an empty string."""
        return self.role.partition(".")[0] if self.position is TemplatePosition.TASK_INPUT else ""


class Model(IdentityRecord, cached=True):
    """One playbook, ready to be checked."""

    source: Source
    document: Document
    playbook: ast.Playbook
    problems: tuple[Problem, ...]
    """What reading and parsing found; each kind has a rule that reports it."""
    allowed_kinds: frozenset[str] = frozenset()
    """Tool kinds that the user's configuration allows besides those that are installed."""
    allow_unknown_kinds: bool = False
    respellings: tuple[Respelling, ...] = ()
    """Names that the author spelled differently; the playbook has the canonical ones."""

    @cached_property
    def _offsets(self) -> dict[Span, Offsets]:
        """For each scalar with findings inside, where its characters stand: found once, however many findings."""
        return {}

    @property
    def steps(self) -> tuple[ast.Step, ...]:
        return self.playbook.workflow or ()

    @cached_property
    def steps_by_name(self) -> dict[str, ast.Step]:
        """Each step by its name; of two with one name, the first."""
        found: dict[str, ast.Step] = {}
        for step in self.steps:
            if step.step:
                found.setdefault(step.step.text, step)
        return found

    @cached_property
    def owners(self) -> tuple[Owner, ...]:
        """Every pipeline: the steps', then the workbook's."""
        owners = [Owner(step.name, step, step.tool or ()) for step in self.steps]
        return (*owners, *(Owner(entry.name.text, None, entry.entries) for entry in self.playbook.shared_tasks))

    @cached_property
    def workbook(self) -> dict[str, Owner]:
        """The workbook's pipelines by name; of two with one name, the last."""
        return {owner.name: owner for owner in self.owners if owner.in_workbook}

    @cached_property
    def names_before_labels(self) -> NamesBeforeLabels:
        """The names that win over labels of tasks."""
        from noetlc.analysis.workbook_calls import NamesBeforeLabels

        return NamesBeforeLabels(self.playbook)

    @cached_property
    def tasks(self) -> tuple[TaskView, ...]:
        """Every task, those inside sugar and the workbook's included."""
        return tuple(view for owner in self.owners for view in _task_views(owner, owner.entries, "", ()))

    @cached_property
    def tasks_by_owner(self) -> dict[Owner, tuple[TaskView, ...]]:
        grouped: dict[Owner, list[TaskView]] = {owner: [] for owner in self.owners}
        for view in self.tasks:
            grouped[view.owner].append(view)
        return {owner: tuple(views) for owner, views in grouped.items()}

    @cached_property
    def labels_by_owner(self) -> dict[Owner, frozenset[str]]:
        return {owner: frozenset(view.label for view in views) for owner, views in self.tasks_by_owner.items()}

    @cached_property
    def suggestions(self) -> Suggestions:
        """What unknown names of this file may mean."""
        return Suggestions()

    @cached_property
    def credentials(self) -> dict[str, ast.Credential]:
        """Keychain entries by name; of two with one name, the first."""
        found: dict[str, ast.Credential] = {}
        for credential in self.playbook.keychain or ():
            if credential.name:
                found.setdefault(credential.name.text, credential)
        return found

    @cached_property
    def workload_keys(self) -> frozenset[str]:
        """The names that `workload` has defaults for."""
        workload = self.playbook.workload
        return frozenset(entry.key.text for entry in workload.entries) if workload else frozenset()

    @cached_property
    def sites(self) -> tuple[Site, ...]:
        """Every scalar that is evaluated, in the order of the pipelines."""
        return tuple(_all_sites(self))

    @cached_property
    def template_sites(self) -> tuple[tuple[Site, Template], ...]:
        """The sites that hold templates, with their parsed templates."""
        found = ((site, template) for site in self.sites if (template := site.template) is not None)
        return tuple((site, _reduced(site, template) if template.problems else template) for site, template in found)

    @cached_property
    def readings(self) -> tuple[Reading, ...]:
        """The templates that are evaluated, each with the names it reads."""
        from noetlc.analysis.names import readings

        return readings(self)

    @cached_property
    def readings_by_owner(self) -> dict[Owner, list[Reading]]:
        grouped: dict[Owner, list[Reading]] = {}
        for reading in self.readings:
            if reading.site.owner is not None:
                grouped.setdefault(reading.site.owner, []).append(reading)
        return grouped

    @cached_property
    def definitions(self) -> Definitions:
        """The names that the playbook defines, for names written without a namespace."""
        from noetlc.analysis.names import definitions

        return definitions(self)

    @cached_property
    def flows(self) -> dict[Owner, Flow]:
        """Where control can go in each pipeline."""
        from noetlc.analysis.flow import build_flow

        return {owner: build_flow(owner, views) for owner, views in self.tasks_by_owner.items()}

    @cached_property
    def _faults(self) -> dict[tuple[str, str], list[int]]:
        found: dict[tuple[str, str], list[int]] = {}
        for problem in self.problems:
            found.setdefault((problem.object, problem.key), []).append(problem.span.start)
        return {place: sorted(offsets) for place, offsets in found.items()}

    def is_reported(self, span: Span, *places: tuple[str, str]) -> bool:
        """True if parsing found a problem inside `span` with one of these, as (object, key), so that it is missing."""
        return any(holds_any(span, self._faults.get(place, [])) for place in places)

    @cached_property
    def secret_reads(self) -> tuple[SecretRead, ...]:
        """The secrets that flow into inputs and patches."""
        from noetlc.analysis.taint import secret_reads

        return secret_reads(self)

    @cached_property
    def mappings_by_key(self) -> dict[Span, Mapping]:
        """The mapping that each key of the document stands in, by the key's place."""
        from noetlc.analysis.inputs import mappings_by_key

        return mappings_by_key(self.document.root)

    def place(self, site: Site, span: Span) -> Span:
        """Return where a span of a site's template stands in the file."""
        offsets = self._offsets.get(site.scalar.span)
        if offsets is None:
            offsets = self._offsets[site.scalar.span] = scalar_offsets(self.source.text, site.scalar)
        return span_through(offsets, span)

    @cached_property
    def ctx_written(self) -> dict[str, dict[str, Scalar]]:
        """For each step, the ctx keys that it may write, each with the position of one such write."""
        return {owner.name: dict(_written(self, owner)) for owner in self.owners if not owner.in_workbook}

    @cached_property
    def ctx_keys(self) -> frozenset[str]:
        """The ctx keys that some step may write."""
        return frozenset(key for keys in self.ctx_written.values() for key in keys)

    @cached_property
    def owners_by_step(self) -> dict[str, Owner]:
        """The pipelines of steps, by the step's name; of two steps with one name, the first."""
        return {owner.name: owner for owner in reversed(self.owners) if owner.step is not None}

    @cached_property
    def label_paths(self) -> LabelPaths:
        from noetlc.analysis.label_paths import LabelPaths

        return LabelPaths(self.document.root)


PARALLEL_WIDTH = 32
"""Iterations of a parallel loop that run at once, where the loop does not specify (S24)."""


def loop_mode(loop: ast.Loop) -> str:
    """Return a loop's mode; sequential where none is given."""
    mode = (loop.spec.mode if loop.spec else None) or (loop.policy.mode if loop.policy else None)
    return mode.text if mode else "sequential"


def loop_width(loop: ast.Loop) -> int | Scalar:
    """Return how many iterations of a loop run at once, or the template that gives this number."""
    if loop_mode(loop) != "parallel":
        return 1
    spec, policy = loop.spec, loop.policy
    width = (spec.max_in_flight if spec else None) or (policy.max_in_flight if policy else None)
    if width is None or not (width.is_template or isinstance(width.value, int)):
        return PARALLEL_WIDTH
    return width.value if isinstance(width.value, int) else width


def patches(then: ast.Then) -> Iterator[tuple[str, MappingEntry]]:
    """Yield what a rule writes: `set_iter` or `set_ctx`, and the entry."""
    for name, patch in (("set_iter", then.set_iter), ("set_ctx", then.set_ctx)):
        for entry in patch.entries if patch else ():
            yield name, entry


def thens(task: ast.Task) -> Iterator[tuple[ast.PolicyRule, ast.Then]]:
    """Yield each rule of a task's policy with what it does, `else` included."""
    for rule in task.rules:
        then = rule.action
        if then:
            yield rule, then


def _task_views(
    owner: Owner, entries: tuple[ast.PipelineEntry, ...], prefix: str, blocks: tuple[Block, ...]
) -> Iterator[TaskView]:
    for entry, label in ast.labelled(entries, prefix):
        if isinstance(entry, ast.Task):
            yield TaskView(entry, label, owner, blocks)
            continue
        for name, body in ast.named_bodies(entry):
            yield from _task_views(owner, body, f"{label}.{name}.", (*blocks, entry))


def _reduced(site: Site, template: Template) -> Template:
    """Reduce a broken template to the problem from which others follow.

    In Python code the braces are most likely Python's own. A statement that does not work defines names that the rest
    of the text reads.
    """
    kind = find_kind(site.task.kind) if site.task and site.input else None
    declared = kind.input(site.input) if kind else None
    if declared is not None and declared.language == "python":
        first = template.problems[0]
        help = "if the braces are Python's own, put `{% raw %}` before the code and `{% endraw %}` after it"
        return changed(template, parts=(), problems=(changed(first, help=f"{help}; else {first.help}"),))
    statement = next((problem for problem in template.problems if problem.kind == "statement"), None)
    return changed(template, parts=(), problems=(statement,)) if statement else template


def _all_sites(model: Model) -> Iterator[Site]:
    yield from _sites(model.playbook)
    by_task = {id(view.task): view for view in model.tasks}
    for owner in model.owners:
        if owner.step:
            yield from _sites(owner.step, owner)
        yield from _pipeline_sites(owner, owner.entries, by_task)


def _sites(
    struct: ast.Struct, owner: Owner | None = None, view: TaskView | None = None, depth: int | None = None
) -> Iterator[Site]:
    """Yield what is evaluated in an object. A scalar that is no text is a site where it is a guard."""
    for scalar, placed in placed_scalars(struct):
        if isinstance(scalar.value, str) or placed.key.is_guard:
            around = placed.loops_around if depth is None else depth
            yield Site(scalar, placed.key.position, placed.role, owner, view, placed.rule, placed.arc, around)


def _pipeline_sites(
    owner: Owner, entries: tuple[ast.PipelineEntry, ...], by_task: dict[int, TaskView]
) -> Iterator[Site]:
    for entry in entries:
        view = by_task[id(entry)] if isinstance(entry, ast.Task) else None
        yield from _sites(entry, owner, view, len(owner.loops))
        for body in () if isinstance(entry, ast.Task) else ast.bodies(entry):
            yield from _pipeline_sites(owner, body, by_task)


class KeyRead(IdentityRecord):
    """A template that needs a key: it has no default, and no guard tests whether it is defined."""

    key: str
    field: Access
    reading: Reading


def needed(model: Model, namespace: str) -> Iterator[KeyRead]:
    optional = {
        use.fields[0].name
        for reading in model.readings
        for use in reading.names.uses
        if use.name == namespace and use.fields and use.is_optional
    }
    for reading in model.readings:
        owner = reading.site.owner
        if owner is None or owner.in_workbook or reading.site.position in GUARDS:
            continue
        for use in reading.names.uses:
            if use.name == namespace and use.fields and not use.is_optional and use.fields[0].name not in optional:
                yield KeyRead(use.fields[0].name, use.fields[0], reading)


def _written(model: Model, owner: Owner) -> Iterator[tuple[str, Scalar]]:
    for one in _with_workbook(model, owner):
        for view in model.tasks_by_owner[one]:
            for _, then in thens(view.task):
                for patch, entry in patches(then):
                    if patch == "set_ctx":
                        yield entry.key.text, entry.key


def _with_workbook(model: Model, owner: Owner) -> Iterator[Owner]:
    """Yield a pipeline and those of the workbook that it calls, directly or not."""
    shared = model.workbook
    seen: set[str] = set()
    pending = [owner]
    while pending:
        one = pending.pop()
        yield one
        for view in model.tasks_by_owner[one]:
            named = view.task.get_extra("task") if view.kind == "workbook" else None
            name = named.text if isinstance(named, Scalar) else ""
            if name in shared and name not in seen:
                seen.add(name)
                pending.append(shared[name])
