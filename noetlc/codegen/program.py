"""Playbooks to a program: their nets, their settings, and the debug map."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from noetlc.analysis.model import loop_mode, loop_width
from noetlc.analysis.placement import pool_of
from noetlc.analysis.workbook_calls import NamesBeforeLabels
from noetlc.canon.flow import flow_of, value_node
from noetlc.codegen.expressions import Lowered, expression_reads, lower_guard, lower_value, lower_verdict
from noetlc.codegen.pipeline import PipelineContext, label_of, lower_pipeline
from noetlc.syntax import ast, nodes
from noetlc.syntax.positions import position_of
from noetlc.syntax.span import Source
from noetlvm.bytecode.program import (
    ArcCode,
    DebugEntry,
    DebugMap,
    ExpressionCode,
    KeychainEntry,
    LoopHeader,
    Mark,
    Pipeline,
    PlaybookCode,
    Program,
    Transition,
    Value,
    addresses,
)
from noetlvm.language.scopes import visible_names
from noetlvm.limits import LOCAL
from noetlvm.record import Record, changed

FIRST_STEP = "start"
"""The default entry step, if a step has this name (S4)."""


class Unit(Record):
    """A playbook in canonical form, and the file it was written in."""

    playbook: ast.Playbook
    source: Source
    file: str
    """The name of the file in the debug map."""
    constructs: dict[str, str]
    """The construct behind a generated label, by `step/label`."""

    @property
    def path(self) -> str:
        metadata = self.playbook.metadata
        return metadata.path.text if metadata and metadata.path else ""


class LoweredPlaybook(Record):
    """A playbook's code and its sources."""

    unit: Unit
    playbook: PlaybookCode
    sources: dict[str, CodeSource]
    """By the address of the code within the playbook."""


def lower_playbook(unit: Unit) -> LoweredPlaybook:
    """Return the code of one playbook. Raises LoweringError."""
    playbook = unit.playbook
    sources = SourceMap(unit.source.text, unit.constructs, NamesBeforeLabels(playbook))
    metadata, executor = playbook.metadata, playbook.executor
    spec = executor.spec if executor else None
    steps = playbook.workflow or ()
    is_local = _is(executor.profile if executor else None, LOCAL)
    lowered = PlaybookCode(
        name=_text(metadata.name if metadata else None),
        path=unit.path,
        metadata=entries_data(metadata.extra) if metadata else {},
        executor=_executor(executor),
        entry_step=_entry(spec, steps),
        final_step=spec.final_step.text if spec and spec.final_step else None,
        no_next_is_error=bool(spec and spec.no_next_is_error and spec.no_next_is_error.value is True),
        workload=entries_data(playbook.workload.entries) if playbook.workload else {},
        keychain=tuple(
            KeychainEntry(_text(one.name), _text(one.kind), entries_data(one.extra)) for one in playbook.keychain or ()
        ),
        steps=tuple(lower_step(step, _text(step.step), sources, is_local=is_local) for step in steps),
    )
    return LoweredPlaybook(unit, lowered, sources.by_address)


def link(lowered: Sequence[LoweredPlaybook]) -> Program:
    """Link playbooks into one program; the first is the main one, the others are sorted by path."""
    ordered = [lowered[0], *sorted(lowered[1:], key=lambda one: one.playbook.path)]
    program = Program(tuple(one.playbook for one in ordered))
    return changed(program, debug=_debug(program, ordered))


def _text(scalar: nodes.Scalar | None) -> str:
    return scalar.text if scalar else ""


def _executor(executor: ast.Executor | None) -> dict[str, Value]:
    found = struct_data(executor, "spec")
    compiled = ("entry_step", "final_step", "no_next_is_error", "unguarded_arcs")
    settings = struct_data(executor.spec if executor else None, *compiled)
    return found | {"spec": settings} if settings else found


def _entry(spec: ast.ExecutorSpec | None, steps: tuple[ast.Step, ...]) -> str:
    if spec and spec.entry_step:
        return spec.entry_step.text
    names = [_text(step.step) for step in steps]
    return FIRST_STEP if FIRST_STEP in names else names[0]


class _Marks(dict[int, Mark]):
    """The marks of one file by offset, made on first use: many instructions share an offset."""

    def __init__(self, file: int, source: Source) -> None:
        super().__init__()
        self._file = file
        self._source = source

    def __missing__(self, offset: int) -> Mark:
        mark = self[offset] = Mark(self._file, *self._source.position(offset))
        return mark


