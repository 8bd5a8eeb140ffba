"""A step's tasks to pipeline code: tool calls, rules as branches, directives as jumps.

It takes the canonical form: every task has a label, and what was sugar has become tasks that carry `spec.flow`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

from noetlc.analysis.flow import DEFAULT_ATTEMPTS
from noetlc.canon.flow import FlowTask, flow_of
from noetlc.codegen.expressions import Lowered, bare_names, expression_reads, lower_guard, lower_value
from noetlc.codegen.stack_code import JumpLabel
from noetlc.syntax import ast, nodes
from noetlc.syntax.positions import position_of
from noetlc.syntax.span import Span
from noetlc.syntax.tree import EXTRA
from noetlvm.bytecode.isa import PIPELINE, ControlFlow, Opcode, OpcodeName, Operand
from noetlvm.bytecode.program import Instruction, Pipeline
from noetlvm.language.scopes import TemplatePosition, visible_names
from noetlvm.record import Record, changed


class InstructionOrigin(NamedTuple):
    """The source of an instruction: its offset in the file, and the construct there."""

    offset: int
    construct: str


class LoweredPipeline(Record):
    """A pipeline, the sources of its instructions, and its expression operands."""

    pipeline: Pipeline
    origins: tuple[InstructionOrigin, ...]
    operands: tuple[tuple[int, int, Lowered], ...]
    """Instruction, operand, expression."""


class _Line(NamedTuple):
    """An instruction whose targets are still labels."""

    opcode: Opcode
    operands: tuple[object, ...]
    origin: InstructionOrigin
    labels: tuple[JumpLabel, ...]
    """The labels with its address."""

    @property
    def target(self) -> JumpLabel | None:
        if self.opcode.flow in (ControlFlow.NEXT, ControlFlow.END):
            return None
        return next(operand for operand in self.operands if isinstance(operand, JumpLabel))

    @property
    def is_goto(self) -> bool:
        return self.opcode.name == "GOTO"


class PipelineCode:
    def __init__(self) -> None:
        self._lines: list[_Line] = []
        self._waiting: list[JumpLabel] = []
        self._labels = 0
        self._counters: dict[str, int] = {}

    def emit(self, name: OpcodeName, *operands: object, origin: InstructionOrigin) -> None:
        """Add an instruction. An expression is given as `Lowered`, a target as `JumpLabel`."""
        self._lines.append(_Line(PIPELINE[name], operands, origin, tuple(self._waiting)))
        self._waiting.clear()

    def label(self) -> JumpLabel:
        """Make a label without an address."""
        self._labels += 1
        return JumpLabel(self._labels - 1)

    def place(self, label: JumpLabel) -> None:
        """Give a label the address of the next instruction; there must be one."""
        self._waiting.append(label)

    def counter(self, name: str) -> int:
        return self._counters.setdefault(name, len(self._counters))

    def finish(self) -> LoweredPipeline:
        """Return the optimised code with its labels resolved."""
        lines = _optimised(self._lines)
        places = {label: index for index, line in enumerate(lines) for label in line.labels}
        code = tuple(Instruction(line.opcode, tuple(_operands(line, places))) for line in lines)
        operands = tuple(
            (number, index, operand)
            for number, line in enumerate(lines)
            for index, operand in enumerate(line.operands)
            if isinstance(operand, Lowered)
        )
        pipeline = Pipeline(code, self._counters_in_use(lines))
        return LoweredPipeline(pipeline, tuple(line.origin for line in lines), operands)

    def _counters_in_use(self, lines: list[_Line]) -> int:
        used = [
            value
            for line in lines
            for kind, value in zip(line.opcode.operands, line.operands, strict=True)
            if kind is Operand.SLOT and isinstance(value, int)
        ]
        return max(used, default=-1) + 1


def _operands(line: _Line, places: dict[JumpLabel, int]) -> Iterator[object]:
    for operand in line.operands:
        if isinstance(operand, JumpLabel):
            yield places[operand]
        elif isinstance(operand, Lowered):
            yield operand.expression
        else:
            yield operand


def _optimised(lines: list[_Line]) -> list[_Line]:
    """Return the same code without jumps to jumps and unreachable instructions."""
    while any(line.is_goto for line in lines):
        shorter = _without_empty_jumps(_reachable(_threaded(lines)))
        if len(shorter) == len(lines):
            return shorter
        lines = shorter
    return _reachable(lines)


def _threaded(lines: list[_Line]) -> list[_Line]:
    """Jump threading: a jump to a GOTO becomes a jump to its target."""
    places = {label: line for line in lines for label in line.labels}

    def final(label: JumpLabel) -> JumpLabel:
        seen = {label}
        while places[label].is_goto:
            target = places[label].target
            if target is None or target in seen:
                return label  # an endless loop of jumps is not changed
            seen.add(target)
            label = target
        return label

    return [
        line._replace(operands=tuple(final(o) if isinstance(o, JumpLabel) else o for o in line.operands))
        for line in lines
    ]


def _reachable(lines: list[_Line]) -> list[_Line]:
    places = {label: index for index, line in enumerate(lines) for label in line.labels}
    reached: set[int] = set()
    waiting = [0]
    while waiting:
        index = waiting.pop()
        if index in reached:
            continue
        reached.add(index)
        line = lines[index]
        if line.target is not None:
            waiting.append(places[line.target])
        if line.opcode.flow in (ControlFlow.NEXT, ControlFlow.BRANCH):
            waiting.append(index + 1)
    return [line for index, line in enumerate(lines) if index in reached]


def _without_empty_jumps(lines: list[_Line]) -> list[_Line]:
    """Remove each GOTO to the instruction that follows it; that one gets its labels."""
    found: list[_Line] = []
    moved: tuple[JumpLabel, ...] = ()
    for line, following in zip(lines, [*lines[1:], None], strict=True):
        labels = moved + line.labels
        if following is not None and line.is_goto and line.target in following.labels:
            moved = labels
            continue
        found.append(line._replace(labels=labels))
        moved = ()
    return found


class PipelineContext(Record, cached=True):
    """Source text, loop flag and construct names shared by a pipeline's tasks."""

    text: str
    """The text of the file, for source offsets."""
    in_loop: bool
    construct_of: Callable[[str], str]
    """Returns the construct behind a label: `task fetch`, `choose`, `workbook save`."""
    read_labels: frozenset[str] = frozenset()
    """Labels of tasks whose results other tasks read by name."""
    dotted_labels: frozenset[str] = frozenset()
    """Labels of workbook tasks, such as `save.insert`: a template reads them as a path."""
    hiding: frozenset[str] = frozenset()
    """Names that win over labels (S48)."""

    @cached_property
    def _visible(self) -> dict[TemplatePosition, frozenset[str]]:
        """One set for each position, for all the expressions of a pipeline."""
        return {place: visible_names(place, self.in_loop) | self.dotted_labels for place in TemplatePosition}

    def visible(self, position: TemplatePosition) -> frozenset[str]:
        return self._visible[position]


