"""A verified bundle, ready to run: expressions as functions, steps by name, limits, places in the source.

Whatever a run may never need is made when it is first needed: functions, bound pipelines, the index of places.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from noetlvm.bytecode.codec.container import bundle_id
from noetlvm.bytecode.program import (
    ArcCode,
    DebugEntry,
    ExpressionCode,
    Instruction,
    KeychainEntry,
    LoopHeader,
    Pipeline,
    PlaybookCode,
    Program,
)
from noetlvm.bytecode.program import Transition as Step
from noetlvm.bytecode.verify.verifier import load
from noetlvm.expr.errors import ExpressionError, Fuel
from noetlvm.expr.interpret import compile_expression
from noetlvm.expr.numbers import NumberError, count_of, rate_of
from noetlvm.language.placement import executor_pool
from noetlvm.language.tool_kinds import NO_TIME_KIND, may_give_secret
from noetlvm.limits import Limits, guards_success
from noetlvm.machine.instructions import LimitError, bind, failure
from noetlvm.machine.reads import Reads, reads_of
from noetlvm.machine.time_limits import NO_LIMITS, TimeLimits
from noetlvm.record import Record

if TYPE_CHECKING:
    from noetlvm.machine.instructions import Perform

BUNDLES_RECENT = 16
"""Loaded bundles in the cache: a server needs one at every start of an execution."""

Names = dict[str, Any]
Evaluation = Callable[[Names, Fuel], Any]
Limit = Callable[[Names], int]
"""A number that bounds something, where a template may give it."""
_Number = TypeVar("_Number")


def load_program(data: bytes, *, checked: bool = False) -> LoadedProgram:
    """Return a bundle's program, ready to run. Raises MalformedBundleError or InvalidBundleError.

    In checked mode everything that the verifier proved is asserted while it runs; it is many times slower.
    """
    return prepare(load(data), checked=checked)


def prepare(program: Program, *, checked: bool = False) -> LoadedProgram:
    """Return a program that was verified, ready to run."""
    setting = _Setting(Places(program), checked)
    main = program.playbooks[0]
    # A parent hands its data to children, so secrets of one playbook can be masked in the data of any.
    has_secrets = any(_has_secrets(one) for one in program.playbooks)
    playbooks = {
        one.path: setting.playbook(one, "" if one is main else f"{one.path}#", has_secrets) for one in program.playbooks
    }
    return LoadedProgram(playbooks[main.path], playbooks, setting.places)


def locate(program: LoadedProgram, address: str, instruction: int | None = None) -> str:
    """Return `file:line:column` of an instruction of the code at an address; empty if it is not known."""
    return program.places.locate(address, instruction)


# ---- places


class Places:
    """Where code was written, by its address. Nothing is known of a stripped bundle."""

    __slots__ = ("_debug", "_entries")

    def __init__(self, program: Program) -> None:
        self._debug = program.debug
        self._entries: dict[str, DebugEntry] | None = None

    def locate(self, address: str, instruction: int | None = None) -> str:
        """Return `file:line:column` of an instruction, by default the first; empty if it is not known."""
        if self._debug is None:
            return ""
        if self._entries is None:
            self._entries = {entry.address: entry for entry in self._debug.entries}
        entry = self._entries.get(address)
        if entry is None:
            return ""
        mark = entry.marks[instruction if instruction is not None and instruction < len(entry.marks) else 0]
        return f"{self._debug.files[mark.file]}:{mark.line}:{mark.column}"


# ---- code


class Evaluator:
    """An expression as a function of names and fuel. It is made into one when it is first called."""

    __slots__ = ("_expression", "_setting", "address", "run")

    def __init__(self, expression: ExpressionCode, address: str, setting: _Setting) -> None:
        self._expression = expression
        self._setting = setting
        self.address = address
        constant = None if setting.is_checked else _constant(expression)
        self.run: Evaluation = constant or self._first
        """The function itself, for callers in a loop."""

    def __call__(self, names: Names, fuel: Fuel) -> Any:
        return self.run(names, fuel)

    def _first(self, names: Names, fuel: Fuel) -> Any:
        self.run = compile_expression(self._expression, checked=self._setting.is_checked)
        return self.run(names, fuel)

    def deciding_rule(self, names: Names) -> tuple[int, str]:
        """Return number and place of the admission rule that decides; 0 if the code was not made of rules."""
        numbered, positions = _numbered_rules(self._expression)
        found = compile_expression(numbered)(names, Fuel())
        if type(found) is not int or not 0 < found <= len(positions):
            return 0, ""
        return found, self._setting.places.locate(self.address, positions[found - 1])

    def failure(self, error: ExpressionError) -> dict[str, Any]:
        """Return the error of an evaluation that failed, with its place in the source (S10)."""
        place = self._setting.places.locate(self.address, error.at)
        return self._failure(error.message, place)

    @property
    def keys(self) -> frozenset[str]:
        """The keys of the mapping that it gives, if it gives one that is written as such."""
        return _written_keys(self._expression)

    def number(self, names: Names, read: Callable[[Any], _Number]) -> _Number:
        """Return the number that `read` makes of its value, or raise LimitError (S52)."""
        try:
            return read(self.run(names, Fuel()))
        except ExpressionError as error:
            raise LimitError(self.failure(error)) from None
        except NumberError as error:
            raise LimitError(self._failure(str(error), self._setting.places.locate(self.address))) from None

    def _failure(self, message: str, place: str) -> dict[str, Any]:
        return failure("template", f"{place or self.address}: {message}", expression=self.address, place=place)


def _constant(expression: ExpressionCode) -> Evaluation | None:
    """Return an expression that is one constant as a function; most specs are, and need no translation."""
    first = expression.code[0]
    if len(expression.code) != 2 or first.opcode.name != "CONST":
        return None
    value = first.operands[0]
    return lambda names, fuel: value


def _written_keys(expression: object) -> frozenset[str]:
    """Return the keys of the mapping that code ends in: those of RECORD, or of a constant."""
    last = expression.code[-2] if isinstance(expression, ExpressionCode) else None
    keys = last.operands[0] if last is not None and last.opcode.name in ("RECORD", "CONST") else ()
    return frozenset(keys) if isinstance(keys, list | dict) else frozenset()


def _numbered_rules(gate: ExpressionCode) -> tuple[ExpressionCode, list[int]]:
    """Return a gate that gives the number of the rule that decides, not its verdict, and where the verdicts are in it.

    Rules compile to tests that each jump to the end of the code with a constant. It is made when a token is denied for
    the first time, so that bundles need not hold it and gates that admit do not pay for it.
    """
    *code, truth, end = gate.code
    if truth.opcode.name != "TRUTH":
        return gate, []
    jumps = [at for at, found in enumerate(code) if found.opcode.name == "JUMP" and found.operands[0] == len(code)]
    positions = [at for at in (*(jump - 1 for jump in jumps), len(code) - 1) if code[at].opcode.name == "CONST"]
    for number, at in enumerate(positions, 1):
        code[at] = Instruction(code[at].opcode, (number,))
    return ExpressionCode((*code, end), gate.slots), positions


class LoadedPipeline:
    """A step's tasks."""

    __slots__ = ("_calls_first", "_performs", "_reads", "_setting", "address", "code", "counters", "limits", "waits")

    def __init__(
        self, pipeline: Pipeline, address: str, limits: Limits, setting: _Setting, waits: Collection[str] = ()
    ) -> None:
        self.code = pipeline.code
        self._performs: tuple[Perform, ...] | None = None
        self._calls_first: bool | None = None
        self._reads: Reads | None = None
        self._setting = setting
        self.address = address
        self.counters = pipeline.counters
        self.limits = limits
        self.waits = frozenset(waits)
        """Labels of tasks that only wait between rounds: they count as no task (S53)."""

    @property
    def performs(self) -> tuple[Perform, ...]:
        """What performs each instruction."""
        if self._performs is None:
            self._performs = bind(self.code, self, is_checked=self._setting.is_checked)
        return self._performs

    @property
    def reads(self) -> Reads:
        """What its code can read of its surroundings."""
        if self._reads is None:
            self._reads = reads_of(self.code)
        return self._reads

    def expression(self, at: int, operand: int) -> Evaluator:
        """Return the expression that an operand of an instruction holds."""
        found = self.optional(at, operand)
        assert found is not None  # the operand is not optional
        return found

    def optional(self, at: int, operand: int) -> Evaluator | None:
        """Return the expression that an operand of an instruction holds, if it holds one."""
        expression = self.code[at].operands[operand]
        if not isinstance(expression, ExpressionCode):
            return None
        return Evaluator(expression, f"{self.address}.{at}.{operand}", self._setting)

    def limit(self, at: int, operand: int, field: str, least: int) -> Limit:
        """Return the limit that an operand of an instruction holds; `field` names it in errors."""
        return self._setting.limit(self.code[at].operands[operand], f"{self.address}.{at}.{operand}", field, least)

    @property
    def calls_first(self) -> bool:
        """Return whether it begins with a call of a tool that takes time."""
        if self._calls_first is None:
            names = [instruction.opcode.name for instruction in self.code[:2]]
            kind = self.code[1].operands[0] if names == ["ENTER", "CALL"] else NO_TIME_KIND
            self._calls_first = kind not in (NO_TIME_KIND, "playbook")
        return self._calls_first

    def tasks(self) -> Iterator[tuple[str, str, int]]:
        """Yield each task's label, the kind of its tool, and its first instruction."""
        label, entry = "", 0
        for at, instruction in enumerate(self.code):
            if instruction.opcode.name == "ENTER":
                label, entry = str(instruction.operands[0]), at
            elif instruction.opcode.name == "CALL":
                yield label, str(instruction.operands[0]), entry

    def writes(self) -> Iterator[tuple[str, str, frozenset[str]]]:
        """Yield what its rules write: the task's label, `iter` or `ctx`, and the keys."""
        label = ""
        for instruction in self.code:
            if instruction.opcode.name == "ENTER":
                label = str(instruction.operands[0])
            elif instruction.opcode.name == "PATCH":
                for scope, expression in zip(("iter", "ctx"), instruction.operands, strict=True):
                    yield label, scope, _written_keys(expression)

    def locate(self, at: int) -> str:
        """Return where an instruction was written, or its address if that is not known."""
        return self._setting.places.locate(self.address, at) or f"{self.address}.{at}"


