"""A program in memory: what the compiler makes, a bundle holds, the verifier proves and the machine runs.

The addresses of its code, which the debug map follows, and the errors of a bundle are here too.

Everything is a frozen value with its meaning written out: an operand that names a constant or an expression holds it,
not a pool index. Pools, indices and bytes exist only in a bundle.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from noetlvm.bytecode.isa import EXPRESSIONS, Opcode, Operand
from noetlvm.record import Record


class BundleError(Exception):
    """Base. One error with a code, a section, an offset and a reason; never anything else on account of a bundle."""

    def __init__(self, code: str, section: str, offset: int, reason: str) -> None:
        self.code = code
        self.section = section
        self.offset = offset
        self.reason = reason
        super().__init__(f"{code}: {section}, at {offset}: {reason}")


class MalformedBundleError(BundleError):
    """The bytes are not a bundle that this version can decode; codes begin with M."""


class InvalidBundleError(BundleError):
    """The bundle decodes, but its code is not safe to run; codes begin with V."""


Value: TypeAlias = "bool | int | float | str | list[Value] | dict[str, Value] | None"
"""A constant. Never mutated, though Python would let you."""


class Instruction(Record):
    """An opcode and its operands, in the table's order.

    CONST, TEXT, WORDS and the call names hold the value itself, EXPR an `Expression`, OPTIONAL_EXPR an `Expression` or
    None, NAME, COMPARISON and BACKOFF the word; TARGET, COUNT, SLOT and SPREAD an integer.
    """

    opcode: Opcode
    operands: tuple[object, ...] = ()

    @property
    def target(self) -> int:
        """The instruction that it jumps to."""
        target = self.operands[self.opcode.operands.index(Operand.TARGET)]
        assert isinstance(target, int)  # the verifier checked it
        return target


class ExpressionCode(Record):
    """Stack code that ends in RETURN."""

    code: tuple[Instruction, ...]
    slots: int = 0
    """How many local variables it uses."""


class Pipeline(Record):
    """The code of one step's tasks. Labels are the operands of ENTER and MARK."""

    code: tuple[Instruction, ...]
    counters: int = 0
    """How many round counters it uses."""


class LoopHeader(Record):
    """One level of a loop."""

    collection: ExpressionCode
    iterator: str
    parallel: bool
    width: int | ExpressionCode
    """How many iterations may run at once, or what gives that number when the loop begins; 1 for a sequential loop."""
    distributed: bool
    reducers: tuple[tuple[str, str], ...]
    """ctx key and reducer, sorted by key."""
    rate: ExpressionCode | None = None
    """Gives how many iterations may begin (`max`) in how many seconds (`per`), as a mapping of both (S53)."""


class ArcCode(Record):
    """A way out of a step."""

    target: str
    """Name of the target step."""
    guard: ExpressionCode | None
    """None: it always holds."""
    args: ExpressionCode | None
    handles_failure: bool
    """The guard reads `event`, so a failure that takes this arc is a handled one (S31)."""


class Transition(Record):
    """A step."""

    name: str
    admit: ExpressionCode | None
    """A guard made of all admission rules; None: every token is admitted."""
    drops_denied: bool
    """`on_deny: drop`: a token that is not admitted is consumed instead of waiting."""
    loops: tuple[LoopHeader, ...]
    """Outermost first."""
    best_effort: bool
    """Failed iterations are counted instead of failing the step (S27)."""
    pipeline: Pipeline | None
    """None: pure routing."""
    inclusive: bool
    arcs: tuple[ArcCode, ...]
    settings: dict[str, Value]
    """Other settings of the runtime, as they were written: lifecycle, emit, tracing."""


class KeychainEntry(Record):
    """A keychain declaration, as it was written."""

    name: str
    kind: str
    settings: dict[str, Value]


