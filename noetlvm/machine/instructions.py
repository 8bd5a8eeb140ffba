"""What each instruction of a pipeline does, one function for each row of the table, and the effects that they return.

Binding an instruction gives a function of the frame: operands, targets and expressions are looked up once, when the
pipeline is first run. A function moves the frame on and returns None, or the effect that has to happen first.

A template that fails is the task's failure (S10). Where inputs are rendered it becomes the outcome, and the task's
rules decide. Where a rule itself fails (a guard, a patch, `attempts` or `delay`) nothing is left to decide: the task
fails, with `error.kind: template`, not retryable. Between tasks, in `choose`, `while` and `until`, the pipeline fails.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from noetlvm.bytecode.program import Instruction
from noetlvm.data.encoding import UnencodableError
from noetlvm.expr.errors import ExpressionError, Fuel, InternalError
from noetlvm.expr.numbers import seconds_of
from noetlvm.limits import MESSAGE_CHARS_MAX, WAIT_SECONDS_MAX
from noetlvm.machine.payload import TooLargeError

if TYPE_CHECKING:
    from noetlvm.machine.frame import Frame
    from noetlvm.machine.loaded import LoadedPipeline


class CallTool(NamedTuple):
    """Run a tool and give its outcome to `Frame.complete`."""

    kind: str
    inputs: dict[str, Any]
    spec: dict[str, Any]
    task: int
    """Number of the task run."""
    label: str
    attempt: int
    key: str
    """Identifier of the task run: the same for all attempts, and after a crash. Tools use it to do a thing once."""


class Wait(NamedTuple):
    """Let time pass before the next attempt."""

    seconds: float


class Ended(NamedTuple):
    """The pipeline has ended, as in its last event; or its wait is so long that the worker leaves it."""

    status: Literal["done", "failed", "suspended"]
    result: Any = None
    """As the event carries it: what is large is there by reference."""
    error: dict[str, Any] | None = None


Effect: TypeAlias = CallTool | Wait | Ended

DONE, FAILED = -1, -2
"""Program counters of a pipeline that has ended."""


def failure(kind: str, message: str, **details: Any) -> dict[str, Any]:
    """Return an error that is not retryable, as `outcome.error` has it (S19)."""
    return {"kind": kind, "retryable": False, "message": shortened(message), "details": details}


class LimitError(Exception):
    """A template gives no number where one is needed (S52). `error` is the failure that it leads to."""

    def __init__(self, error: dict[str, Any]) -> None:
        self.error = error
        super().__init__(error["message"])


def shortened(message: str) -> str:
    """Return a message as an event may hold it: it may quote something of any length."""
    return message if len(message) <= MESSAGE_CHARS_MAX else message[:MESSAGE_CHARS_MAX] + "…"


Perform: TypeAlias = "Callable[[Frame], Effect | None]"


def bind(code: tuple[Instruction, ...], pipeline: LoadedPipeline, *, is_checked: bool) -> tuple[Perform, ...]:
    """Return a function for each instruction."""
    performs = []
    for at, instruction in enumerate(code):
        name = instruction.opcode.name
        perform = BINDERS[name](pipeline, at, *instruction.operands)
        performs.append(_checked(perform, name, at, len(code)) if is_checked else perform)
    return tuple(performs)


# ---- tasks


def _enter(pipeline: LoadedPipeline, at: int, label: str) -> Perform:
    after, limit, waits = at + 1, pipeline.limits.max_transitions, label in pipeline.waits

    def enter(frame: Frame) -> Effect | None:
        if not waits and frame.tasks_counted >= limit:
            message = f"the pipeline ran {limit:,} tasks, as many as `limits.max_transitions` allows, and has not ended"
            return frame.give_up(failure("fuel", message), at)
        frame.enter(label, waits=waits)
        frame.pc = after
        return None

    return enter


def _call(pipeline: LoadedPipeline, at: int, kind: str, *_expressions: object) -> Perform:
    inputs, spec = pipeline.expression(at, 1), pipeline.expression(at, 2)

    def call(frame: Frame) -> Effect | None:
        rendering = inputs
        try:
            frame.inputs = given = rendering.run(frame.names, Fuel())
            rendering = spec
            settings = rendering.run(frame.names, Fuel())
        except ExpressionError as error:
            frame.not_rendered(rendering.failure(error))
            return None
        frame.has_called = True
        return CallTool(kind, given, settings, frame.task, frame.label, frame.attempt, frame.key)

    return call


def _on_error(_pipeline: LoadedPipeline, at: int, target: int) -> Perform:
    after = at + 1

    def on_error(frame: Frame) -> None:
        frame.pc = target if frame.outcome["status"] == "error" else after

    return on_error


def _unless(pipeline: LoadedPipeline, at: int, _guard: object, target: int) -> Perform:
    guard, after = pipeline.expression(at, 0), at + 1

    def unless(frame: Frame) -> Effect | None:
        try:
            frame.pc = after if guard.run(frame.names, Fuel()) else target
        except ExpressionError as error:
            return frame.give_up(guard.failure(error), at)
        return None

    return unless


def _patch(pipeline: LoadedPipeline, at: int, *_expressions: object) -> Perform:
    after = pipeline.code[at + 1]
    retry = _Retry(pipeline, at + 1, *after.operands) if after.opcode.name == "RETRY" else None
    written = [
        (name, value)
        for name, value in (("iter", pipeline.optional(at, 0)), ("ctx", pipeline.optional(at, 1)))
        if value
    ]

    def patch(frame: Frame) -> Effect | None:
        patches: dict[str, Any] = {}
        for name, values in written:
            try:
                patches[name] = values.run(frame.names, Fuel())
            except ExpressionError as error:
                return frame.give_up(values.failure(error), at)
        try:
            wait = retry.waits(frame) if retry else None  # all values of a `then` are computed before any is written
        except LimitError as problem:
            return frame.give_up(problem.error, at + 1)
        try:
            frame.write(patches)
        except (UnencodableError, TooLargeError) as error:
            kind = "template" if isinstance(error, UnencodableError) else "limit"
            message = f"{pipeline.locate(at)}: this cannot be written to state: {error}"
            return frame.give_up(failure(kind, message), at)
        if retry:
            return retry.perform(frame, wait)
        frame.pc = at + 1
        return None

    return patch


def _bind(_pipeline: LoadedPipeline, at: int) -> Perform:
    after = at + 1

    def bind_label(frame: Frame) -> None:
        frame.binds = True
        frame.pc = after

    return bind_label


# ---- directives


class _Retry:
    """A RETRY. What it computes and what it does are apart, because the PATCH of its `then` stands between them."""

    def __init__(self, pipeline: LoadedPipeline, at: int, *operands: Any) -> None:
        _limit, backoff, _delay, self._target = operands
        self._attempts, self._delay = pipeline.limit(at, 0, "attempts", least=1), pipeline.optional(at, 2)
        self._at, self._growth = at, _GROWTH[backoff]

    def __call__(self, frame: Frame) -> Effect | None:
        try:
            return self.perform(frame, self.waits(frame))
        except LimitError as problem:
            return frame.give_up(problem.error, self._at)

    def waits(self, frame: Frame) -> float | None:
        """Return the seconds before the next attempt; None if there is none left. Raises LimitError."""
        if frame.attempt >= self._attempts(frame.names):
            return None
        seconds = self._delay.number(frame.names, partial(seconds_of, field="delay")) if self._delay else 0
        return waiting_time(seconds, self._growth(frame.attempt))

    def perform(self, frame: Frame, wait: float | None) -> Effect | None:
        """Go to the next attempt after this time, or to the instruction after this one."""
        if wait is None:
            frame.exhausted = frame.attempt > 1
            frame.pc = self._at + 1
            return None
        return frame.retry(self._target, wait)


_GROWTH: dict[str, Callable[[int], int]] = {
    "none": lambda attempt: 1,
    "linear": lambda attempt: attempt,
    "exponential": lambda attempt: 2 ** min(attempt - 1, 62),  # by then every wait is the longest
}


def waiting_time(delay: float, factor: int) -> float:
    """Return the seconds to wait: never a negative number, never over the longest wait (S14)."""
    return min(max(min(delay, WAIT_SECONDS_MAX), 0) * factor, WAIT_SECONDS_MAX)


def _hand_on(do: str, _pipeline: LoadedPipeline, _at: int, target: int) -> Perform:
    def hand_on(frame: Frame) -> None:
        frame.end_task(do, target)
        frame.hand_on()

    return hand_on


def _skip(_pipeline: LoadedPipeline, _at: int, target: int) -> Perform:
    def skip(frame: Frame) -> None:
        frame.forget_outcome()
        frame.end_task("skip", target)

    return skip


def _break(_pipeline: LoadedPipeline, _at: int) -> Perform:
    def break_(frame: Frame) -> Ended:
        frame.end_task("break", DONE)
        frame.hand_on()
        return frame.finish()

    return break_


def _fail(_pipeline: LoadedPipeline, at: int) -> Perform:
    return lambda frame: frame.fail(at)


# ---- between tasks


def _end(_pipeline: LoadedPipeline, _at: int) -> Perform:
    def end(frame: Frame) -> Ended:
        frame.pc = DONE
        return frame.finish()

    return end


def _mark(pipeline: LoadedPipeline, at: int, _label: str) -> Perform:
    return _goto(pipeline, at, at + 1)


def _goto(_pipeline: LoadedPipeline, _at: int, target: int) -> Perform:
    def goto(frame: Frame) -> None:
        frame.pc = target

    return goto


def _reset(_pipeline: LoadedPipeline, at: int, slot: int) -> Perform:
    after = at + 1

    def reset(frame: Frame) -> None:
        frame.count(slot, 0)
        frame.pc = after

    return reset


def _round(pipeline: LoadedPipeline, at: int, slot: int, _limit: object) -> Perform:
    limit, after = pipeline.limit(at, 1, "max", least=0), at + 1

    def count(frame: Frame) -> Effect | None:
        rounds = frame.rounds[slot] + 1
        try:
            most = limit(frame.names)
        except LimitError as problem:
            return frame.give_up(problem.error, at)
        if rounds > most:
            message = f"{pipeline.locate(at)}: this went round {most:,} times, as often as `max` allows"
            return frame.give_up(failure("fuel", message), at)
        frame.count(slot, rounds)
        frame.pc = after
        return None

    return count


BINDERS: dict[str, Callable[..., Perform]] = {
    "ENTER": _enter,
    "MARK": _mark,
    "CALL": _call,
    "UNLESS": _unless,
    "ON_ERROR": _on_error,
    "PATCH": _patch,
    "BIND": _bind,
    "RETRY": _Retry,
    "GOTO": _goto,
    "CONTINUE": partial(_hand_on, "continue"),
    "JUMP_TO": partial(_hand_on, "jump"),
    "SKIP": _skip,
    "BREAK": _break,
    "FAIL": _fail,
    "END": _end,
    "RESET": _reset,
    "ROUND": _round,
}
"""How each instruction is bound, by its name."""


# ---- checked mode

_BETWEEN = frozenset({"MARK", "GOTO", "RESET", "ROUND", "END"})
_WITH_OUTCOME = frozenset({"ON_ERROR", "BIND", "RETRY", "CONTINUE", "JUMP_TO", "BREAK"})
_IN_TASK = frozenset({"PATCH", "SKIP", "FAIL"})


def _checked(perform: Perform, name: str, at: int, size: int) -> Perform:
    """Return the function with everything asserted that the verifier proved of the instruction."""

    def check(frame: Frame) -> Effect | None:
        _assert(frame.pc == at, at, "another instruction is due")
        _assert(name not in _BETWEEN or not frame.in_task, at, f"{name} stands inside a task")
        _assert(name not in _IN_TASK or frame.in_task, at, f"{name} needs a task")
        _assert(name not in _WITH_OUTCOME or (frame.in_task and bool(frame.outcome)), at, f"{name} needs an outcome")
        _assert(name != "CALL" or (frame.in_task and not frame.outcome), at, "CALL needs a task without an outcome")
        effect = perform(frame)
        _assert(frame.pc in (DONE, FAILED) or 0 <= frame.pc < size, at, "it goes to no instruction")
        if isinstance(effect, CallTool):
            _assert(isinstance(effect.inputs, dict) and isinstance(effect.spec, dict), at, "inputs are not a mapping")
        return effect

    return check


def _assert(holds: bool, at: int, message: str) -> None:
    if not holds:
        raise InternalError(f"instruction {at}: {message}")
