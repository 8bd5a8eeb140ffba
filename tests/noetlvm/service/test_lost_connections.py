"""A worker whose connection is lost while it works: what it did meanwhile counts, as long as it holds the lease."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from noetlvm.bridge import compile_source
from noetlvm.data.encoding import decode, encode
from noetlvm.machine.loaded import Bundle
from noetlvm.service.driver import Driver
from noetlvm.service.hub import ConnectedWorker
from noetlvm.service.remote_worker import RemoteWorker
from noetlvm.service.server_link import Exchange
from noetlvm.service.worker_api import WorkerMessage, accept_message
from noetlvm.tools.call import Outcome, ToolCall, ok
from tests.noetlvm.engine.runs import PlayedTools
from tests.noetlvm.service.test_leases import PLAYBOOK, driven


class CutLink:
    """Connections to a driver in this process, which the test cuts: the server knows nothing of that."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.is_cut = asyncio.Event()

    @contextlib.asynccontextmanager
    async def connect(self) -> AsyncIterator[Exchange]:
        if self.is_cut.is_set():
            raise ConnectionError("refused")
        link = self
        news = asyncio.Event()

        class Cut:
            worker: ConnectedWorker | None = None

            async def send(self, data: bytes) -> None:
                if link.is_cut.is_set():
                    raise ConnectionError("lost")
                message = decode(data)
                if self.worker is None:
                    self.worker = ConnectedWorker(message["worker"], message["pools"], message["slots"], news.set)
                    await link.driver.join(self.worker)
                else:
                    accept_message(link.driver, self.worker, WorkerMessage.model_validate(message))

            async def receive(self) -> bytes:
                assert self.worker is not None
                while True:
                    if link.is_cut.is_set():
                        raise ConnectionError("lost")
                    outbound = self.worker.take()
                    if not outbound.is_empty:
                        return encode(outbound._asdict())
                    await asyncio.sleep(0.01)

        yield Cut()

    def get(self, path: str) -> bytes:
        found = self.driver.store.bundle(path.rpartition("/")[2].partition("?")[0])
        assert found is not None
        return found


def test_a_task_that_ends_without_a_connection_is_reported_when_there_is_one() -> None:
    async def test(driver: Driver) -> None:
        began, may_end = asyncio.Event(), asyncio.Event()

        async def play(_call: ToolCall) -> Outcome:
            began.set()
            await may_end.wait()
            return ok()

        tools, link = PlayedTools(play), CutLink(driver)
        worker = RemoteWorker(link, tools, id="one", pools=("default",), slots=1)
        working = asyncio.create_task(worker.run())
        id = await driver.start(Bundle.of(compile_source("one.yaml", PLAYBOOK)[0]), {}, {})
        await began.wait()
        link.is_cut.set()
        await asyncio.sleep(0.1)
        may_end.set()
        await asyncio.sleep(0.1)
        link.is_cut.clear()
        while driver.store.execution(id).ended is None:  # type: ignore[union-attr]
            await asyncio.sleep(0.01)
        worker.drain()
        await working
        assert len(tools.calls) == 1
        assert [one.event.name for one in driver.store.events(id)].count("step.scheduled") == 1

    driven(test)