# ---- the net


class LoadedLoop(Record):
    """One level of a loop."""

    collection: Evaluator
    iterator: str
    parallel: bool
    width: Limit
    distributed: bool
    reducers: tuple[tuple[str, str], ...]
    rate: Evaluator | None

    def rate_of(self, names: Names) -> list[float] | None:
        """Return how many iterations may begin in how many seconds, if that is bounded (S53); raise LimitError."""
        return self.rate.number(names, rate_of) if self.rate else None


class LoadedArc(Record):
    """A way out of a step."""

    target: str
    guard: Evaluator | None
    args: Evaluator | None
    handles_failure: bool


class LoadedStep(Record):
    name: str
    admit: Evaluator | None
    drops_denied: bool
    loops: tuple[LoadedLoop, ...]
    best_effort: bool
    pipeline: LoadedPipeline | None
    inclusive: bool
    arcs: tuple[LoadedArc, ...]
    routes_by_template: bool
    """An arc has a guard or args."""
    limits: TimeLimits
    leased_levels: int
    """Down to which level of the loop iterations are handed out one by one: the innermost distributed one (S22)."""
    pool: str
    """Workers that may run it: `pool` of its innermost loop that names one, of the step or of the executor."""
    position: int
    """In the workflow, from 1."""

    @property
    def calls_first(self) -> bool:
        """Return whether nothing is decided before its first task calls a tool that takes time."""
        return self.pipeline is not None and self.pipeline.calls_first

    def kinds(self) -> set[str]:
        """Return the tool kinds of its tasks."""
        return {kind for _, kind, _ in self.pipeline.tasks()} if self.pipeline else set()

    def unit(self, iteration: str) -> str:
        """Return the part of a run that one lease covers: a local loop's iterations share the lease around them."""
        if self.leased_levels == len(self.loops):
            return iteration
        return ".".join(iteration.split(".")[: self.leased_levels])


