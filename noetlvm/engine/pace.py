"""The turns of an embedded engine: when it decides, writes, yields to others in the event loop, sleeps, and ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from noetlvm.engine.pipelines import Pipelines
from noetlvm.rounds.intake import Intake
from noetlvm.rounds.loop import TURN_SECONDS
from noetlvm.rounds.rounds import Rounds
from noetlvm.store.interface import StoreError
from noetlvm.worker.pipeline_run import Clock

HOLD_SECONDS = 0.005
"""How long a decision waits at most for others to be written with, where durability is relaxed."""

_TICKS_IN_A_ROW = 16
"""Turns that run back to back before yielding to the event loop, when no task is known to wait."""

_LONG_AGO = float("-inf")


class Budget:
    """How much of a turn is left, by a clock of this process."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self.monotonic = monotonic
        self._began = _LONG_AGO

    def begin(self) -> None:
        self._began = self.monotonic()

    def is_spent(self, _events: int) -> bool:
        return self.monotonic() - self._began > TURN_SECONDS


class EmbeddedPace:
    """The pace of a process that ends with its executions."""

    def __init__(
        self, rounds: Rounds, intake: Intake, pipelines: Pipelines, clock: Clock, budget: Budget, *, holds_back: bool
    ) -> None:
        """`holds_back`: rounds may share a write as long as nothing else runs."""
        self.now = clock.now
        self.begin = budget.begin
        self.is_spent = budget.is_spent
        self.listens = False
        """It does not end while executions are open: another process may have them continue."""
        self._rounds = rounds
        self._intake = intake
        self._pipelines = pipelines
        self._clock = clock
        self._monotonic = budget.monotonic
        self._holds_back = holds_back
        self._must_write = False
        """Others have their turn next, and find nothing that could be lost."""
        self._written_at = self._turn = self._looked = _LONG_AGO
        self._ticks = 0
        self._has_turned = False
        self._alarm: tuple[float, asyncio.Task[None]] | None = None

    def holds(self) -> bool:
        if not self._holds_back:
            return False
        now = self._monotonic()
        if not self._must_write and not self._pipelines.tasks and now - self._written_at < HOLD_SECONDS:
            return True
        self._written_at, self._must_write = now, False
        return False

    def failed(self, error: StoreError) -> None:
        raise error

    async def rest(self) -> bool:
        if self._has_turned and self._others_wait():
            if self._rounds.has_unwritten:
                self._must_write = True  # whatever gets a turn, be it to end the run, finds nothing that could be lost
                return True
            self._turn = self._monotonic()
            await asyncio.sleep(0)
        self._has_turned = False
        return await self._has_next()

    def _others_wait(self) -> bool:
        """Return whether the others in the event loop have their turn now, as far as is known."""
        self._ticks += 1
        is_long = self._monotonic() - self._turn > TURN_SECONDS
        return bool(self._pipelines.tasks) or is_long or (self.listens and not self._ticks % _TICKS_IN_A_ROW)

    async def _has_next(self) -> bool:
        pipelines, rounds = self._pipelines, self._rounds
        while True:
            if pipelines.failure is not None:
                raise pipelines.failure
            now = self._monotonic()
            if now - self._looked > TURN_SECONDS:  # without a pause, no alarm is set
                self._looked = now
                self._take_due()
            if self._has_work() and not (pipelines.is_stopping and rounds.can_wait()):
                self._has_turned = True
                return True
            if rounds.has_unwritten:
                self._must_write = True
                return True
            if self._set_alarm():
                await asyncio.sleep(0)  # it goes to sleep, and others may have something new
                continue
            if self._has_nothing_to_wait_for():
                return False
            pipelines.wake.clear()
            self._clock.rest(len(pipelines.tasks))
            await pipelines.wake.wait()

    def _has_work(self) -> bool:
        return self._pipelines.has_backlog or self._rounds.has_inputs or self._intake.is_wanted

    def _has_nothing_to_wait_for(self) -> bool:
        if self._pipelines.is_stopping:
            return not self._pipelines.is_running
        return not self._rounds.active or not (self._pipelines.tasks or self.listens)

    def _set_alarm(self) -> bool:
        """Wake up when the first timer is due or the first deferred work may begin; return whether that is new."""
        times = [time for time in (self._rounds.next_due, self._pipelines.next_deferred) if time is not None]
        due = min(times, default=None)
        if self._alarm is not None:
            if self._alarm[0] == due:
                return False
            self._alarm[1].cancel()
            self._pipelines.tasks.discard(self._alarm[1])
        self._alarm = None if due is None else (due, self._pipelines.spawn(self._ring(due)))
        return due is not None

    async def _ring(self, due: float) -> None:
        await self._clock.sleep(due - self._clock.now())
        self._alarm = None
        self._take_due()

    def _take_due(self) -> None:
        """Give a turn to timers that are due and to deferred work that may begin."""
        self._rounds.collect_due(self._clock.now())
        self._pipelines.begin_deferred()
