"""A worker whose connection is lost while it works: what it did meanwhile counts, as long as it holds the lease."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager

from noetlvm.bridge import compile_source
from noetlvm.machine.loaded import Bundle
from noetlvm.protocol.link import Exchange
from noetlvm.service.driver import Driver
from noetlvm.tools.call import Outcome, ToolCall, ok
from noetlvm.worker.remote_worker import RemoteWorker
from tests.noetlvm.engine.runs import PlayedTools
from tests.noetlvm.service.local_link import LocalLink
from tests.noetlvm.service.test_leases import PLAYBOOK, driven
from tests.waiting import ended, until


def test_a_task_that_ends_without_a_connection_is_reported_when_there_is_one() -> None:
    async def test(driver: Driver) -> None:
        began, may_end = asyncio.Event(), asyncio.Event()

        async def play(_call: ToolCall) -> Outcome:
            began.set()
            await may_end.wait()
            return ok()

        tools, link = PlayedTools(play), LocalLink(driver)
        worker = RemoteWorker(link, tools, id="one", pools=("default",), slots=1)
        working = asyncio.create_task(worker.run())
        id = await driver.start(Bundle.of(compile_source("one.yaml", PLAYBOOK)[0]), {}, {})
        await began.wait()
        link.is_cut = True
        await until(lambda: link.refused)
        may_end.set()
        await until(lambda: worker.outbox)
        link.is_cut = False
        await ended(driver.store, id)
        worker.drain()
        await working
        assert len(tools.calls) == 1
        assert [one.event.name for one in driver.store.events(id)].count("step.scheduled") == 1

    driven(test)


def test_a_worker_that_drains_without_a_server_tries_seldom_and_gives_up_after_a_lease() -> None:
    """It has a report that no server has answered: it must not leave, and not spin either."""

    async def test(driver: Driver) -> None:
        driver.leases.seconds = 1.0
        began, may_end = asyncio.Event(), asyncio.Event()
        tries = 0

        class Counted(LocalLink):
            def connect(self) -> AbstractAsyncContextManager[Exchange]:
                nonlocal tries
                tries += 1
                return super().connect()

        async def play(_call: ToolCall) -> Outcome:
            began.set()
            await may_end.wait()
            return ok()

        link = Counted(driver)
        worker = RemoteWorker(link, PlayedTools(play), id="one", pools=("default",), slots=1, jitter=lambda: 0.5)
        working = asyncio.create_task(worker.run())
        await driver.start(Bundle.of(compile_source("one.yaml", PLAYBOOK)[0]), {}, {})
        await began.wait()
        link.is_cut = True
        may_end.set()
        await until(lambda: worker.outbox and link.refused)
        worker.drain()
        await working
        assert 1 < tries < 20

    driven(test)