class PlaybookCode(Record):
    """One playbook: its net, metadata, settings and workload."""

    name: str
    path: str
    metadata: dict[str, Value]
    """The rest of `metadata`."""
    executor: dict[str, Value]
    """`profile`, `version`, limits and other settings, as they were written, except those that the compiler applied."""
    entry_step: str
    final_step: str | None
    no_next_is_error: bool
    workload: dict[str, Value]
    keychain: tuple[KeychainEntry, ...]
    steps: tuple[Transition, ...]


class Mark(Record):
    """A place in a source file: 1-based line and column, and which file."""

    file: int
    line: int
    column: int


class DebugEntry(Record):
    """Where one piece of code was written."""

    address: str
    """`step`, `step/admit`, `step/loop.1/in`, `step/arc.2/when`, `step/arc.2/args`, `step/tool`, or the expression that
    operand i of pipeline instruction n holds: `step/tool.n.i`. Steps of further playbooks: `path#step…`."""
    construct: str
    """What the author wrote there: `arc`, `task fetch`, `choose`, `while`, `workbook save`."""
    marks: tuple[Mark, ...]
    """One for each instruction of the code at this address; a single one for a step or an arc."""


class DebugMap(Record):
    """From code to source and back. May be stripped from a bundle without changing its id."""

    files: tuple[str, ...]
    entries: tuple[DebugEntry, ...]
    """In the order of `addresses(program)`, one for each address."""


class Program(Record):
    """Everything in a bundle."""

    playbooks: tuple[PlaybookCode, ...]
    """The first one is the main one; the others are those it runs as children, sorted by path."""
    debug: DebugMap | None = None


class Address(Record):
    """A place in a program."""

    name: str
    code: tuple[Instruction, ...]
    """The code at the address; empty for a step or an arc, which are places without code of their own."""

    @property
    def marks(self) -> int:
        """How many places in the source belong to it."""
        return len(self.code) or 1


def addresses(program: Program) -> Iterator[Address]:
    """Yield every address: steps in order, each with its gate, loops, arcs and pipeline."""
    for index, playbook in enumerate(program.playbooks):
        prefix = "" if index == 0 else f"{playbook.path}#"
        yield from _of_playbook(playbook, prefix)


def _of_playbook(playbook: PlaybookCode, prefix: str) -> Iterator[Address]:
    for step in playbook.steps:
        yield from _of_step(step, prefix + step.name)


def _of_step(step: Transition, name: str) -> Iterator[Address]:
    yield Address(name, ())
    yield from _expression(f"{name}/admit", step.admit)
    for level, loop in enumerate(step.loops, 1):
        yield from _expression(f"{name}/loop.{level}/in", loop.collection)
        if isinstance(loop.width, ExpressionCode):
            yield from _expression(f"{name}/loop.{level}/width", loop.width)
        yield from _expression(f"{name}/loop.{level}/rate", loop.rate)
    for number, arc in enumerate(step.arcs, 1):
        yield Address(f"{name}/arc.{number}", ())
        yield from _expression(f"{name}/arc.{number}/when", arc.guard)
        yield from _expression(f"{name}/arc.{number}/args", arc.args)
    if step.pipeline:
        yield from _pipeline(f"{name}/tool", step.pipeline)


def _pipeline(name: str, pipeline: Pipeline) -> Iterator[Address]:
    yield Address(name, pipeline.code)
    for at, instruction in enumerate(pipeline.code):
        for index, (kind, value) in enumerate(zip(instruction.opcode.operands, instruction.operands, strict=True)):
            if kind in EXPRESSIONS and isinstance(value, ExpressionCode):
                yield Address(f"{name}.{at}.{index}", value.code)


def _expression(name: str, expression: ExpressionCode | None) -> Iterator[Address]:
    if expression is not None:
        yield Address(name, expression.code)


def usual_name(path: str) -> str:
    """Return what a playbook of this path is called unless it specifies otherwise."""
    return path.rpartition("/")[2]