def lower_pipeline(tasks: tuple[ast.Task, ...], context: PipelineContext) -> LoweredPipeline:
    """Return the code of a list of labelled tasks. Only results of labels that are read as names are bound (S48)."""
    labels = frozenset(map(label_of, tasks))
    dotted = frozenset(label for label in labels if "." in label and label.partition(".")[0] not in context.hiding)
    context = changed(context, dotted_labels=dotted)
    lowered = _lowered(tasks, context)
    names = {name for _, _, operand in lowered.operands for name in bare_names(operand.expression)}
    read = labels & names
    return _lowered(tasks, changed(context, read_labels=read)) if read else lowered


def _lowered(tasks: tuple[ast.Task, ...], context: PipelineContext) -> LoweredPipeline:
    code = PipelineCode()
    places = {label_of(task): code.label() for task in tasks}
    end = code.label()
    afters = [*(places[label_of(task)] for task in tasks[1:]), end]
    last = InstructionOrigin(0, "")
    for task, after in zip(tasks, afters, strict=True):
        last = InstructionOrigin(_own_place(task).start, context.construct_of(label_of(task)))
        code.place(places[label_of(task)])
        _TaskCode(code, task, places, after, context, last).lower()
    code.place(end)
    code.emit("END", origin=last)
    return code.finish()


