"""What every kind of wake-ups promises; each test runs against each kind."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, cast

import psycopg
import pytest

from noetlvm.conformance.databases import NatsProcess
from noetlvm.store.interface import StoreError
from noetlvm.wake.interface import LocalWakeUps, WakeUps, pool_topic
from noetlvm.wake.nats import NatsWakeUps
from noetlvm.wake.notify import NotifyWakeUps
from tests.waiting import until

if TYPE_CHECKING:
    from nats.aio.client import Client

NUMBERS = count()
Connect = Callable[[], Awaitable[WakeUps]]


def local(_request: pytest.FixtureRequest) -> Connect:
    shared = LocalWakeUps()

    async def connect() -> WakeUps:
        return shared

    return connect


def notify(request: pytest.FixtureRequest) -> Connect:
    address, channel = request.getfixturevalue("postgres"), f"wake{next(NUMBERS)}"

    async def connect() -> WakeUps:
        return NotifyWakeUps(address, channel)

    return connect


def nats(request: pytest.FixtureRequest) -> Connect:
    address, prefix = request.getfixturevalue("nats"), f"wake{next(NUMBERS)}"

    async def connect() -> WakeUps:
        return await NatsWakeUps.connect(address, prefix)

    return connect


@pytest.fixture(params=[local, notify, nats], ids=["local", "notify", "nats"])
def connect(request: pytest.FixtureRequest) -> Connect:
    made: Connect = request.param(request)
    return made


def test_a_wake_up_reaches_the_subscribers_of_its_topic_with_its_identifier(connect: Connect) -> None:
    async def go() -> None:
        sender, receiver = await connect(), await connect()
        fast: list[str] = []
        slow: list[str] = []
        await receiver.subscribe(pool_topic("fast"), fast.append)
        await receiver.subscribe(pool_topic("a pool.with > all * of it"), slow.append)
        await sender.publish(pool_topic("fast"), "e1")
        await sender.publish(pool_topic("fast"), "e2")
        await sender.publish(pool_topic("nobody"), "e3")
        await sender.publish(pool_topic("a pool.with > all * of it"), "e4")
        await until(lambda: "e2" in fast and "e4" in slow)
        assert [one for one in fast if one] == ["e1", "e2"]
        assert [one for one in slow if one] == ["e4"]
        await sender.close()
        await receiver.close()
        await receiver.close()

    asyncio.run(asyncio.wait_for(go(), 120))


def test_one_subscriber_of_a_group_gets_each_wake_up(connect: Connect) -> None:
    async def go() -> None:
        sender, members = await connect(), [await connect() for _ in range(3)]
        got: list[list[str]] = [[], [], []]
        for member, one in zip(members, got, strict=True):
            await member.subscribe(pool_topic("p"), one.append, group="p")
        for number in range(20):
            await sender.publish(pool_topic("p"), f"e{number}")
        wanted = {f"e{number}" for number in range(20)}
        await until(lambda: wanted <= {identifier for one in got for identifier in one})
        for member in (sender, *members):
            await member.close()

    asyncio.run(asyncio.wait_for(go(), 120))


def test_publishing_never_raises(connect: Connect) -> None:
    async def go() -> None:
        sender = await connect()
        await sender.publish(pool_topic("p"), "x" * 20_000)
        await sender.close()
        await sender.publish(pool_topic("p"), "e1")
        await sender.close()

    asyncio.run(asyncio.wait_for(go(), 120))


def test_one_member_of_a_group_is_woken_by_nats(nats: str) -> None:
    async def go() -> None:
        members = [await NatsWakeUps.connect(nats, "once") for _ in range(3)]
        got: list[str] = []
        for member in members:
            await member.subscribe("t", got.append, group="g")
        for number in range(30):
            await members[0].publish("t", str(number))
        ends: list[str] = []
        for member in members:
            await member.subscribe("end", ends.append)
        await members[0].publish("end", "x")
        await until(lambda: len(ends) == len(members))  # each has received what was sent before
        assert sorted(got, key=int) == [str(number) for number in range(30)]
        for member in members:
            await member.close()

    asyncio.run(asyncio.wait_for(go(), 120))


def test_a_listener_whose_connection_was_lost_listens_again_and_looks_at_everything(postgres: str) -> None:
    async def go() -> None:
        wake_ups = NotifyWakeUps(postgres, "lost")
        got: list[str] = []
        await wake_ups.subscribe("t", got.append)
        await wake_ups.publish("t", "e1")
        await until(lambda: "e1" in got)
        got.clear()
        listener = "query LIKE 'LISTEN%' AND datname = current_database()"
        kill = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {listener}"
        async with await psycopg.AsyncConnection.connect(postgres, autocommit=True) as connection:
            await connection.execute(kill)
        await until(lambda: got == [""])
        await wake_ups.publish("t", "e2")
        await until(lambda: "e2" in got)
        await wake_ups.close()

    asyncio.run(asyncio.wait_for(go(), 120))


def test_a_subscription_that_finds_nats_gone_works_once_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noetlvm.wake.nats._FLUSH_SECONDS", 1)

    async def go(server: NatsProcess) -> None:
        wake_ups = await NatsWakeUps.connect(server.address)
        got: list[str] = []
        server.kill()
        await wake_ups.subscribe("t", got.append)
        server.start()
        await until(lambda: got == [""])  # what was sent meanwhile is lost
        await wake_ups.publish("t", "e1")
        await until(lambda: "e1" in got)
        server.kill()
        await wake_ups.close()

    with contextlib.closing(NatsProcess(tmp_path)) as server:
        asyncio.run(asyncio.wait_for(go(server), 120))


def test_closing_a_lost_connection_raises_nothing() -> None:
    class LostClient:
        is_closed = False

        async def close(self) -> None:
            raise ConnectionResetError("Connection lost")

    asyncio.run(NatsWakeUps(cast("Client", LostClient()), "x").close())


def test_a_nats_server_that_is_away_is_explained_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noetlvm.wake.nats._CONNECT_SECONDS", 0.5)

    async def go() -> None:
        await NatsWakeUps.connect("nats://user:hunter2@127.0.0.1:1")

    with pytest.raises(StoreError, match=r"NATS does not answer at 127\.0\.0\.1:1") as raised:
        asyncio.run(asyncio.wait_for(go(), 120))
    assert "hunter2" not in str(raised.value)
