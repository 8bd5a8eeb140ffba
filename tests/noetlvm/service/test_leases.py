"""Leases: what comes under an old one is refused, however often and in whatever form."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from noetlvm.bridge import compile_source
from noetlvm.data.event import Event
from noetlvm.machine.loaded import Bundle
from noetlvm.machine.messages import LeaseLost, Work
from noetlvm.machine.state import FrameState
from noetlvm.protocol.link import Exchange
from noetlvm.protocol.messages import lease_form, work_in
from noetlvm.protocol.worker_messages import WorkerMessage
from noetlvm.results.interface import MemoryResults
from noetlvm.rounds.credentials import no_credentials
from noetlvm.service.driver import Driver, ServerPorts
from noetlvm.service.hub import ConnectedWorker
from noetlvm.service.worker_exchange import renew
from noetlvm.store.interface import QueuedCommand, StoreError
from noetlvm.store.memory import MemoryStore
from noetlvm.tools.runner import ToolRunner
from noetlvm.wake.interface import LocalWakeUps, WakeUps
from noetlvm.worker.remote_worker import RemoteWorker
from tests.waiting import ended, turns, until

PLAYBOOK = b"""\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: one, path: tests/one }
workflow:
  - step: start
    tool: [{ only: { kind: shell, command: ["true"] } }]
