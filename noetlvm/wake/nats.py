"""Wake-ups by NATS: a subject per topic, and queue groups so that a wake-up for a pool reaches one of its servers."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from noetlvm.store.interface import StoreError
from noetlvm.tools.nats_client import close_client, flushed
from noetlvm.wake.interface import Wake

_RECONNECT_SECONDS = 0.5
_CONNECT_SECONDS = 5.0
_FLUSH_SECONDS = 2
"""How long a new subscription waits for the server to have read it."""


class NatsWakeUps:
    """A connection to NATS, which reconnects by itself."""

    def __init__(self, client: Client, prefix: str) -> None:
        self._client = client
        self._prefix = prefix
        self._wakes: list[Wake] = []

    @classmethod
    async def connect(cls, address: str, prefix: str = "noetlvm") -> NatsWakeUps:
        """Connect to a server. Raises StoreError."""
        client = Client()
        made = cls(client, prefix)
        options: dict[str, Any] = {"max_reconnect_attempts": -1, "reconnect_time_wait": _RECONNECT_SECONDS}
        try:
            connecting = client.connect(address, error_cb=_ignore, reconnected_cb=made._wake_all, **options)
            await asyncio.wait_for(connecting, _CONNECT_SECONDS)
        except (NatsError, OSError, TimeoutError) as error:
            raise StoreError(
                f"NATS does not answer at {address.rpartition('@')[2]} ({error or type(error).__name__})"
            ) from error
        return made

    async def publish(self, topic: str, identifier: str) -> None:
        try:
            await self._client.publish(self._subject(topic), identifier.encode())
        except (NatsError, OSError):
            return  # only latency depends on it

    async def subscribe(self, topic: str, wake: Wake, group: str = "") -> None:
        async def deliver(message: Msg) -> None:
            wake(message.data.decode(errors="replace"))

        self._wakes.append(wake)
        # Whatever goes wrong, the client subscribes again when it reconnects.
        with suppress(NatsError, OSError):
            await self._client.subscribe(self._subject(topic), queue=group, cb=deliver)
            await flushed(self._client, _FLUSH_SECONDS)

    async def close(self) -> None:
        await close_client(self._client)

    async def _wake_all(self) -> None:
        """After a lost connection: what was sent meanwhile is lost."""
        for wake in self._wakes:
            wake("")

    def _subject(self, topic: str) -> str:
        """Return the subject of a topic; a pool's name may hold what NATS reserves."""
        return f"{self._prefix}.{topic.encode().hex()}"


async def _ignore(_error: Exception) -> None:
    """The client reconnects by itself; without this it would print a traceback."""
