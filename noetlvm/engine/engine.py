"""The embedded engine: the loop of rounds with a worker in the same process and one event loop.

Where a write takes long and tools run meanwhile, it happens in a thread (`writer`): so the reports of many tools share
one commit.

With relaxed durability rounds share a write as long as nothing runs in the event loop: then only the machine has acted,
and a process that dies has only decisions to make again. Whatever enters the event loop finds everything written, and
while it is there each round is written.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from time import monotonic
from typing import Any, TypeVar

from noetlvm.data.event import Recorded
from noetlvm.engine.pace import Budget, EmbeddedPace
from noetlvm.engine.pipelines import Pipelines, PipelineSettings
from noetlvm.machine.loaded import Bundle
from noetlvm.machine.messages import Input
from noetlvm.record import Record
from noetlvm.results.interface import ResultStore
from noetlvm.rounds.active import Active, Ending
from noetlvm.rounds.admission import Admission
from noetlvm.rounds.credentials import Resolve, no_credentials
from noetlvm.rounds.intake import Intake
from noetlvm.rounds.library import Library
from noetlvm.rounds.loop import RoundLoop, ThreadedWriter
from noetlvm.rounds.requests import record_refusal
from noetlvm.rounds.rounds import CONTROLS, News, Rounds
from noetlvm.store.interface import Action, Execution, Store, StoreError
from noetlvm.tools.call import Tools
from noetlvm.worker.pipeline_run import Clock, SystemClock

MAX_PARALLEL = 32
"""Default number of tools that run at once."""

LISTEN_SECONDS = 0.2
"""Seconds between polls for requests of other processes."""

_CLAIM = "embedded", 0.0
"""Name of the worker in this process, and when its claims end: at once for any process that opens the store."""

_LOG = logging.getLogger("noetlvm")

_Answer = TypeVar("_Answer")
Observer = Callable[[Execution, Sequence[Recorded]], None]
"""Gets the events of an execution once they are durable, and its row."""


class EngineOptions(Record):
    """What a caller of an engine may choose."""

    resolve: Resolve = no_credentials
    max_parallel: int = MAX_PARALLEL
    observers: tuple[Observer, ...] = ()
    records_inputs: bool = False
    writer: Executor | None = None
    """Writes while tools run."""


_DEFAULTS = EngineOptions()


class Engine:
    """Runs executions over one store."""

    def __init__(
        self,
        store: Store,
        results: ResultStore,
        tools: Tools,
        options: EngineOptions = _DEFAULTS,
        *,
        clock: Clock | None = None,
        rounds: Rounds | None = None,
        budget: Budget | None = None,
    ) -> None:
        """`budget` measures turns by a clock of this process, independently of `clock`."""
        self.store = store
        self.clock: Clock = clock or SystemClock()
        self.rounds = rounds = rounds or Rounds()
        self.endings: dict[str, Ending] = {}
        """Of executions that were started or resumed here, once they have ended."""
        self._tools = tools
        self._writer = options.writer
        budget = budget or Budget(monotonic)
        self._library = library = Library(store, results, is_shared=False)
        self._admission = Admission(rounds, library, options.resolve, self.clock.now)
        self.intake = Intake(rounds, library, self._admission)
        self.pipelines = Pipelines(
            rounds,
            PipelineSettings(tools, self.clock, options.max_parallel, options.records_inputs),
            budget.is_spent,
            begins_early=options.writer is not None,
        )
        self._pace = EmbeddedPace(
            rounds, self.intake, self.pipelines, self.clock, budget, holds_back=store.durability == "relaxed"
        )
        writer = ThreadedWriter(store, library, lambda _active, _work: _CLAIM, self.clock.now, self._call)
        self.loop = RoundLoop(rounds, EmbeddedSources(self.intake), writer, self.pipelines, self._pace)
        self.loop.observers += [self._note_ending, *map(_of_rows, options.observers)]

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
        main, ctx = bundle.program.main, ctx or {}
        objection = self._admission.objection(bundle, payload, ctx)
        if objection:
            now, ids = self.clock.now(), self.rounds.new_ids
            raise record_refusal(self.store, objection, main.path, name=main.name, now=now, ids=ids)
        id = self._admission.start(bundle, payload, ctx, execution_id=execution_id)
        self.intake.roots.add(id)
        return id

    def retry(self, execution_id: str, bundle: Bundle | None = None) -> str:
        """Continue a failed execution as a new one, and return its identifier.

        Raises NotFoundError, RefusedRetryError, UnresolvedError.
        """
        id = self._admission.retry(self._library.prepare_retry(execution_id, bundle))
        self.intake.roots.add(id)
        return id

    def resume(self, execution_id: str) -> str:
        """Continue an execution that was left; one that has ended only gets its ending."""
        active = self.intake.resume(execution_id)
        if active.state.is_over:
            self.endings[execution_id] = active.ending()
        if isinstance(self.clock, SystemClock):
            behind = self.clock.catch_up(active.state.now)
            if behind:
                _LOG.warning("the clock is %.0f s behind the last event; time continues from there", behind)
        return execution_id

    def control(self, execution_id: str, action: Action) -> None:
        """Cancel, pause or resume an execution that runs here."""
        active = self.rounds.active.get(execution_id)
        if active is not None:
            self.submit(active, CONTROLS[action])

    async def control_idle(self, execution_id: str, action: Action) -> None:
        """Perform a control on an execution that no process runs. No other advances. The engine cannot be reused."""
        self.pipelines.is_stopping = True
        active = self.intake.load(execution_id)
        if not active.state.is_over:
            self.submit(active, CONTROLS[action])
        while self.rounds.has_inputs or self.rounds.has_unwritten:
            await self.loop.turn()

    def submit(self, active: Active, given: Input) -> None:
        """Let an execution decide on an input."""
        self.rounds.submit(active, given)
        self.pipelines.wake.set()

    @property
    def busy(self) -> int:
        """Number of tools that run."""
        return self.pipelines.busy

    def ending(self, execution_id: str) -> Ending:
        """Return the ending of an execution, or its current status."""
        return self.endings.get(execution_id) or self.rounds.active[execution_id].ending()

    # ---- running

    async def run(self, *, listens: bool = False) -> None:
        """Run everything until it has ended, was stopped, or is paused with no one to resume it."""
        self._pace.listens = listens
        listener = asyncio.get_running_loop().create_task(self._listen()) if listens else None
        try:
            await self.loop.run()
            self.intake.looks = listens  # requests that came while the last execution ended are acknowledged
            while self.intake.looks or self.rounds.has_unwritten:
                await self.loop.turn()
        finally:
            self.pipelines.is_stopping = True
            left = [*self.pipelines.tasks, *([listener] if listener else [])]
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
            await self._tools.close()
            if self._writer is not None:
                self._writer.shutdown()

    def stop(self, *, now: bool = False) -> None:
        """Stop gracefully: running tools may end, nothing new begins. With `now`, those are cancelled."""
        self.pipelines.stop(now=now)

    async def _listen(self) -> None:
        """Poll for requests of other processes, in real time."""
        while True:
            self.intake.looks = True
            self.pipelines.wake.set()
            jumped = self.clock.jump() if isinstance(self.clock, SystemClock) else 0.0
            if jumped:
                _LOG.warning("the wall clock was set by %+.0f s; waits and limits do not change", jumped)
            await asyncio.sleep(LISTEN_SECONDS)

    async def _call(self, call: Callable[[], _Answer], *, is_large: bool = False) -> _Answer:  # as writers call
        """Write in a thread if tools run meanwhile: what they report is then decided together."""
        if self._writer is None or not self.pipelines.is_running:
            return call()
        return await asyncio.get_running_loop().run_in_executor(self._writer, call)

    def _note_ending(self, news: News) -> None:
        if news.row.ended is not None and news.active.execution_id in self.intake.roots:
            self.endings[news.active.execution_id] = news.active.ending()


class EmbeddedSources:
    """Requests, and executions that lost a race. All other inputs come by themselves."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self._must_look = False

    async def take_in(self) -> None:
        try:
            self._intake.take_in_now()
        except StoreError:
            if self._must_look or self._intake.is_needed:
                raise
            self._intake.looks = False  # what the store cannot do now is tried again
        self._must_look = False

    @property
    def has_postponed(self) -> bool:
        return self._intake.has_postponed

    def look(self) -> None:
        self._intake.looks = self._must_look = True


def _of_rows(observe: Observer) -> Callable[[News], None]:
    return lambda news: observe(news.row, news.recorded)
