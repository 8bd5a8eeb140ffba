"""Runs one pipeline: calls tools, waits, requests child executions, and reports what happened.

An effect begins only when everything before it is durable and accepted, its own `task.started` included: so a crash can
repeat the task it interrupts, and no other, and nothing is done for a thread that the server has closed.

Only a tool that runs and a wait are tasks of the event loop. A pipeline that waits for a slot or for its report to be
durable is a callback.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

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
from noetlvm.store.wall_clock import WallClock
from noetlvm.tools.call import ToolCall, Tools, error
from noetlvm.tools.inputs import InputError, prepared

if TYPE_CHECKING:
    import asyncio


class Clock(Protocol):
    """The time, and waits."""

    def now(self) -> float:
        """Return seconds since 1970."""

    def monotonic(self) -> float:
        """Return seconds that only grow, since no particular moment."""

    async def sleep(self, seconds: float) -> None:
        """Return when that time has passed."""

    def rest(self, waiting: int) -> None:
        """Called when only this many tasks of the event loop are left, sleeping ones included."""


class SystemClock(WallClock):
    """The clock of the machine: time that a wall clock which is set does not change."""

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


Done: TypeAlias = Callable[[bool], None]
"""Called once a report is durable, with whether it was accepted."""


class Reporter(Protocol):
    """Takes a worker's reports to the server."""

    def send(self, work: Work, events: list[Event], done: Done | None = None) -> None:
        """Report, and do not wait. If the report is not accepted, the work is to be left."""


class Slots:
    """Tools that may run at once. The others wait in order."""

    def __init__(self, number: int) -> None:
        self._free = number
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_serving = False

    def take(self, use: Callable[[], None]) -> None:
        """Call `use` when a slot is free, which may be now. It has the slot until that is given back."""
        self._waiting.append(use)
        self._serve()

    def give_back(self) -> None:
        self._free += 1
        self._serve()

    def _serve(self) -> None:
        if self._is_serving:
            return  # a slot that is given back at once is for the next turn of the loop below
        self._is_serving = True
        while self._free and self._waiting:
            self._free -= 1
            self._waiting.popleft()()
        self._is_serving = False


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
    slots: Slots
    spawn: Callable[[Coroutine[Any, Any, None], Work], asyncio.Task[None]]
    """Continues a pipeline in the event loop."""
    is_stopping: Callable[[], bool]
    ended: Callable[[PipelineRun], None]
    """Called when a pipeline that had to wait for something has ended here."""
    records_inputs: bool = False
    """Events of calls contain the tool's inputs, which people read and replays compare."""


