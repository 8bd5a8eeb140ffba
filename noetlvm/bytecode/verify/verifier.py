"""The verifier: proves that a program is safe to run, or says why not.

`load`, the one way from bytes to a program that may run, applies it to every bundle.

After it the machine can rely on the bundle: no missing name, target or value, no stack that runs empty, no secret on
the server's side. It runs no code, changes nothing, and takes time in proportion to the program.
"""

from __future__ import annotations

from collections.abc import Iterator

from noetlvm.bytecode.codec.decoder import decode
from noetlvm.bytecode.program import ArcCode, ExpressionCode, PlaybookCode, Program, Transition
from noetlvm.bytecode.verify.net import (
    Plain,
    StepChecks,
    check_debug,
    check_keychain,
    check_playbooks,
    check_steps,
)
from noetlvm.bytecode.verify.operands import CheckError, Located
from noetlvm.bytecode.verify.pipelines import prove_pipeline
from noetlvm.bytecode.verify.uses import ADMIT, ARC_ARGS, ARC_WHEN, LOOP_IN, LOOP_RATE, LOOP_WIDTH, Place, Uses
from noetlvm.language.names import LABEL


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
        """Refuse an arc that says it handles failures though its guard cannot see them, or the reverse (S31)."""
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