def _debug(program: Program, lowered: Sequence[LoweredPlaybook]) -> DebugMap:
    sources: dict[str, tuple[CodeSource, _Marks]] = {}
    for index, one in enumerate(lowered):
        marks = _Marks(index, one.unit.source)
        prefix = f"{one.playbook.path}#" if index else ""
        sources.update((prefix + address, (source, marks)) for address, source in one.sources.items())
    entries = []
    for address in addresses(program):
        source, marks = sources[address.name]
        entries.append(DebugEntry(address.name, source.construct, tuple(map(marks.__getitem__, source.offsets))))
    return DebugMap(tuple(one.unit.file for one in lowered), tuple(entries))


class CodeSource(Record):
    """The source of the code at one address: its construct, and an offset for each instruction."""

    construct: str
    offsets: tuple[int, ...]


class SourceMap:
    """The sources of a playbook's code, by address: filled during lowering, input of the debug map."""

    __slots__ = ("by_address", "constructs", "hiding", "text")

    def __init__(self, text: str, constructs: dict[str, str], hiding: NamesBeforeLabels) -> None:
        self.text = text
        self.hiding = hiding
        self.constructs = constructs
        """The construct behind a generated label, by `step/label`."""
        self.by_address: dict[str, CodeSource] = {}

    def add(self, address: str, construct: str, *offsets: int) -> None:
        self.by_address[address] = CodeSource(construct, offsets)

    def expression(self, address: str, construct: str, lowered: Lowered) -> ExpressionCode:
        self.add(address, construct, *lowered.offsets)
        return lowered.expression


def lower_step(step: ast.Step, name: str, sources: SourceMap, *, is_local: bool = False) -> Transition:
    """Return a step's transition; `name` is the step's address.

    `is_local`: the iterations of its loops stay on one worker, unless a loop specifies otherwise.
    """
    assert step.step is not None  # lint: every step has a name
    sources.add(name, "step", step.step.span.start)
    policy = step.policy
    admit = policy.admit if policy else None
    failure = policy.failure if policy else None
    return Transition(
        name=step.step.text,
        admit=_admit(admit, f"{name}/admit", sources),
        drops_denied=_is(admit.on_deny if admit else None, "drop"),
        loops=tuple(_loop(loop, level, name, sources, is_local) for level, loop in enumerate(step.loops, 1)),
        best_effort=_is(failure.mode if failure else None, "best_effort"),
        pipeline=_pipeline(step, f"{name}/tool", sources),
        inclusive=step.is_inclusive,
        arcs=tuple(_arc(arc, f"{name}/arc.{n}", sources) for n, arc in enumerate(step.arcs, 1)),
        settings=_settings(step),
    )


def _is(scalar: nodes.Scalar | None, word: str) -> bool:
    return scalar is not None and scalar.text == word


def _admit(admit: ast.Admit | None, address: str, sources: SourceMap) -> ExpressionCode | None:
    """Return one guard for all rules: the first that holds decides; if none does, the token is denied (S30)."""
    if admit is None:
        return None
    choices = [(None if rule.else_ else rule.when, rule.allows) for rule in admit.rules or ()]
    if choices and choices[0] == (None, True):
        return None
    visible = visible_names(position_of(ast.AdmitRule, "when"), in_loop=False)
    return sources.expression(address, "admit", lower_verdict(choices, admit.span, sources.text, visible))


def _loop(loop: ast.Loop, level: int, name: str, sources: SourceMap, is_local: bool) -> LoopHeader:
    assert loop.in_ is not None  # lint: a loop has both
    assert loop.iterator is not None
    spec, policy = loop.spec, loop.policy
    is_parallel = loop_mode(loop) == "parallel"
    address = f"{name}/loop.{level}"

    def expression(part: str, node: nodes.Node, field: str) -> ExpressionCode:
        visible = visible_names(position_of(ast.Loop, "in_"), in_loop=level > 1)
        return sources.expression(f"{address}/{part}", "loop", lower_value(node, sources.text, visible, field))

    width = loop_width(loop)
    rate = spec.rate if spec else None
    return LoopHeader(
        collection=expression("in", loop.in_, "in"),
        iterator=loop.iterator.text,
        parallel=is_parallel,
        width=width if isinstance(width, int) else expression("width", width, "max_in_flight"),
        rate=expression("rate", _rate(rate), "rate") if rate else None,
        distributed=_is(policy.exec, "distributed") if policy and policy.exec else is_parallel and not is_local,
        reducers=_reducers(policy.reducers if policy else None),
    )


