"""A worker's connection to a driver in the same process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from noetlvm.data.encoding import decode, encode
from noetlvm.protocol.link import Exchange
from noetlvm.protocol.worker_messages import WorkerMessage
from noetlvm.service.driver import Driver
from noetlvm.service.hub import ConnectedWorker
from noetlvm.service.worker_exchange import accept_message, renew


class LocalLink:
    """Connections to a driver in this process. A test may cut them: the server does not notice."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.is_cut = False
        self.refused = 0
        """How often a worker tried to connect in vain."""
        self.messages = 0
        """How many a worker has sent."""

    @contextlib.asynccontextmanager
    async def connect(self) -> AsyncIterator[Exchange]:
        if self.is_cut:
            self.refused += 1
            raise ConnectionError("refused")
        link = self
        news = asyncio.Event()

        class Local:
            worker: ConnectedWorker | None = None

            async def send(self, data: bytes) -> None:
                if link.is_cut:
                    raise ConnectionError("lost")
                link.messages += 1
                message = decode(data)
                if self.worker is None:
                    self.worker = ConnectedWorker(message["worker"], message["pools"], message["slots"], news.set)
                    await link.driver.join(self.worker)
                else:
                    given = WorkerMessage.model_validate(message)
                    await renew(link.driver, self.worker, given)
                    await accept_message(link.driver, self.worker, given)

            async def receive(self) -> bytes:
                assert self.worker is not None
                while (outbound := self.worker.take()).is_empty:
                    if link.is_cut:
                        raise ConnectionError("lost")
                    news.clear()
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(news.wait(), 0.02)
                return encode(outbound.to_data())

        yield Local()

    def get(self, path: str) -> bytes:
        found = self.driver.store.bundle(path.rpartition("/")[2].partition("?")[0])
        assert found is not None
        return found
