"""The verifier: proves that a program is safe to run, or reports why not.

`load`, the one way from bytes to a program that may run, applies it to every bundle.

After it the machine can rely on the bundle: no missing name, target or value, no stack that runs empty, no secret on
the server's side. It runs no code, changes nothing, and takes time in proportion to the program.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TypeAlias

from noetlvm.bytecode.codec.decoder import decode
from noetlvm.bytecode.isa import REDUCERS
from noetlvm.bytecode.limits import LOOPS_MAX
from noetlvm.bytecode.program import (
    ArcCode,
    DebugEntry,
    DebugMap,
    ExpressionCode,
    LoopHeader,
    PlaybookCode,
    Program,
    Transition,
    addresses,
)
from noetlvm.bytecode.verify.expressions import ADMIT, ARC_ARGS, ARC_WHEN, LOOP_IN, LOOP_RATE, LOOP_WIDTH, Place, Uses
from noetlvm.bytecode.verify.operands import CheckError, Located
from noetlvm.bytecode.verify.pipelines import Plain, prove_pipeline
from noetlvm.language.names import LABEL, ONE_LINE, STEP_NAME, VARIABLE, WORD
from noetlvm.language.scopes import given_fields


def verify(program: Program) -> None:
    """Return if the program is valid, else raise InvalidBundleError with the first reason why not."""
    with Located("metadata"):
        check_playbooks(program.playbooks)
    verification = _Verification()
    for index, playbook in enumerate(program.playbooks):
        verification.check(playbook, "" if index == 0 else f"{playbook.path}#")
    if program.debug is not None:
        with Located("debug"):
            check_debug(program, program.debug)


class _Verification:
    """One run of the verifier: what stands in many places is proven in the first."""

    def __init__(self) -> None:
        self.steps = StepChecks()
        self.labels = Plain(LABEL)
        self.uses = Uses()

    def check(self, playbook: PlaybookCode, prefix: str) -> None:
        """Verify a playbook; `prefix` begins the addresses of its steps."""
        with Located("net", prefix):
            names = check_steps(playbook)
        with Located("keychain", prefix):
            check_keychain(playbook)
        for index, step in enumerate(playbook.steps):
            with Located("net", prefix, step.name):
                self.steps.check(step, index, names)
            self._check_expressions(step, prefix)
            self._check_pipeline(step, prefix)
            with Located("net", prefix, step.name):
                self._check_failures(step, index)

    def _check_expressions(self, step: Transition, prefix: str) -> None:
        for part, expression, place, in_loop in _expressions(step):
            try:
                self.uses.check(expression, place, in_loop=in_loop)
            except CheckError as refused:
                raise refused.at_address("expressions", f"{prefix}{step.name}/{part}") from None

    def _check_pipeline(self, step: Transition, prefix: str) -> None:
        if step.pipeline is None:
            return
        in_loop = bool(step.loops)
        with Located("pipelines", prefix, step.name, "/tool"):
            expressions = prove_pipeline(step.pipeline, self.labels, in_loop=in_loop)
        for use in expressions:
            try:
                self.uses.check(use.expression, use.place, in_loop=in_loop)
            except CheckError as refused:
                part = f"tool.{use.at}.{use.operand}"
                raise refused.at_address("expressions", f"{prefix}{step.name}/{part}") from None

    def _check_failures(self, step: Transition, index: int) -> None:
        """Refuse an arc that is marked as handling failures though its guard cannot see them, or the reverse (S31)."""
        for number, arc in enumerate(step.arcs, 1):
            if arc.handles_failure != self._reads_event(arc):
                reads = "does not read" if arc.handles_failure else "reads"
                raise CheckError("V080", index, f"its guard {reads} `event`", f"arc.{number}")

    def _reads_event(self, arc: ArcCode) -> bool:
        return arc.guard is not None and "event" in self.uses.check(arc.guard, ARC_WHEN, in_loop=False).names


def _expressions(step: Transition) -> Iterator[tuple[str, ExpressionCode, Place, bool]]:
    """Yield the expressions outside the pipeline: their address in the step, place, and whether `iter` exists there."""
    if step.admit is not None:
        yield "admit", step.admit, ADMIT, False
    for level, loop in enumerate(step.loops, 1):
        yield f"loop.{level}/in", loop.collection, LOOP_IN, level > 1
        if isinstance(loop.width, ExpressionCode):
            yield f"loop.{level}/width", loop.width, LOOP_WIDTH, level > 1
        if loop.rate is not None:
            yield f"loop.{level}/rate", loop.rate, LOOP_RATE, level > 1
    for number, arc in enumerate(step.arcs, 1):
        if arc.guard is not None:
            yield f"arc.{number}/when", arc.guard, ARC_WHEN, False
        if arc.args is not None:
            yield f"arc.{number}/args", arc.args, ARC_ARGS, False


def load(data: bytes, *, debug: bool = True) -> Program:
    """Return a bundle's program. Raises MalformedBundleError or InvalidBundleError, whatever the bytes are.

    Without `debug` the debug section stays unread: a machine needs it only once something has gone wrong.
    """
    program = decode(data, debug=debug)
    verify(program)
    return program


_GIVEN = given_fields("iter")

Reducers: TypeAlias = tuple[tuple[str, str], ...]
"""As a loop has them: keys of ctx, and what combines them."""


def check_playbooks(playbooks: tuple[PlaybookCode, ...]) -> None:
    """Refuse playbooks that cannot be in one bundle. Offsets count playbooks."""
    if not playbooks:
        raise CheckError("V070", 0, "the first playbook of a bundle is the one that it runs")
    for index, playbook in enumerate(playbooks):
        if not ONE_LINE.match(playbook.name) or not ONE_LINE.match(playbook.path):
            raise CheckError("V072", index, f"name {playbook.name!r}, path {playbook.path!r}")
    paths = [playbook.path for playbook in playbooks]
    repeated = first_repeated(paths)
    if repeated is not None:
        raise CheckError("V073", repeated, f"`{paths[repeated]}`")
    for index in range(2, len(paths)):
        if paths[index] < paths[index - 1]:
            raise CheckError("V074", index, f"`{paths[index]}` after `{paths[index - 1]}`")


def check_steps(playbook: PlaybookCode) -> frozenset[str]:
    """Refuse steps with duplicate or missing names; return their names. Offsets count steps."""
    names = [step.name for step in playbook.steps]
    if not names:
        raise CheckError("V071", 0, "at least the entry step is needed")
    plain = Plain(STEP_NAME)
    for index, name in enumerate(names):
        if not plain.holds(name):
            raise CheckError("V076", index, f"`{name}`")
    repeated = first_repeated(names)
    if repeated is not None:
        raise CheckError("V075", repeated, f"`{names[repeated]}`")
    if playbook.entry_step not in names:
        raise CheckError("V077", 0, f"`{playbook.entry_step}`")
    if playbook.final_step is not None and playbook.final_step not in names:
        raise CheckError("V078", 0, f"`{playbook.final_step}`")
    return frozenset(names)


class StepChecks:
    """Checks steps, and records what is in order: many loops may share an iterator's name or a list of reducers."""

    def __init__(self) -> None:
        self._iterators = Plain(VARIABLE)
        self._reducers: set[Reducers] = set()

    def check(self, step: Transition, index: int, names: Collection[str]) -> None:
        """Refuse a step with a loop that cannot run or an arc to nowhere; `index` is where the step stands."""
        for number, arc in enumerate(step.arcs, 1):
            if arc.target not in names:
                raise CheckError("V079", index, f"`{arc.target}`", f"arc.{number}")
        if len(step.loops) > LOOPS_MAX:
            raise CheckError("V087", index, f"{len(step.loops)} levels, at most {LOOPS_MAX} may be")
        iterators: set[str] = set()
        for level, loop in enumerate(step.loops, 1):
            self._check_loop(loop, index, f"loop.{level}")
            if loop.iterator in iterators:
                raise CheckError("V084", index, f"`{loop.iterator}`", f"loop.{level}")
            iterators.add(loop.iterator)

    def _check_loop(self, loop: LoopHeader, index: int, part: str) -> None:
        if loop.width == 0:
            raise CheckError("V081", index, "its width is 0", part)
        if loop.width != 1 and not loop.parallel:
            width = loop.width if isinstance(loop.width, int) else "an expression"
            raise CheckError("V082", index, f"its width is {width}", part)
        if not self._iterators.holds(loop.iterator) or loop.iterator in _GIVEN:
            raise CheckError("V083", index, f"`{loop.iterator}`", part)
        if loop.reducers not in self._reducers:
            _check_reducers(loop.reducers, index, part)
            self._reducers.add(loop.reducers)


