"""A clock for tests of the engine: waiting costs no time."""

from __future__ import annotations

import asyncio
import heapq


class FakeClock:
    """Stands still until every task sleeps; then it advances to the earliest time at which one is to wake."""

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