class LoadedPlaybook(Record):
    name: str
    path: str
    metadata: dict[str, Any]
    executor: dict[str, Any]
    limits: Limits
    entry_step: str
    final_step: str | None
    no_next_is_error: bool
    guards_success: bool
    """Arcs without `when` hold on success only: `executor.spec.unguarded_arcs: success` (S55)."""
    workload: dict[str, Any]
    keychain: tuple[KeychainEntry, ...]
    has_secrets: bool
    """Some playbook of the program reads secrets or runs a child, so recorded data may contain masks (S64)."""
    steps: dict[str, LoadedStep]
    has_time_limits: bool
    prefix: str
    """What the addresses of its code begin with in the program."""
    places: Places

    def kinds(self) -> set[str]:
        """Return the tool kinds of its tasks."""
        return {kind for step in self.steps.values() for kind in step.kinds()}

    def locate(self, address: str, instruction: int | None = None) -> str:
        """Return `file:line:column` of an instruction of the code at an address of this playbook; else nothing."""
        return self.places.locate(self.prefix + address, instruction)


class LoadedProgram(Record):
    """Everything in a bundle."""

    main: LoadedPlaybook
    playbooks: dict[str, LoadedPlaybook]
    """By path, the main one included."""
    places: Places

    def kinds(self) -> set[str]:
        """Return the tool kinds of all its tasks."""
        return {kind for playbook in self.playbooks.values() for kind in playbook.kinds()}


