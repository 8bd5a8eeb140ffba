"""The embedded engine: a server and a worker in one process and one event loop.

A tick lets the server decide on everything that has come in, write it, and hands the effects to the worker: begin
pipelines, stop them, wake up at a time. The machine decides, tools act; nothing here knows what a step is.

Where a write takes long and tools run meanwhile, it happens in a thread (`writer`): so the reports of many tools share
one commit.

With relaxed durability ticks share a write as long as nothing runs in the event loop: then only the machine has acted,
and a process that dies has only decisions to make again. Whatever enters the event loop finds everything written, and
while it is there each tick writes.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Executor
from time import monotonic
from typing import Any

from noetlvm.data.event import Event
from noetlvm.machine.decide import work_for
from noetlvm.machine.loaded import Bundle
from noetlvm.machine.messages import Input, OpenWork, StopWork, Work, WorkerReport
from noetlvm.results.interface import ResultStore
from noetlvm.rounds.active import Active, Ending
from noetlvm.rounds.credentials import Resolve, no_credentials
from noetlvm.rounds.identity import NewIds, new_ids
from noetlvm.rounds.rounds import CONTROLS, TURN_SECONDS, Observer, Server
from noetlvm.store.interface import Action, Store, StoreError
from noetlvm.tools.call import Tools
from noetlvm.worker.pipeline_run import Clock, Done, PipelinePorts, PipelineRun, Slots, SystemClock

MAX_PARALLEL = 32
"""Default number of tools that run at once."""

LISTEN_SECONDS = 0.2
"""Seconds between polls for requests of other processes."""

HOLD_SECONDS = 0.005
"""How long a decision waits at most for others to be written with, where durability is relaxed."""

_CLAIM = "embedded", 0.0
"""Name of the worker in this process, and when its claims end: at once for any process that opens the store."""

_LONG_AGO = float("-inf")

_LOG = logging.getLogger("noetlvm")

_TICKS_IN_A_ROW = 16
"""Ticks that run back to back before yielding to the event loop, when no task is known to wait."""
_INPUTS_MAX = 128
"""Inputs of one execution, and executions with inputs, that may wait for a decision before more pipelines begin."""


class Engine:
    """Runs executions over one store."""

    def __init__(
        self,
        store: Store,
        results: ResultStore,
        tools: Tools,
        *,
        resolve: Resolve = no_credentials,
        clock: Clock | None = None,
        ids: NewIds = new_ids,
        max_parallel: int = MAX_PARALLEL,
        observers: Sequence[Observer] = (),
        records_inputs: bool = False,
        writer: Executor | None = None,
        monotonic: Callable[[], float] = monotonic,
        **server: Any,
    ) -> None:
        """`monotonic` measures durations in this process, independently of `clock`."""
        self.clock: Clock = clock or SystemClock()
        self.server = Server(
            store,
            results,
            resolve=resolve,
            now=self.clock.now,
            ids=ids,
            observers=observers,
            assign=lambda _active, _work: _CLAIM,
            is_spent=self._is_spent,
            **server,
        )
        self._tools = tools
        self._runs: dict[tuple[str, int, str], PipelineRun] = {}
        """Pipelines that wait for something."""
        self._deferred: list[tuple[float, tuple[str, int, str, int]]] = []
        """Work that must not begin before a time: execution, run, iteration and lease."""
        self._alarm: tuple[float, asyncio.Task[None]] | None = None
        self._monotonic = monotonic
        self._holds_back = store.durability == "relaxed"
        self._written_at = self._tick_started = _LONG_AGO
        self._tasks: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()
        self._is_stopping = False
        self._unacted: dict[Active, None] = {}
        """Executions with effects for which the last turn was too short."""
        self._is_writing = False
        """A thread writes what was decided last."""
        self._writer = writer
        self._failure: BaseException | None = None
        self._ports = PipelinePorts(
            tools,
            self.clock,
            self,
            Slots(max_parallel),
            lambda pipeline, _work: self.spawn(pipeline),
            lambda: self._is_stopping,
            self._pipeline_ended,
            records_inputs,
        )

    @property
    def store(self) -> Store:
        return self.server.store

    # ---- executions

    def start(
        self,
        bundle: Bundle,
        payload: dict[str, Any],
        execution_id: str | None = None,
        *,
        ctx: dict[str, Any] | None = None,
    ) -> str:
        """Start the main playbook of a bundle, and return the execution's identifier. Raises BadRequestError."""
        return self.server.start(bundle, payload, execution_id, ctx=ctx)

    def retry(self, execution_id: str, bundle: Bundle | None = None) -> str:
        """Continue a failed execution as a new one, and return its identifier. Raises RefusedRetryError."""
        return self.server.retry(self.server.prepare_retry(execution_id, bundle))

    def resume(self, execution_id: str) -> str:
        """Continue an execution that was left; one that has ended only gets its ending."""
        active = self.server.resume(execution_id)
        if isinstance(self.clock, SystemClock):
            behind = self.clock.catch_up(active.state.now)
            if behind:
                _LOG.warning("the clock is %.0f s behind the last event; time continues from there", behind)
        return execution_id

    def control(self, execution_id: str, action: Action) -> None:
        """Cancel, pause or resume an execution that runs here."""
        active = self.server.active.get(execution_id)
        if active is not None:
            self.submit(active, CONTROLS[action])

    def control_idle(self, execution_id: str, action: Action) -> None:
        """Perform a control on an execution that no process runs. Nothing else moves; the engine is used up."""
        self._is_stopping = True
        active = self.server.activate(execution_id)
        if not active.state.is_over:
            self.submit(active, CONTROLS[action])
        while self.server.has_inputs():
            self.server.decide_waiting()
            self.server.write()

    async def run(self, *, listens: bool = False) -> None:
        """Run everything until it has ended, was stopped, or is paused with no one to resume it."""
        listener = asyncio.get_running_loop().create_task(self._listen()) if listens else None
        try:
            await self._drive(listener is not None)
            if listens:
                self.server.collect_requests()  # those that came while the last execution ended are acknowledged
        finally:
            self._is_stopping = True
            left = [*self._tasks, *([listener] if listener else [])]
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
            await self._tools.close()
            if self._writer is not None:
                self._writer.shutdown()

    def stop(self, *, now: bool = False) -> None:
        """Stop gracefully: running tools may end, nothing new begins. With `now`, those are cancelled."""
        self._is_stopping = True
        for run in list(self._runs.values()):
            run.stop(now=now)
        self._wake.set()

    @property
    def busy(self) -> int:
        """Number of tools that run."""
        return sum(run.is_busy for run in self._runs.values())

    def ending(self, execution_id: str) -> Ending:
        """Return the ending of an execution, or its current status."""
        return self.server.ending(execution_id)

    # ---- the loop

    async def _drive(self, listens: bool) -> None:
        ticks, turn = 0, self._monotonic()
        looked = turn
        while True:
            self._raise_failure()
            if self._monotonic() - looked > TURN_SECONDS:  # without a pause, no alarm is set
                looked = self._monotonic()
                self._take_due()
            if self._has_work() and not (self._is_stopping and self.server.can_wait()):
                await self._tick()
                ticks += 1
                is_long = self._monotonic() - turn > TURN_SECONDS
                if self._tasks or is_long or (listens and not ticks % _TICKS_IN_A_ROW):
                    turn = self._monotonic()
                    self._write()  # whatever gets a turn, be it to end the run, finds nothing that could be lost
                    await asyncio.sleep(0)
                continue
            self._write()
            if self._has_work() and not self._is_stopping:
                continue
            if self._set_alarm():
                await asyncio.sleep(0)  # it goes to sleep, and others may have something new
                continue
            if self._has_nothing_to_wait_for(listens):
                return
            self._wake.clear()
            self.clock.rest(len(self._tasks))
            await self._wake.wait()

    def _has_work(self) -> bool:
        return bool(self._unacted) or self.server.has_inputs()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _has_nothing_to_wait_for(self, listens: bool) -> bool:
        if self._is_stopping:
            return not self._runs
        return not self.server.active or not (self._tasks or listens)

    def _is_spent(self, _events: int) -> bool:
        return self._monotonic() - self._tick_started > TURN_SECONDS

    async def _tick(self) -> None:
        self._tick_started = self._monotonic()
        decided, self._unacted = self._unacted, {}
        decided |= dict.fromkeys(self.server.decide_waiting())
        if self._writer is not None:
            await self._write_in_thread(self._writer, decided)
        elif not self._may_wait():
            self._write()
        self._tick_started = self._monotonic()
        self._act(decided)

    async def _write_in_thread(self, writer: Executor, decided: dict[Active, None]) -> None:
        """Write in a thread if tools run meanwhile: what they report is then decided together."""
        self._is_writing = True
        try:
            if self._prepare(decided):  # they have reported that they are about to call their tools
                decided |= dict.fromkeys(self.server.decide_waiting())
            batch = self.server.take_batch()
            if not batch:
                return
            if self._runs:
                loop = asyncio.get_running_loop()
                conflicts = await loop.run_in_executor(writer, self.server.write_batch, batch)
            else:
                conflicts = self.server.write_batch(batch)
        finally:
            self._is_writing = False
        self.server.finish_write(batch, conflicts)

    def _prepare(self, decided: Iterable[Active]) -> bool:
        """Begin pipelines of decisions that are not written yet, up to their first call; return whether there are any.

        The call waits until its own report is durable, and this is written with the decision: one commit for both. A
        pipeline that begins with a tool that answers at once has to wait for the decision.
        """
        is_any = False
        for active in decided:
            waiting, active.effects = active.effects, []
            for effect in waiting:
                if type(effect) is OpenWork and active.playbook.steps[effect.step].calls_first:
                    self._open(active, effect)
                    is_any = True
                else:
                    active.effects.append(effect)
        return is_any

    def _may_wait(self) -> bool:
        """Return whether what was decided may be written together with what is decided next."""
        return self._holds_back and not self._tasks and self._monotonic() - self._written_at < HOLD_SECONDS

    def _write(self) -> None:
        if self._is_writing:
            return  # all that was decided is on its way, and nothing acts on it before it is there
        self.server.write()
        if self._holds_back:
            self._written_at = self._monotonic()

    # ---- effects

    def _act(self, decided: dict[Active, None]) -> None:
        """Perform the effects of executions, now that their events are written, or will be before anything acts.

        A pipeline without a tool runs to its end here, so thousands of them take more than a turn, and their reports
        would delay a control or a stop.
        """
        left = list(decided)
        for position, active in enumerate(left):
            effects = self.server.take_effects(active)
            for number, effect in enumerate(effects, 1):
                _PERFORMED[type(effect)](self, active, effect)
                if self._has_backlog(active) or self._is_spent(0):
                    active.effects = [*effects[number:], *active.effects]
                    self._unacted = dict.fromkeys(left[position if active.effects else position + 1 :])
                    return

    def _has_backlog(self, active: Active) -> bool:
        return max(len(active.inbox), self.server.waiting_executions) >= _INPUTS_MAX

    def _open(self, active: Active, work: OpenWork) -> None:
        if work.not_before and work.not_before > self.clock.now():
            key = active.execution_id, work.run, work.iteration, work.lease
            heapq.heappush(self._deferred, (work.not_before, key))
        else:
            self._begin(active, work.run, work.iteration, work.lease)

    def _begin(self, active: Active, run: int, iteration: str, lease: int) -> None:
        if self._is_stopping:
            return
        work = work_for(active.playbook, active.state, run, iteration, active.offload)
        known = self._runs.get((active.execution_id, run, iteration))
        if work is None or work.lease != lease or (known and known.work.lease == lease):
            return
        pipeline = PipelineRun(work, active.playbook, active.credentials, active.offload, self._ports)
        if pipeline.begin():
            self._runs[active.execution_id, run, iteration] = pipeline

    def _stop(self, active: Active, work: StopWork) -> None:
        run = self._runs.get((active.execution_id, work.run, work.iteration))
        if run is not None and run.work.lease <= work.lease:
            run.stop(now=True)

    def _pipeline_ended(self, run: PipelineRun) -> None:
        work = run.work
        key = work.execution_id, work.run, work.iteration
        if self._runs.get(key) is run:
            del self._runs[key]
        self._wake.set()

    # ---- reports

    def send(self, work: Work, events: list[Event], done: Done | None = None) -> None:
        active = self.server.active.get(work.execution_id)
        if active is not None:
            self.submit(active, WorkerReport(work.run, work.iteration, work.lease, events), done)
        elif done is not None:
            done(False)

    def submit(self, active: Active, given: Input, done: Done | None = None) -> None:
        """Let an execution decide on an input."""
        self.server.submit(active, given, done)
        self._wake.set()

    # ---- time, and other processes

    def _set_alarm(self) -> bool:
        """Wake up when the first timer is due or the first deferred work may begin; return whether that is new."""
        times = [time for time in (self.server.next_due, *(row[0] for row in self._deferred[:1])) if time is not None]
        due = min(times, default=None)
        if self._alarm is not None:
            if self._alarm[0] == due:
                return False
            self._alarm[1].cancel()
            self._tasks.discard(self._alarm[1])
        self._alarm = None if due is None else (due, self.spawn(self._ring(due)))
        return due is not None

    async def _ring(self, due: float) -> None:
        await self.clock.sleep(due - self.clock.now())
        self._alarm = None
        self._take_due()

    def _take_due(self) -> None:
        """Give a turn to timers that are due and to deferred work that may begin."""
        self.server.collect_due()
        now = self.clock.now()
        while self._deferred and self._deferred[0][0] <= now:
            _, (id, run, iteration, lease) = heapq.heappop(self._deferred)
            active = self.server.active.get(id)
            if active is not None and not active.state.paused:
                self._begin(active, run, iteration, lease)

    async def _listen(self) -> None:
        """Poll for requests of other processes, in real time."""
        while True:
            if not self._is_writing:
                with contextlib.suppress(StoreError):  # what the store cannot do now is tried again
                    self.server.collect_requests()
            if self.server.has_inputs():
                self._wake.set()
            jumped = self.clock.jump() if isinstance(self.clock, SystemClock) else 0.0
            if jumped:
                _LOG.warning("the wall clock was set by %+.0f s; waits and limits do not change", jumped)
            await asyncio.sleep(LISTEN_SECONDS)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something in the event loop while the engine runs."""
        try:
            self._write()  # what runs in the event loop may be seen by the world
        except BaseException:  # whatever stopped it, Python warns of a coroutine that is never awaited
            work.close()
            raise
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._failure = task.exception()
        self._wake.set()


_PERFORMED: dict[type, Callable[[Engine, Active, Any], None]] = {
    OpenWork: Engine._open,
    StopWork: Engine._stop,
}
"""How each effect is performed that the server leaves to this process."""
