"""The worker in this process: begins and stops pipelines as the effects of decisions say."""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple

from noetlvm.data.event import Event
from noetlvm.machine.decide import work_for
from noetlvm.machine.messages import Effect, OpenWork, StopWork, Work, WorkerReport
from noetlvm.rounds.active import Active
from noetlvm.rounds.rounds import IsSpent, Round, Rounds
from noetlvm.tools.call import Tools
from noetlvm.worker.pipeline_run import Clock, Done, PipelinePorts, PipelineRun, Slots

INPUTS_MAX = 128
"""Inputs of one execution, and executions with inputs, that may wait for a decision before more pipelines begin."""


class PipelineSettings(NamedTuple):
    """What pipelines run with."""

    tools: Tools
    clock: Clock
    max_parallel: int
    records_inputs: bool


class Pipelines:
    """Pipelines of this process. It performs effects, and takes the reports of pipelines to their executions."""

    def __init__(self, rounds: Rounds, settings: PipelineSettings, is_spent: IsSpent, *, begins_early: bool) -> None:
        """`begins_early`: before their decision is written, if they begin with a call that waits for its report."""
        self.is_stopping = False
        self.wake = asyncio.Event()
        self.failure: BaseException | None = None
        """Of a task."""
        self.tasks: set[asyncio.Task[None]] = set()
        self._rounds = rounds
        self._clock = clock = settings.clock
        self._is_spent = is_spent
        self._begins_early = begins_early
        self._runs: dict[tuple[str, int, str], PipelineRun] = {}
        """Those that wait for something."""
        self._deferred: list[tuple[float, tuple[str, int, str, int]]] = []
        """Work that must not begin before a time: execution, run, iteration and lease."""
        self._left: deque[tuple[Active, Effect]] = deque()
        """Effects for which the last turn was too short."""
        self._ports = PipelinePorts(
            settings.tools,
            clock,
            self,
            Slots(settings.max_parallel),
            lambda pipeline, _work: self.spawn(pipeline),
            lambda: self.is_stopping,
            self._ended,
            settings.records_inputs,
        )

    @property
    def is_running(self) -> bool:
        """Return whether a pipeline waits for something."""
        return bool(self._runs)

    @property
    def busy(self) -> int:
        """Return how many tools run."""
        return sum(run.is_busy for run in self._runs.values())

    @property
    def has_backlog(self) -> bool:
        """Return whether effects wait for another turn."""
        return bool(self._left)

    def stop(self, *, now: bool) -> None:
        """Let no pipeline begin any more; running tools may end, or with `now` are cancelled."""
        self.is_stopping = True
        for run in list(self._runs.values()):
            run.stop(now=now)
        self.wake.set()

    # ---- effects

    def prepare(self, round: Round) -> bool:
        """Begin pipelines of decisions that are not written yet, up to their first call; return whether there are any.

        The call waits until its own report is durable, and this is written with the decision: one commit for both. A
        pipeline that begins with a tool that answers at once has to wait for the decision.
        """
        if not self._begins_early:
            return False
        is_any = False
        for active in round.executions:
            waiting, active.pending.effects = active.pending.effects, []
            for effect in waiting:
                if type(effect) is OpenWork and active.playbook.steps[effect.step].calls_first:
                    self._open(active, effect)
                    is_any = True
                else:
                    active.pending.effects.append(effect)
        return is_any

    def perform(self, effects: Sequence[tuple[Active, Effect]]) -> None:
        """Perform effects, now that their events are written, or will be before anything acts.

        A pipeline without a tool runs to its end here, so thousands of them take more than a turn, and their reports
        would delay a control or a stop.
        """
        left = self._left
        left.extend(effects)
        while left:
            active, effect = left.popleft()
            _PERFORMED[type(effect)](self, active, effect)
            if max(len(active.inbox), len(self._rounds.waiting)) >= INPUTS_MAX or self._is_spent(0):
                return

    def _open(self, active: Active, work: OpenWork) -> None:
        if work.not_before and work.not_before > self._clock.now():
            key = active.execution_id, work.run, work.iteration, work.lease
            heapq.heappush(self._deferred, (work.not_before, key))
        else:
            self._begin(active, work.run, work.iteration, work.lease)

    def _begin(self, active: Active, run: int, iteration: str, lease: int) -> None:
        if self.is_stopping:
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

    def _ended(self, run: PipelineRun) -> None:
        work = run.work
        key = work.execution_id, work.run, work.iteration
        if self._runs.get(key) is run:
            del self._runs[key]
        self.wake.set()

    # ---- deferred work

    @property
    def next_deferred(self) -> float | None:
        """Return when the first deferred work may begin."""
        return self._deferred[0][0] if self._deferred else None

    def begin_deferred(self) -> None:
        """Begin deferred work whose time has come."""
        now = self._clock.now()
        while self._deferred and self._deferred[0][0] <= now:
            _, (id, run, iteration, lease) = heapq.heappop(self._deferred)
            active = self._rounds.active.get(id)
            if active is not None and not active.state.paused:
                self._begin(active, run, iteration, lease)

    # ---- reports, and tasks of the event loop

    def send(self, work: Work, events: list[Event], done: Done | None = None) -> None:
        active = self._rounds.active.get(work.execution_id)
        if active is not None:
            self._rounds.submit(active, WorkerReport(work.run, work.iteration, work.lease, events), done)
            self.wake.set()
        elif done is not None:
            done(False)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something in the event loop while the engine runs."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._task_ended)
        return task

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.failure = task.exception()
        self.wake.set()


_PERFORMED: dict[type, Callable[[Pipelines, Active, Any], None]] = {
    OpenWork: Pipelines._open,
    StopWork: Pipelines._stop,
}
"""How each effect is performed that is left to this process."""