"""
STALE = 10_000


def driven(test: Callable[[Driver], Coroutine[Any, Any, None]]) -> None:
    """Run a test beside a driver."""

    async def run() -> None:
        driver = Driver(MemoryStore(), MemoryResults(), no_credentials, ServerPorts(poll_seconds=0.02))
        task = asyncio.create_task(driver.run())
        try:
            await test(driver)
        finally:
            driver.stop()
            await task

    asyncio.run(asyncio.wait_for(run(), 120))


async def next_command(worker: ConnectedWorker, news: asyncio.Event) -> Work:
    while True:
        taken = worker.take()
        if taken.commands:
            work: Work = work_in(taken.commands[0]["work"])
            return work
        news.clear()
        await news.wait()


async def joined(driver: Driver, name: str) -> tuple[ConnectedWorker, asyncio.Event]:
    news = asyncio.Event()
    worker = ConnectedWorker(name, ["default"], 1, news.set)
    await driver.join(worker)
    return worker, news


def ending(work: Work) -> list[Event]:
    return [Event("step.done", {"result": None}, work.run, work.iteration)]


def test_stale_reports_renewals_and_releases_are_refused() -> None:
    async def test(driver: Driver) -> None:
        bundle = Bundle.of(compile_source("one.yaml", PLAYBOOK)[0])
        first, news = await joined(driver, "first")
        id = await driver.start(bundle, {}, {})
        stale = await next_command(first, news)
        part = (id, stale.run, stale.iteration)
        second, more_news = await joined(driver, "second")
        first.slots = 0
        driver.rounds.submit(driver.intake.load(id), LeaseLost(stale.run, stale.iteration, stale.lease))
        driver.workers.hub.withdrawn(part, stale.lease)
        driver.wake()
        current = await next_command(second, more_news)
        assert current.lease > stale.lease
        first.held[part] = stale.lease  # it does not know yet, or does not want to
        before = driver.store.execution(id)
        for number in range(STALE):
            driver.report(first, number, part, stale.lease, ending(stale))
        command = QueuedCommand(*part, stale.lease)
        assert driver.store.renew("first", [command] * 100, driver.store.now() + 100) == []
        assert driver.store.release("first", [command] * 100) == []
        answers: list[dict[str, Any]] = []

        def all_are_answered() -> bool:
            answers.extend(first.take().answers)
            return len(answers) == STALE

        await until(all_are_answered)
        assert {answer["accepted"] for answer in answers} == {False}
        assert driver.store.execution(id) == before
        driver.report(second, 1, part, current.lease, ending(current))
        await ended(driver.store, id)

    driven(test)


def test_work_of_a_worker_that_leaves_goes_to_another_at_once() -> None:
    async def test(driver: Driver) -> None:
        bundle = Bundle.of(compile_source("one.yaml", PLAYBOOK)[0])
        first, news = await joined(driver, "first")
        await driver.start(bundle, {}, {})
        left = await next_command(first, news)
        second, more_news = await joined(driver, "second")
        driver.workers.leave(first)
        driver.wake()
        taken = await next_command(second, more_news)
        assert (taken.run, taken.lease) == (left.run, left.lease + 1)

    driven(test)


def test_a_command_that_a_worker_returns_is_open_again_under_a_new_lease() -> None:
    async def test(driver: Driver) -> None:
        bundle = Bundle.of(compile_source("one.yaml", PLAYBOOK)[0])
        first, news = await joined(driver, "first")
        id = await driver.start(bundle, {}, {})
        left = await next_command(first, news)
        part = (id, left.run, left.iteration)
        await driver.workers.release(first, part, left.lease + 1)  # not what it holds
        assert first.held == {part: left.lease}
        await driver.workers.release(first, part, left.lease)
        again = await next_command(first, news)
        assert (again.run, again.lease) == (left.run, left.lease + 1)

    driven(test)


def test_a_renewal_takes_up_what_the_store_has_and_refuses_the_rest() -> None:
    async def test(driver: Driver) -> None:
        bundle = Bundle.of(compile_source("one.yaml", PLAYBOOK)[0])
        first, news = await joined(driver, "first")
        id = await driver.start(bundle, {}, {})
        work = await next_command(first, news)
        part = (id, work.run, work.iteration)
        again = ConnectedWorker("first", ["default"], 1, news.set)  # the same worker on a new connection
        await driver.workers.renew(again, [(part, work.lease), ((id, 7, ""), 1)])
        assert again.held == {part: work.lease}
        assert again.take().stop == [lease_form((id, 7, ""), 1)]

    driven(test)


def test_a_worker_whose_lease_ended_gets_nothing_until_it_sends_something() -> None:
    async def test(driver: Driver) -> None:
        driver.leases.seconds = 0.05
        bundle = Bundle.of(compile_source("one.yaml", PLAYBOOK)[0])
        silent, news = await joined(driver, "silent")
        await driver.start(bundle, {}, {})
        lost = await next_command(silent, news)
        await until(lambda: silent.is_silent)
        assert (silent.held, silent.free) == ({}, 0)
        other, more_news = await joined(driver, "other")
        taken = await next_command(other, more_news)
        assert (taken.run, taken.lease) == (lost.run, lost.lease + 1)
        await renew(driver, silent, WorkerMessage())
        assert silent.free == 1

    driven(test)


class UnreachableLink:
    """A server that is gone for good."""

    def connect(self) -> AbstractAsyncContextManager[Exchange]:
        raise ConnectionError("refused")

    def get(self, path: str) -> bytes:
        raise ConnectionError("refused")


def test_a_draining_worker_leaves_when_no_server_can_take_its_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noetlvm.worker.held_leases.LEASE_SECONDS", 0.1)

    async def test() -> None:
        worker = RemoteWorker(UnreachableLink(), ToolRunner(()), id="w", pools=("default",), slots=1)
        work = Work("x", "b", "p", "start", 1, "", 1, {}, {}, {}, {}, None, FrameState(), None, "x", ())
        worker.commands.send(work, ending(work))
        worker.drain()
        await worker.run()

    asyncio.run(asyncio.wait_for(test(), 120))


class BundleLink(UnreachableLink):
    """A server that answers with one bundle and nothing else."""

    def get(self, path: str) -> bytes:
        return compile_source("one.yaml", PLAYBOOK)[0]


def test_a_pipeline_that_is_stopped_before_its_first_step_leaves_its_worker() -> None:
    """As after a worker was suspended: it sees that the lease is over before the pipeline gets a turn."""

    async def test() -> None:
        worker = RemoteWorker(BundleLink(), ToolRunner(()), id="w", pools=("default",), slots=1)
        work = Work("x", "b", "tests/one", "start", 1, "", 1, {}, {}, {}, {}, None, FrameState(), None, "x", ())
        worker.commands.take(work, {})
        assert worker.commands.held == {("x", 1, ""): 1}
        worker.commands.give_up(("x", 1, ""), 1)
        await turns()
        assert worker.commands.held == {}

    asyncio.run(asyncio.wait_for(test(), 120))


def test_a_server_starts_without_wake_ups_and_connects_them_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noetlvm.service.wake_line.RECONNECT_SECONDS", 0.01)
    attempts: list[int] = []
    wake_ups = LocalWakeUps()

    async def connect() -> WakeUps:
        attempts.append(1)
        if len(attempts) < 3:
            raise StoreError("NATS does not answer")
        return wake_ups

    async def run() -> None:
        store = MemoryStore()
        driver = Driver(store, MemoryResults(), no_credentials, ServerPorts(connect, 0.02))
        task = asyncio.create_task(driver.run())
        worker, news = await joined(driver, "only")
        await driver.start(Bundle.of(compile_source("one.yaml", PLAYBOOK)[0]), {}, {})
        await next_command(worker, news)
        await until(lambda: len(attempts) >= 3)
        driver.stop()
        await task

    asyncio.run(asyncio.wait_for(run(), 120))
