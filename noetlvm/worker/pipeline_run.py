"""Runs one pipeline: calls tools, waits, requests child executions, and reports what happened.

An effect begins only when everything before it is durable and accepted, its own `task.started` included: so a crash can
repeat the task it interrupts, and no other, and nothing is done for a thread that the server has closed. A pipeline
whose tools answer at once never becomes a task of the event loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol

from noetlvm.data.encoding import UnencodableError
from noetlvm.data.event import Event
from noetlvm.language.tool_kinds import find_kind, gives_secret
from noetlvm.limits import CHILD_NAME_CHARS_MAX
from noetlvm.machine.frame import frame_for
from noetlvm.machine.instructions import CallTool, Effect, Ended, Wait
from noetlvm.machine.loaded import LoadedPlaybook
from noetlvm.machine.messages import Work
from noetlvm.machine.payload import Offload, TooLargeError
from noetlvm.record import Record
from noetlvm.tools.call import Outcome, ToolCall, Tools, error
from noetlvm.tools.inputs import InputError, prepared

if TYPE_CHECKING:
    import asyncio


JUMP_SECONDS = 5.0
"""By how much the wall clock may differ from monotonic time before that is reported."""


class Clock(Protocol):
    """The time, and waits."""

    def now(self) -> float:
        """Return seconds since 1970."""

    def monotonic(self) -> float:
        """Return seconds that only grow, since no particular moment."""

    async def sleep(self, seconds: float) -> None:
        """Return when that time has passed."""

    def rest(self, waiting: int) -> None:
        """Called when only so many tasks of the event loop are left, sleeping ones included."""


class SystemClock:
    """The clock of the machine: its wall clock at the start, and monotonic time since.

    A wall clock that is set while the process runs changes no wait and no limit; `jump` reports it.
    """

    def __init__(self) -> None:
        self._start = time.time() - time.monotonic()
        self._jumped = 0.0

    def now(self) -> float:
        return self._start + time.monotonic()

    def jump(self) -> float:
        """Return by how many seconds the wall clock was set since the last call; 0: by less than the tolerance."""
        away = time.time() - self.now()
        if abs(away - self._jumped) < JUMP_SECONDS:
            return 0.0
        jumped, self._jumped = away - self._jumped, away
        return jumped

    def catch_up(self, recorded: float) -> float:
        """Let time continue from the last recorded event if the wall clock is behind it; return by how much it was.

        Else a wait that began before the clock was set back would last until it has caught up.
        """
        behind = recorded - self.now()
        if behind < JUMP_SECONDS:
            return 0.0
        self._start += behind
        self._jumped -= behind
        return behind

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        from asyncio import sleep  # a replay reads pipelines without an event loop

        await sleep(seconds)

    def rest(self, waiting: int) -> None:
        """Real time passes by itself."""


AT_ONCE_SECONDS = 0.02
"""How long a pipeline may run tools that answer at once while everything else in the process waits."""

PLAYBOOK = "playbook"
"""The kind of task that the server performs (S43)."""


class Reporter(Protocol):
    """Takes a worker's reports to the server."""

    def send(self, work: Work, events: list[Event]) -> None:
        """Report, and do not wait."""

    async def report(self, work: Work, events: list[Event]) -> bool:
        """Report, and return once that is durable: whether it was accepted. If not, the work is to be left."""


class Secrets(Protocol):
    """What a pipeline sees as `keychain`."""

    entries: dict[str, Any]

    def learn(self, secret: Any, offload: Offload) -> None:
        """Redact a secret that a tool gave from now on (S45)."""


class PipelinePorts(Record):
    """What all pipelines of a worker share."""

    tools: Tools
    clock: Clock
    reporter: Reporter
    slots: asyncio.Semaphore
    """Tools that may run at once."""
    spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
    """Continues something in the event loop."""
    is_stopping: Callable[[], bool]
    ended: Callable[[PipelineRun], None]
    """Called when a pipeline that became a task has ended here."""
    records_inputs: bool = False
    """Events of calls carry what the tool is given, for people to read and for replays to compare."""