class PipelineRun:
    """One pipeline while it runs here."""

    __slots__ = (
        "_answer", "_frame", "_has_left", "_has_reported", "_has_slot", "_has_task_begun", "_offload", "_ports",
        "_secrets", "_task", "is_busy", "work",
    )  # fmt: skip

    def __init__(
        self, work: Work, playbook: LoadedPlaybook, secrets: Secrets, offload: Offload, ports: PipelinePorts
    ) -> None:
        self.work = work
        self._ports = ports
        self._secrets = secrets
        self._offload = offload
        self._answer = work.answer
        self._frame = frame_for(playbook, work, secrets.entries, offload, ports.clock.now)
        self.is_busy = False
        """A tool runs for it right now: a graceful stop lets it end."""
        self._task: asyncio.Task[None] | None = None
        """Of the tool that runs, or of the wait."""
        self._has_task_begun = False
        self._has_slot = False
        self._has_reported = False
        self._has_left = False

    def begin(self) -> bool:
        """Run until something has to be waited for; return whether there is something."""
        effect = self._advance()
        if type(effect) is Ended:
            self._ports.reporter.send(self.work, self._frame.take_events())
            return False
        self._perform(effect)
        return not self._has_left

    def stop(self, *, now: bool) -> None:
        """Leave: now, or as soon as no tool runs."""
        if self._task is None:
            self._leave()
        elif now or not self.is_busy:
            self._task.cancel()
            if not self._has_task_begun:  # then it ends without a step, and nothing else reports that
                self._leave()

    def _perform(self, effect: Effect | None) -> None:
        while effect is not None:
            if type(effect) is Ended or self._ports.is_stopping():
                self._end()
                return
            effect = _PERFORMED[type(effect)](self, effect)

    def _end(self) -> None:
        """Report what is left to report, and leave."""
        events = self._frame.take_events()
        if events:
            self._ports.reporter.send(self.work, events)
        self._leave()

    def _leave(self) -> None:
        if not self._has_left:
            self._has_left = True
            self._give_slot_back()
            self._ports.ended(self)

    def _give_slot_back(self) -> None:
        if self._has_slot:
            self._has_slot = False
            self._ports.slots.give_back()

    async def _stepped(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do what takes time, and continue."""
        self._has_task_begun = True
        try:
            await work()
            self._task = None
            self._perform(self._advance())
        except BaseException:
            self._leave()
            raise

    def _advance(self) -> Effect:
        """Run up to the next effect that takes time."""
        frame, tools, clock = self._frame, self._ports.tools, self._ports.clock
        monotonic = clock.monotonic
        until = monotonic() + AT_ONCE_SECONDS
        while True:
            effect = frame.advance(lambda: monotonic() >= until)
            if type(effect) is CallTool:
                now, answer = clock.now(), self._answer
                outcome = answer or tools.at_once(self._tool_call(effect))
                if outcome is None:
                    return effect
                meta = {"duration_ms": 0, **outcome.get("meta", {}), "ts": now}
                if answer is not None:
                    self._answer = None
                    frame.take_answer(answer, meta)
                else:
                    frame.events.append(frame.started(ts=now))
                    frame.complete({**outcome, "meta": meta})
            elif type(effect) is not Wait or effect.seconds or monotonic() >= until:
                return effect
            if monotonic() >= until:
                return Wait(0)

    # ---- effects

    def _wait(self, wait: Wait) -> None:
        self._report(partial(self._slept, wait))

    async def _slept(self, wait: Wait) -> None:
        if wait.seconds > 0:
            await self._ports.clock.sleep(wait.seconds)

    def _call(self, call: CallTool) -> Effect | None:
        if call.kind == PLAYBOOK:
            return self._request_child(call)
        self._ports.slots.take(partial(self._announce, call))
        return None

    def _announce(self, call: CallTool) -> None:
        """Report that a tool is about to run, now that it may."""
        ports, frame = self._ports, self._frame
        self._has_slot = True
        if self._has_left:
            self._give_slot_back()
        elif ports.is_stopping():
            self._end()
        else:
            began = ports.clock.now()
            inputs = frame.shown_inputs() if ports.records_inputs else {}
            self._report(partial(self._called, call, began), frame.started(ts=began, **inputs))

    async def _called(self, call: CallTool, began: float) -> None:
        self.is_busy = True
        try:
            outcome = await self._ports.tools.run(self._tool_call(call))
        finally:
            self.is_busy = False
            self._give_slot_back()
        is_secret, ended = gives_secret(call.kind), self._ports.clock.now()
        if is_secret:
            self._secrets.learn(outcome.get("result"), self._offload)
        meta = {"duration_ms": max(0, round((ended - began) * 1000)), "ts": ended}
        self._frame.complete({**outcome, "meta": meta}, repeatable=is_secret)

    def _tool_call(self, call: CallTool) -> ToolCall:
        entries, context = self._secrets.entries, self._frame.context
        return ToolCall(call.kind, call.inputs, call.spec, call.key, None, call.label, call.attempt, entries, context)

    def _request_child(self, call: CallTool) -> Effect | None:
        """Report the child execution that a task requests, and leave: a waiting parent holds no worker (S43)."""
        try:
            child = wanted_child(call, self._offload)
        except InputError as problem:
            self._frame.not_called(error("input", str(problem)))
            return self._advance()
        self._frame.events.append(self._frame.started(ts=self._ports.clock.now(), child=child))
        self._end()
        return None

    def _report(self, then: Callable[[], Coroutine[Any, Any, None]], *more: Event) -> None:
        """Report what happened, and continue with `then` once that is durable and accepted."""
        events = [*self._frame.take_events(), *more]
        if not events and not self._has_reported:  # time limits count from the first report
            events = [Event("step.started", {}, self.work.run, self.work.iteration)]
        self._has_reported = True

        def done(accepted: bool) -> None:
            if accepted and not self._has_left and not self._ports.is_stopping():
                self._has_task_begun = False
                self._task = self._ports.spawn(self._stepped(then), self.work)
            else:
                self._leave()

        self._ports.reporter.send(self.work, events, done)


def wanted_child(call: CallTool, offload: Offload) -> dict[str, Any]:
    """Return the child that a task requests as its event holds it. Raises InputError."""
    kind = find_kind(call.kind)
    assert kind is not None  # its own kind brought the task here
    wanted = prepared(kind, ToolCall(call.kind, call.inputs, call.spec, call.key))
    inputs, timeout = wanted.inputs, wanted.spec["timeout"]
    try:
        child = {**inputs, "workload": offload.fit(inputs.get("workload", {}))}
    except (TooLargeError, UnencodableError) as problem:
        raise InputError(f"`workload` cannot be passed on: {problem}") from None
    names = [str(inputs.get(name, "")) for name in ("path", "version", "return_step")]
    if sum(map(len, names)) > CHILD_NAME_CHARS_MAX:
        raise InputError(f"`path`, `version` and `return_step` may have {CHILD_NAME_CHARS_MAX:,} characters")
    if offload.redacted(names) is not names:
        raise InputError("`path`, `version` and `return_step` are recorded, so no secret may name a playbook")
    return child if timeout is None else child | {"timeout": timeout}


_PERFORMED: dict[type, Callable[[PipelineRun, Any], Effect | None]] = {
    CallTool: PipelineRun._call,
    Wait: PipelineRun._wait,
}
"""How each effect is performed; it may return the next one."""
