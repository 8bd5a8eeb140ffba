"""What a step costs on PostgreSQL: one message of the worker, one transaction, one sync."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing

import pytest

from bench.noop_playbooks import chain
from noetlvm.bridge import compile_texts
from noetlvm.machine.loaded import Bundle
from noetlvm.results.interface import MemoryResults
from noetlvm.rounds.credentials import no_credentials
from noetlvm.service.driver import Driver, ServerPorts
from noetlvm.store.postgres import PostgresStore
from noetlvm.worker.remote_worker import RemoteWorker
from tests.noetlvm.engine.runs import PlayedTools
from tests.noetlvm.service.local_link import LocalLink
from tests.waiting import ended, until

STEPS = 30
MORE = 5
"""For the start of an execution, the start of a worker, and a renewal on a slow machine."""


def syncs(store: PostgresStore) -> int:
    """Return how often connections to the database have synced its log."""
    store.database.select("SELECT pg_stat_force_next_flush()")  # of the connection that the store uses
    query = "SELECT sum(fsyncs) FROM pg_stat_io WHERE object = 'wal' AND backend_type = 'client backend'"
    return int(store.database.select(query)[0][0])


def counted(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets the name of each transaction that writes."""
    made: list[str] = []

    def counting(name: str) -> Callable[..., object]:
        original = getattr(store.database, name)

        def count(*arguments: object) -> object:
            made.append(name)
            return original(*arguments)

        return count

    monkeypatch.setattr(store, "_run", counting("run"))
    monkeypatch.setattr(store, "_run_binary", counting("run_binary"))
    monkeypatch.setattr(store, "_transact", counting("transact"))
    return made


def test_a_step_of_a_chain_is_one_message_one_transaction_and_one_sync(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = Bundle.of(compile_texts([chain(STEPS)]))
    with closing(PostgresStore(postgres, schema="one_sync")) as store:
        store.put_bundle(bundle.id, bundle.data)

        async def run() -> tuple[int, int]:
            driver = Driver(store, MemoryResults(), no_credentials, ServerPorts(poll_seconds=60))
            driving = asyncio.create_task(driver.run())
            link = LocalLink(driver)
            worker = RemoteWorker(link, PlayedTools(), id="one", pools=("default",), slots=1)
            working = asyncio.create_task(worker.run())
            await until(lambda: "one" in driver.workers.hub.workers)
            first = await driver.start(bundle, {}, {})  # creates the partition of the month, and prepares statements
            await ended(store, first)
            before, messages = syncs(store), link.messages
            transactions = counted(store, monkeypatch)
            second = await driver.start(bundle, {}, {})
            await ended(store, second)
            count, sent = len(transactions), link.messages - messages
            worker.drain()
            await working
            driver.stop()
            await driving
            assert STEPS <= sent <= STEPS + MORE
            return count, syncs(store) - before

        transactions, made = asyncio.run(asyncio.wait_for(run(), 200))
    assert transactions <= STEPS + MORE
    assert made <= STEPS + MORE