class PipelineRun:
    """One pipeline while it runs here."""

    __slots__ = (
        "_answer", "_frame", "_has_reported", "_has_task_begun", "_offload", "_ports", "_secrets",
        "is_busy", "task", "work",
    )  # fmt: skip

    def __init__(
        self, work: Work, playbook: LoadedPlaybook, secrets: Secrets, offload: Offload, ports: PipelinePorts
    ) -> None:
        self.work = work
        self._ports = ports
        self._secrets = secrets
        self._offload = offload
        self._answer = work.answer
        self._frame = frame_for(playbook, work, secrets.entries, offload)
        self.is_busy = False
        """A tool runs for it right now: an orderly stop lets it end."""
        self.task: asyncio.Task[None] | None = None
        self._has_task_begun = False
        self._has_reported = False

    def begin(self) -> None:
        """Run until something has to be waited for; then continue in the event loop."""
        effect = self._advance()
        if type(effect) is Ended:
            self._ports.reporter.send(self.work, self._frame.take_events())
        else:
            self.task = self._ports.spawn(self._go_on(effect))

    def stop(self, *, now: bool) -> None:
        """Leave: now, or as soon as no tool runs."""
        if self.task is not None and (now or not self.is_busy):
            self.task.cancel()
            if not self._has_task_begun:  # then it ends without a step, and nothing else says so
                self._has_task_begun = True
                self._ports.ended(self)

    async def _go_on(self, effect: Effect) -> None:
        ports = self._ports
        self._has_task_begun = True
        try:
            while type(effect) is not Ended and not ports.is_stopping():
                if not await _PERFORMED[type(effect)](self, effect):
                    break
                effect = self._advance()
            events = self._frame.take_events()
            if events:
                ports.reporter.send(self.work, events)
        finally:
            ports.ended(self)

    def _advance(self) -> Effect:
        """Run up to the next effect that takes time."""
        frame, tools, clock = self._frame, self._ports.tools, self._ports.clock
        monotonic = clock.monotonic
        until = monotonic() + AT_ONCE_SECONDS
        while True:
            effect = frame.advance(lambda: monotonic() >= until)
            if type(effect) is CallTool:
                now, outcome = clock.now(), self._known_outcome()
                if outcome is None:
                    outcome = tools.at_once(self._tool_call(effect))
                    if outcome is None:
                        return effect
                    frame.events.append(frame.started(ts=now))
                frame.complete({**outcome, "meta": {"duration_ms": 0, "ts": now}})
            elif type(effect) is not Wait or effect.seconds or monotonic() >= until:
                return effect
            if monotonic() >= until:
                return Wait(0)

    def _known_outcome(self) -> Outcome | None:
        """Return the outcome of the child that the pipeline waited for, the first time."""
        answer, self._answer = self._answer, None
        # A child's result may refer to stored ones, at any depth.
        return None if answer is None else self._offload.readable(answer)

    # ---- effects

    async def _wait(self, wait: Wait) -> bool:
        clock = self._ports.clock
        if not await self._report():
            return False
        since = clock.now() if wait.since is None else wait.since
        left = min(since + wait.seconds - clock.now(), wait.seconds)
        if left > 0:
            await clock.sleep(left)
        return True

    async def _call(self, call: CallTool) -> bool:
        if call.kind == PLAYBOOK:
            return self._request_child(call)
        ports, frame = self._ports, self._frame
        async with ports.slots:
            began = ports.clock.now()
            inputs = frame.shown_inputs() if ports.records_inputs else {}
            if ports.is_stopping() or not await self._report(frame.started(ts=began, **inputs)) or ports.is_stopping():
                return False
            outcome = await self._run_tool(self._tool_call(call))
            ended = ports.clock.now()
        meta = {"duration_ms": max(0, round((ended - began) * 1000)), "ts": ended}
        frame.complete({**outcome, "meta": meta}, repeatable=gives_secret(call.kind))
        return True

    async def _run_tool(self, call: ToolCall) -> Outcome:
        self.is_busy = True
        try:
            outcome = await self._ports.tools.run(call)
        finally:
            self.is_busy = False
        if gives_secret(call.kind):
            self._secrets.learn(outcome.get("result"), self._offload)
        return outcome

    def _tool_call(self, call: CallTool) -> ToolCall:
        entries, context = self._secrets.entries, self._frame.context
        return ToolCall(call.kind, call.inputs, call.spec, call.key, None, call.label, call.attempt, entries, context)

    def _request_child(self, call: CallTool) -> bool:
        """Report the child execution that a task wants, and leave: a waiting parent holds no worker (S43)."""
        try:
            child = wanted_child(call, self._offload)
        except InputError as problem:
            self._frame.complete(error("input", str(problem)))
            return True
        self._frame.events.append(self._frame.started(ts=self._ports.clock.now(), child=child))
        return False

    async def _report(self, *more: Event) -> bool:
        events = [*self._frame.take_events(), *more]
        if not events and not self._has_reported:  # time limits count from the first report
            events = [Event("step.started", {}, self.work.run, self.work.iteration)]
        self._has_reported = True
        return await self._ports.reporter.report(self.work, events)


def wanted_child(call: CallTool, offload: Offload) -> dict[str, Any]:
    """Return the child that a task wants as its event holds it. Raises InputError."""
    kind = find_kind(call.kind)
    assert kind is not None  # its own kind brought the task here
    wanted = prepared(kind, ToolCall(call.kind, call.inputs, call.spec, call.key))
    inputs, timeout = wanted.inputs, wanted.spec["timeout"]
    try:
        child = {**inputs, "workload": offload.fit(inputs.get("workload", {}))}
    except (TooLargeError, UnencodableError) as problem:
        raise InputError(f"`workload` cannot be handed on: {problem}") from None
    names = [str(inputs.get(name, "")) for name in ("path", "version", "return_step")]
    if sum(map(len, names)) > CHILD_NAME_CHARS_MAX:
        raise InputError(f"`path`, `version` and `return_step` may have {CHILD_NAME_CHARS_MAX:,} characters")
    if offload.redacted(names) is not names:
        raise InputError("`path`, `version` and `return_step` are recorded, so no secret may name a playbook")
    return child if timeout is None else child | {"timeout": timeout}


_PERFORMED: dict[type, Callable[[PipelineRun, Any], Coroutine[Any, Any, bool]]] = {
    CallTool: PipelineRun._call,
    Wait: PipelineRun._wait,
}
"""How each effect is performed; False: the pipeline does not continue here."""
