"""A server's line to the others: it wakes them when there is something that one of them may take, and is woken."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from noetlvm.store.interface import StoreError
from noetlvm.wake.interface import SERVERS, LocalWakeUps, Wake, WakeUps

RECONNECT_SECONDS = 2.0
"""How often to try again to connect what carries wake-ups."""

Connect = Callable[[], Awaitable[WakeUps]]

_LOG = logging.getLogger("noetlvm.server")


class WakeLine:
    """Wake-ups, as far as they can be carried: only latency depends on them."""

    def __init__(self, connect: Connect | None, wake: Wake) -> None:
        self._connect = connect
        self._wake = wake
        self._wake_ups: WakeUps = LocalWakeUps()
        self._topics: set[str] = {SERVERS}
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Connect, and try again until that succeeds."""
        if not await self._is_connected():
            self._keep(asyncio.create_task(self._connect_again()))

    async def _is_connected(self) -> bool:
        try:
            if self._connect is not None:
                self._wake_ups = await self._connect()
            for topic in sorted(self._topics):  # workers may have come before
                await self._wake_ups.subscribe(topic, self._wake)
        except StoreError as error:
            _LOG.warning("no wake-ups, polling instead: %s", error)
            return False
        return True

    async def _connect_again(self) -> None:
        while not await self._is_connected():
            await asyncio.sleep(RECONNECT_SECONDS)
        self._wake("")  # what was published meanwhile is lost

    async def subscribe(self, topic: str) -> None:
        """Be woken for a topic from now on."""
        if topic not in self._topics:
            self._topics.add(topic)
            await self._wake_ups.subscribe(topic, self._wake)

    def announce(self, topic: str, identifier: str) -> None:
        """Wake other servers up."""
        self._keep(asyncio.get_running_loop().create_task(self._wake_ups.publish(topic, identifier)))

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await self._wake_ups.close()