def _own_place(task: ast.Task) -> Span:
    """Return where a task itself is written: the label of one that replaces a call is the call's."""
    if task.label is None or not task.span.start <= task.label.span.start <= task.span.end:
        return task.key_span("kind")
    return task.label.span


def label_of(task: ast.Task) -> str:
    assert task.label is not None  # the canonical form has them all
    return task.label.text


class _TaskCode(Record):
    code: PipelineCode
    task: ast.Task
    places: dict[str, JumpLabel]
    after: JumpLabel
    context: PipelineContext
    origin: InstructionOrigin

    def lower(self) -> None:
        flow = flow_of(self.task)
        if flow is not None:
            self._lower_flow(flow)
            return
        self._emit("ENTER", label_of(self.task), at=self.task.label.span if self.task.label else None)
        again = self.code.label()
        self.code.place(again)
        rules = self._skip_beforehand(list(self.task.rules))
        if rules is None:
            return
        self._emit("CALL", self.task.tool_kind, self._inputs(), self._spec())
        if self.task.spec is None or self.task.spec.policy is None:
            self._without_policy()
        else:
            self._policy(rules, again)

    def _emit(self, name: OpcodeName, *operands: object, at: Span | None = None) -> None:
        origin = self.origin if at is None else self.origin._replace(offset=at.start)
        self.code.emit(name, *operands, origin=origin)

    # ---- the call

    def _inputs(self) -> Lowered:
        return self._value(nodes.Mapping(self.task.span, self.task.extra), position_of(ast.Task, EXTRA), "")

    def _spec(self) -> Lowered:
        spec = self.task.spec
        settings = nodes.Mapping(spec.span, spec.extra) if spec else nodes.Mapping(self.task.span, ())
        return self._value(settings, position_of(ast.TaskSpec, EXTRA), "spec")

    def _value(self, node: nodes.Node, position: TemplatePosition, field: str) -> Lowered:
        return lower_value(node, self.context.text, self.context.visible(position), field)

    def _guard(self, when: nodes.Scalar, position: TemplatePosition) -> Lowered:
        return lower_guard(when, self.context.text, self.context.visible(position))

    def _skip_beforehand(self, rules: list[ast.PolicyRule]) -> list[ast.PolicyRule] | None:
        """Lower the leading rules that skip without reading `outcome`: they run before the call (S17).

        Return the remaining rules, or None if the task is always skipped.
        """
        while rules and rules[0].skips:
            rule = rules[0]
            guard = self._guard(rule.when, position_of(ast.PolicyRule, "when")) if rule.when else None
            written = self._written(rule.action or _CONTINUE)
            if any(expression_reads(part.expression, "outcome") for part in (guard, *written) if part):
                break
            no_match = self.code.label()
            if rule.when and guard:
                self._emit("UNLESS", guard, no_match, at=rule.when.span)
            if any(written):
                self._emit("PATCH", *written, at=rule.span)
            self._emit("SKIP", self.after, at=rule.span)
            if guard is None:
                return None
            self.code.place(no_match)
            rules = rules[1:]
        return rules

    # ---- after the call

    def _without_policy(self) -> None:
        failed = self.code.label()
        self._emit("ON_ERROR", failed)
        self._hand_on("CONTINUE", self.after)
        self.code.place(failed)
        self._emit("FAIL")

    def _policy(self, rules: list[ast.PolicyRule], again: JumpLabel) -> None:
        for rule in rules:
            then = rule.action
            if rule.when is None:
                self._then(then or _CONTINUE, again)
                return
            no_match = self.code.label()
            self._emit(
                "UNLESS", self._guard(rule.when, position_of(ast.PolicyRule, "when")), no_match, at=rule.when.span
            )
            self._then(then or _CONTINUE, again)
            self.code.place(no_match)
        self._hand_on("CONTINUE", self.after)

    def _then(self, then: ast.Then, again: JumpLabel) -> None:
        written = self._written(then)
        if any(written):
            self._emit("PATCH", *written, at=then.span)
        directive = then.do.text if then.do else "continue"
        _DIRECTIVES[directive](self, then, again)

    def _written(self, then: ast.Then) -> tuple[Lowered | None, Lowered | None]:
        return self._patch(then.set_iter, "set_iter"), self._patch(then.set_ctx, "set_ctx")

    def _patch(self, patch: nodes.Mapping | None, field: str) -> Lowered | None:
        return self._value(patch, position_of(ast.Then, field), field) if patch and patch.entries else None

    def _hand_on(self, directive: OpcodeName, target: JumpLabel, at: Span | None = None) -> None:
        """Emit a directive that hands the result on, and before it BIND if some task reads the result by its label."""
        if label_of(self.task) in self.context.read_labels:
            self._emit("BIND", at=at)
        self._emit(directive, target, at=at)

    def _jump(self, then: ast.Then, again: JumpLabel) -> None:
        self._hand_on("JUMP_TO", self._target(then), at=then.span)

    def _retry(self, then: ast.Then, again: JumpLabel) -> None:
        attempts: int | Lowered = DEFAULT_ATTEMPTS
        if then.attempts:
            given = then.attempts.value
            attempts = (
                given
                if type(given) is int
                else self._value(then.attempts, position_of(ast.Then, "attempts"), "attempts")
            )
        backoff = then.backoff.text if then.backoff else "none"
        delay = self._value(then.delay, position_of(ast.Then, "delay"), "delay") if then.delay else None
        self._emit("RETRY", attempts, backoff, delay, again, at=then.span)
        self._emit("FAIL", at=then.span)

    def _target(self, then: ast.Then) -> JumpLabel:
        assert then.to is not None  # lint: a jump has a target, and it exists
        return self.places[then.to.text]

    # ---- sugar

    def _lower_flow(self, flow: FlowTask) -> None:
        """Lower a flow task: a mark that may reset or count rounds and branch; no tool runs."""
        if flow.wait is not None:
            self._lower_wait(flow.wait)
            return
        self._emit("MARK", label_of(self.task))
        if flow.reset is not None:
            self._emit("RESET", self.code.counter(flow.reset))
        away = self.places[flow.to] if flow.to is not None else self.after
        if flow.test is not None:
            self._emit("UNLESS", self._guard(flow.test, position_of(ast.Repeat, "when")), away, at=flow.test.span)
            away = self.after
        if flow.round is not None:
            limit = (
                flow.max if isinstance(flow.max, int) else self._value(flow.max, position_of(ast.Repeat, "max"), "max")
            )
            self._emit("ROUND", self.code.counter(flow.round), limit)
        self._emit("GOTO", away)

    def _lower_wait(self, seconds: nodes.Scalar) -> None:
        """Lower a wait: a noop that is retried once after the time, and then skipped, so that `_prev` stays."""
        empty = nodes.Mapping(seconds.span, ())
        delay = self._value(seconds, position_of(ast.Repeat, "delay"), "delay")
        self._emit("ENTER", label_of(self.task))
        call = self.code.label()
        self.code.place(call)
        inputs, spec = (self._value(empty, position_of(ast.Task, EXTRA), field) for field in ("", "spec"))
        self._emit("CALL", self.task.tool_kind, inputs, spec)
        self._emit("RETRY", 2, "none", delay, call, at=seconds.span)
        self._emit("SKIP", self.after, at=seconds.span)


_CONTINUE = ast.Then(span=Span(0, 0))

_DIRECTIVES: dict[str, Callable[[_TaskCode, ast.Then, JumpLabel], None]] = {
    "continue": lambda task, then, _: task._hand_on("CONTINUE", task.after, at=then.span),
    "skip": lambda task, then, _: task._emit("SKIP", task.after, at=then.span),
    "jump": _TaskCode._jump,
    "break": lambda task, then, _: task._emit("BREAK", at=then.span),
    "fail": lambda task, then, _: task._emit("FAIL", at=then.span),
    "retry": _TaskCode._retry,
}
