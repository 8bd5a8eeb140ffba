"""Time as the engine sees it: the real one, and one for tests in which waiting costs nothing."""

from __future__ import annotations

import asyncio
import heapq
import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time and lets it pass."""

    def now(self) -> float:
        """Return seconds since 1970."""

    def monotonic(self) -> float:
        """Return seconds that only grow, since no particular moment."""

    async def sleep(self, seconds: float) -> None:
        """Come back when that time has passed."""

    def rest(self, waiting: int) -> None:
        """Hear that nothing moves but so many tasks of the event loop, those that sleep among them."""


class SystemClock:
    """The clock of the machine: its wall clock at the start, and monotonic time since.

    A wall clock that is set while the process runs changes no wait and no limit.
    """

    def __init__(self) -> None:
        self._start = time.time() - time.monotonic()

    def now(self) -> float:
        return self._start + time.monotonic()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def rest(self, waiting: int) -> None:
        """Real time passes by itself."""


class FakeClock:
    """A clock that stands still, until everybody sleeps: then it goes on to the first who wants to be woken."""

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._now = start
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        """Let time pass, and wake those whose time has come."""
        self._wake_until(self._now + seconds)

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            return
        woken = asyncio.get_running_loop().create_future()
        self._count += 1
        heapq.heappush(self._sleepers, (self._now + seconds, self._count, woken))
        await woken

    def rest(self, waiting: int) -> None:
        self._sleepers = [sleeper for sleeper in self._sleepers if not sleeper[2].done()]
        heapq.heapify(self._sleepers)
        if self._sleepers and len(self._sleepers) >= waiting:
            self._wake_until(self._sleepers[0][0])

    def _wake_until(self, time: float) -> None:
        self._now = max(self._now, time)
        while self._sleepers and self._sleepers[0][0] <= self._now:
            _, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)
