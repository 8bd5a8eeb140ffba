"""Performs what one pipeline asks for: calls tools, waits, asks for child executions, and reports what happened.

An effect begins only when everything before it is durable; so a crash can repeat the task it interrupts, and no other.
A pipeline that needs no waiting, because its tools answer at once, never becomes a task of the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from noetlvm.data.event import Event
from noetlvm.engine.children import child_asked
from noetlvm.engine.clock import Clock
from noetlvm.language.tool_kinds import gives_secret
from noetlvm.machine.effects import Call, Effect, Ended, Wait
from noetlvm.machine.frame import frame_for
from noetlvm.record import Record
from noetlvm.tools.call import Outcome, ToolCall, Tools, error
from noetlvm.tools.inputs import InputError

if TYPE_CHECKING:
    from noetlvm.engine.actor import Actor
    from noetlvm.machine.control import Work

AT_ONCE_MAX = 500
"""Tasks that one pipeline may run in a row while everybody else waits."""

PLAYBOOK = "playbook"


class Surroundings(Record):
    """What all workers of an engine share."""

    tools: Tools
    clock: Clock
    slots: asyncio.Semaphore
    """Tools that may run at once."""
    spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
    """Goes on with something in the event loop."""
    moved: Callable[[Actor], None]
    """Tells the engine that an actor has something in its inbox."""
    is_stopping: Callable[[], bool]


class Worker:
    """One pipeline while it runs here."""

    __slots__ = ("_actor", "_answer", "_around", "_command", "_frame", "is_busy", "task")

    def __init__(self, actor: Actor, work: Work, around: Surroundings) -> None:
        self._actor = actor
        self._around = around
        self._command = work.command
        self._answer = work.answer
        self._frame = frame_for(actor.control, work, actor.credentials.entries)
        self.is_busy = False
        """A tool runs for it right now: an orderly stop lets it end."""
        self.task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Run as far as nothing has to be waited for; then go on in the event loop."""
        effect = self._advance()
        if type(effect) is Ended:
            self._report()
            return
        self._actor.workers[self._command.run, self._command.iteration] = self
        self.task = self._around.spawn(self._go_on(effect))

    def stop(self, *, now: bool) -> None:
        """Leave off: now, or as soon as no tool runs."""
        if self.task is not None and (now or not self.is_busy):
            self.task.cancel()

    # ---- running

    async def _go_on(self, effect: Effect) -> None:
        try:
            while type(effect) is not Ended and not self._around.is_stopping():
                if not await _PERFORMED[type(effect)](self, effect):
                    break
                effect = self._advance()
            self._report()
        finally:
            self._actor.workers.pop((self._command.run, self._command.iteration), None)
            self._around.moved(self._actor)

    def _advance(self) -> Effect:
        """Run up to the next effect that takes time."""
        frame, around = self._frame, self._around
        for _ in range(AT_ONCE_MAX):
            effect = frame.advance()
            if type(effect) is not Call:
                return effect
            answered = self._answer is not None
            outcome = self._take_answer() if answered else around.tools.at_once(self._tool_call(effect))
            if outcome is None:
                return effect
            frame.complete({**outcome, "meta": {"duration_ms": 0, "ts": around.clock.now()}})
        return Wait(0)

    def _take_answer(self) -> Outcome | None:
        answer, self._answer = self._answer, None
        # A child's result may refer to stored ones, at any depth.
        return None if answer is None else self._actor.control.offload.readable(answer)

    async def _wait(self, wait: Wait) -> bool:
        clock = self._around.clock
        await self._durable()
        since = clock.now() if wait.since is None else wait.since
        left = since + wait.seconds - clock.now()
        if left > 0:
            await clock.sleep(left)
        return True

    async def _call(self, call: Call) -> bool:
        if call.kind == PLAYBOOK:
            return self._ask_for_child(call)
        around, frame = self._around, self._frame
        async with around.slots:
            if self._gives_back():
                return False
            began = around.clock.now()
            if frame.events:
                frame.events.append(frame.started(ts=began))
                await self._durable()
            else:
                self._report(frame.started(ts=began))
            if around.is_stopping():
                return False
            outcome = await self._run_tool(self._tool_call(call))
            ended = around.clock.now()
        meta = {"duration_ms": round((ended - began) * 1000), "ts": ended}
        frame.complete({**outcome, "meta": meta}, repeatable=gives_secret(call.kind))
        return True

    def _gives_back(self) -> bool:
        """Leave a pipeline whose loop has failed while it waited for its first tool, as if it had never begun."""
        command, control = self._command, self._actor.control
        if not control.is_in_vain(command.run, command.iteration):
            return False
        self._frame.take_events()
        self._actor.inbox.append(partial(control.give_back, command.run, command.iteration, command.lease))
        return True

    async def _run_tool(self, call: ToolCall) -> Outcome:
        self.is_busy = True
        try:
            outcome = await self._around.tools.run(call)
        finally:
            self.is_busy = False
        if gives_secret(call.kind):
            self._actor.credentials.learn(outcome.get("result"), self._actor.control.offload)
        return outcome

    def _tool_call(self, call: Call) -> ToolCall:
        entries, context = self._actor.credentials.entries, self._frame.context
        return ToolCall(call.kind, call.inputs, call.spec, call.key, None, call.label, call.attempt, entries, context)

    def _ask_for_child(self, call: Call) -> bool:
        """Ask for a child execution, and leave: a parent that waits holds nothing (S43)."""
        try:
            child = child_asked(call, self._actor.control.offload)
        except InputError as problem:
            self._frame.complete(error("input", str(problem)))
            return True
        self._report(self._frame.started(ts=self._around.clock.now(), child=child))
        return False

    # ---- reporting

    def _report(self, *more: Event) -> None:
        events = self._frame.take_events()
        events += more
        if events:
            command, control = self._command, self._actor.control
            told = partial(control.report, command.run, command.iteration, command.lease, events)
            self._actor.inbox.append(told)
            self._around.moved(self._actor)

    async def _durable(self) -> None:
        """Report, and come back when it cannot be lost any more."""
        self._report()
        done = asyncio.get_running_loop().create_future()
        self._actor.waiting.append(done)
        self._around.moved(self._actor)
        await done


_PERFORMED: dict[type, Callable[[Worker, Any], Coroutine[Any, Any, bool]]] = {
    Call: Worker._call,
    Wait: Worker._wait,
}
"""How each effect is performed; False: the pipeline does not go on here."""