def _rate(rate: ast.Rate) -> nodes.Node:
    """Return a rate as the mapping that it is, with one second where it gives none (S53)."""
    assert rate.max is not None  # lint: a rate has a number
    return value_node(rate.span, {"max": rate.max, "per": rate.per or 1})


def _reducers(reducers: ast.Reducers | None) -> tuple[tuple[str, str], ...]:
    entries = reducers.extra if reducers else ()
    return tuple(sorted((entry.key.text, str(node_data(entry.value))) for entry in entries))


def _arc(arc: ast.Arc, address: str, sources: SourceMap) -> ArcCode:
    assert arc.step is not None  # lint: an arc leads to a step
    sources.add(address, "arc", arc.step.span.start)
    guard = args = None
    if arc.when is not None:
        visible = visible_names(position_of(ast.Arc, "when"), in_loop=False)
        guard = sources.expression(f"{address}/when", "arc", lower_guard(arc.when, sources.text, visible))
    if arc.args is not None and arc.args.entries:
        visible = visible_names(position_of(ast.Arc, "args"), in_loop=False)
        args = sources.expression(f"{address}/args", "arc", lower_value(arc.args, sources.text, visible, "args"))
    reads_event = guard is not None and expression_reads(guard, "event")
    return ArcCode(arc.step.text, guard, args, handles_failure=reads_event)


def _pipeline(step: ast.Step, address: str, sources: SourceMap) -> Pipeline | None:
    tasks = tuple(entry for entry in step.tool or () if isinstance(entry, ast.Task))
    if not tasks:
        return None
    assert step.step is not None
    prefix = f"{step.step.text}/"

    def construct_of(label: str) -> str:
        return sources.constructs.get(prefix + label, f"task {label}")

    hiding = sources.hiding.of(step)
    lowered = lower_pipeline(tasks, PipelineContext(sources.text, bool(step.loops), construct_of, hiding=hiding))
    sources.add(address, "tool", *(origin.offset for origin in lowered.origins))
    for number, index, operand in lowered.operands:
        sources.expression(f"{address}.{number}.{index}", lowered.origins[number].construct, operand)
    return lowered.pipeline


def _settings(step: ast.Step) -> dict[str, Value]:
    """Return the settings of a step that are not code: limits and hints for the runtime."""
    found = struct_data(step.policy, "admit", "failure")
    compiled = ("exec", "mode", "max_in_flight", "reducers")
    hints: dict[str, Value] = {
        "loops": _hints([struct_data(loop.policy, *compiled) for loop in step.loops]),
        "router": _router_hints(step.next),
        "arcs": _hints([node_data(arc.spec) if arc.spec else {} for arc in step.arcs]),
    }
    hints["waits"] = list(waits(step))
    pool = pool_of(step)
    if pool is not None:
        hints["pool"] = pool.text
    return found | {key: value for key, value in hints.items() if value}


def waits(step: ast.Step) -> Iterator[str]:
    """Yield the labels of the tasks that wait between the rounds of a block: they count as no task (S53)."""
    for task in step.tool or ():
        flow = flow_of(task) if isinstance(task, ast.Task) and task.is_flow else None
        if flow is not None and flow.wait is not None and isinstance(task, ast.Task):
            yield label_of(task)


def _hints(found: list[Value]) -> Value:
    return found if any(found) else []


def _router_hints(router: ast.Router | None) -> Value:
    spec = router.spec if router else None
    policy: Value = struct_data(spec.policy if spec else None)
    rest: dict[str, Value] = struct_data(spec, "mode", "policy")
    return rest | {"policy": policy} if policy else rest


# ---- objects as plain data, for settings that the compiler passes on unread


def node_data(node: nodes.Node) -> Value:
    return cast("Value", nodes.plain(node))


def entries_data(entries: tuple[nodes.MappingEntry, ...]) -> dict[str, Value]:
    """Return the fields of a mapping as data, in the order written."""
    return {entry.key.text: node_data(entry.value) for entry in entries}


def struct_data(struct: ast.Struct | None, *without: str) -> dict[str, Value]:
    """Return an object as data, except for the keys in `without`.

    Its words are sorted by name, then follow its open fields as written, so the order of words makes no difference.
    """
    if struct is None:
        return {}
    found: dict[str, Value] = {}
    for key in sorted(struct.keys):
        value = None if key in without else getattr(struct, ast.attribute(key), None)
        if isinstance(value, ast.Struct):
            found[key] = struct_data(value)
        elif isinstance(value, nodes.Scalar | nodes.Sequence | nodes.Mapping):
            found[key] = node_data(value)
    return found | entries_data(tuple(entry for entry in struct.extra if entry.key.text not in without))
