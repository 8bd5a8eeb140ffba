"""Wake-ups by LISTEN and NOTIFY of the PostgreSQL database that servers share. Every subscriber gets each of them."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress

import psycopg
from psycopg import AsyncConnection
from psycopg.sql import SQL, Identifier

from noetlvm.store.postgres_database import with_limits
from noetlvm.wake.interface import Wake

_RETRY_SECONDS = 1.0
_PAYLOAD_BYTES = 7_999
"""PostgreSQL refuses longer payloads."""


class NotifyWakeUps:
    """One connection listens and another one notifies, each opened again when it is lost.

    NOTIFY is sent outside of the transactions that it is about: inside, it would make all commits take turns.
    """

    def __init__(self, address: str, channel: str = "noetlvm") -> None:
        self._address = with_limits(address)
        self._channel = channel
        self._subscribers: dict[str, list[Wake]] = {}
        self._sender: AsyncConnection | None = None
        self._sending = asyncio.Lock()
        self._listener: asyncio.Task[None] | None = None
        self._listens = asyncio.Event()

    async def publish(self, topic: str, identifier: str) -> None:
        payload = json.dumps([topic, identifier])
        if len(payload) > _PAYLOAD_BYTES:
            payload = json.dumps([topic, ""])
        async with self._sending:
            try:
                if self._sender is None:
                    self._sender = await AsyncConnection.connect(self._address, autocommit=True)
                await self._sender.execute("SELECT pg_notify(%s, %s)", (self._channel, payload))
            except (psycopg.Error, OSError):
                await self._drop_sender()

    async def subscribe(self, topic: str, wake: Wake, group: str = "") -> None:
        self._subscribers.setdefault(topic, []).append(wake)
        if self._listener is None:
            self._listener = asyncio.create_task(self._listen())
            with suppress(TimeoutError):
                await asyncio.wait_for(self._listens.wait(), _RETRY_SECONDS)

    async def close(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.cancel()
            await asyncio.gather(listener, return_exceptions=True)
        await self._drop_sender()

    async def _drop_sender(self) -> None:
        sender, self._sender = self._sender, None
        if sender is not None:
            await sender.close()

    async def _listen(self) -> None:
        while True:
            with suppress(psycopg.Error, OSError):
                async with await AsyncConnection.connect(self._address, autocommit=True) as connection:
                    await connection.execute(SQL("LISTEN {}").format(Identifier(self._channel)))
                    self._listens.set()
                    self._wake_all()  # what was sent while the connection was down is lost
                    async for notification in connection.notifies():
                        self._deliver(notification.payload)
            await asyncio.sleep(_RETRY_SECONDS)

    def _deliver(self, payload: str) -> None:
        try:
            topic, identifier = json.loads(payload)
        except ValueError:
            return  # another program uses the channel
        for wake in self._subscribers.get(topic, ()):
            wake(identifier)

    def _wake_all(self) -> None:
        for subscribers in self._subscribers.values():
            for wake in subscribers:
                wake("")