def _check_reducers(reducers: Reducers, index: int, part: str) -> None:
    previous: str | None = None
    for key, reducer in reducers:
        if reducer not in REDUCERS:
            raise CheckError("V085", index, f"`{reducer}` of `{key}`; there are {', '.join(REDUCERS)}", part)
        if previous is not None and key <= previous:
            raise CheckError("V086", index, f"`{key}` after `{previous}`", part)
        previous = key


def check_keychain(playbook: PlaybookCode) -> None:
    """Refuse credentials with duplicate or invalid names. Offsets count credentials."""
    names = [credential.name for credential in playbook.keychain]
    for index, credential in enumerate(playbook.keychain):
        if not WORD.match(credential.name):
            raise CheckError("V089", index, f"`{credential.name}`")
        if not ONE_LINE.match(credential.kind):
            raise CheckError("V090", index, f"`{credential.name}`")
    repeated = first_repeated(names)
    if repeated is not None:
        raise CheckError("V088", repeated, f"`{names[repeated]}`")


def first_repeated(names: Iterable[str]) -> int | None:
    """Return the index of the first duplicate name."""
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name in seen:
            return index
        seen.add(name)
    return None


def check_debug(program: Program, debug: DebugMap) -> None:
    """Refuse a debug map that does not belong to the program. Offsets count entries, those of files count files."""
    files = debug.files
    repeated = first_repeated(files)
    if repeated is not None:
        raise CheckError("V106", repeated, f"`{files[repeated]}`")
    count = 0
    for index, address in enumerate(addresses(program)):
        count += 1
        if index >= len(debug.entries):
            raise CheckError("V100", index, f"`{address.name}`")
        entry = debug.entries[index]
        if entry.address != address.name:
            raise CheckError("V102", index, f"`{entry.address}` instead of `{address.name}`")
        if len(entry.marks) != address.marks:
            raise CheckError("V103", index, f"`{entry.address}` has {len(entry.marks)}, not {address.marks}")
        _check_marks(entry, index, len(files))
    if len(debug.entries) > count:
        raise CheckError("V101", count, f"`{debug.entries[count].address}`")


def _check_marks(entry: DebugEntry, index: int, files: int) -> None:
    for mark in entry.marks:
        if not 0 <= mark.file < files:
            raise CheckError("V104", index, f"file {mark.file} of {files}, at `{entry.address}`")
        if mark.line < 1 or mark.column < 1:
            raise CheckError("V105", index, f"{mark.line}:{mark.column}, at `{entry.address}`")