def _has_secrets(playbook: PlaybookCode) -> bool:
    """Return whether a playbook declares credentials, or has a task that may return a secret or its mask.

    A child may come from another bundle, whose secrets are not known here.
    """
    return bool(playbook.keychain) or any(
        instruction.opcode.name == "CALL"
        and (instruction.operands[0] == _CHILD or may_give_secret(str(instruction.operands[0])))
        for step in playbook.steps
        if step.pipeline
        for instruction in step.pipeline.code
    )


_CHILD = "playbook"
"""The kind of tasks that run another playbook."""


class _Setting(Record):
    """What all of a program's code shares while it is loaded."""

    places: Places
    is_checked: bool

    def playbook(self, playbook: PlaybookCode, prefix: str, has_secrets: bool) -> LoadedPlaybook:
        limits, pool = Limits.of(playbook.executor), executor_pool(playbook.executor)
        steps = {
            step.name: self._step(step, prefix + step.name, limits, pool, position)
            for position, step in enumerate(playbook.steps, 1)
        }
        return LoadedPlaybook(
            name=playbook.name,
            path=playbook.path,
            metadata=playbook.metadata,
            executor=playbook.executor,
            limits=limits,
            entry_step=playbook.entry_step,
            final_step=playbook.final_step,
            no_next_is_error=playbook.no_next_is_error,
            guards_success=guards_success(playbook.executor),
            workload=playbook.workload,
            keychain=playbook.keychain,
            has_secrets=has_secrets,
            steps=steps,
            has_time_limits=any(step.limits is not NO_LIMITS for step in steps.values()),
            prefix=prefix,
            places=self.places,
        )

    def _step(self, step: Step, address: str, limits: Limits, pool: str, position: int) -> LoadedStep:
        leased = max((level for level, loop in enumerate(step.loops, 1) if loop.distributed), default=0)
        return LoadedStep(
            name=step.name,
            admit=self._evaluator(step.admit, f"{address}/admit"),
            drops_denied=step.drops_denied,
            loops=tuple(self._loop(loop, f"{address}/loop.{level}") for level, loop in enumerate(step.loops, 1)),
            best_effort=step.best_effort,
            pipeline=self._pipeline(step, f"{address}/tool", limits),
            inclusive=step.inclusive,
            arcs=tuple(self._arc(arc, f"{address}/arc.{number}") for number, arc in enumerate(step.arcs, 1)),
            routes_by_template=any(arc.guard or arc.args for arc in step.arcs),
            limits=TimeLimits.of(step.settings),
            leased_levels=leased,
            pool=str(step.settings.get("pool") or pool),
            position=position,
        )

    def _pipeline(self, step: Step, address: str, limits: Limits) -> LoadedPipeline | None:
        waits = step.settings.get("waits")
        labels = [label for label in waits if isinstance(label, str)] if isinstance(waits, list) else []
        return LoadedPipeline(step.pipeline, address, limits, self, labels) if step.pipeline else None

    def _loop(self, loop: LoopHeader, address: str) -> LoadedLoop:
        return LoadedLoop(
            collection=Evaluator(loop.collection, f"{address}/in", self),
            iterator=loop.iterator,
            parallel=loop.parallel,
            width=self.limit(loop.width, f"{address}/width", "max_in_flight", least=1),
            distributed=loop.distributed,
            reducers=loop.reducers,
            rate=self._evaluator(loop.rate, f"{address}/rate"),
        )

    def limit(self, value: object, address: str, field: str, least: int) -> Limit:
        """Return a number, or the expression that gives it, as a function of names."""
        if isinstance(value, int):
            return lambda names: value
        assert isinstance(value, ExpressionCode)  # the verifier: a limit is one of the two
        evaluator, read = Evaluator(value, address, self), partial(count_of, field=field, least=least)
        return lambda names: evaluator.number(names, read)

    def _arc(self, arc: ArcCode, address: str) -> LoadedArc:
        guard, args = self._evaluator(arc.guard, f"{address}/when"), self._evaluator(arc.args, f"{address}/args")
        return LoadedArc(arc.target, guard, args, arc.handles_failure)

    def _evaluator(self, expression: ExpressionCode | None, address: str) -> Evaluator | None:
        return Evaluator(expression, address, self) if expression else None


class Bundle(NamedTuple):
    """A bundle that may run."""

    id: str
    data: bytes
    program: LoadedProgram

    @classmethod
    def of(cls, data: bytes) -> Bundle:
        """Return the bundle that the bytes are; one that was loaded lately is the same object. Raises BundleError."""
        return _loaded_bundle(data)


@lru_cache(BUNDLES_RECENT)
def _loaded_bundle(data: bytes) -> Bundle:
    return Bundle(bundle_id(data), data, load_program(data))
