"""What a client waits for ends at once when the server stops, and when its token is revoked."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from noetlvm.client import Client, ServiceError
from noetlvm.data.encoding import encode
from noetlvm.service import access, web_server
from noetlvm.service.tokens import CreatedToken, create_token
from noetlvm.service.waits import OpenWaits, WaitEndedError
from noetlvm.store.interface import StoreError
from tests.noetlvm.service.test_remote_worker import Served, served, start
from tests.waiting import wait_until

NEVER = 10_000.0
"""Seconds that no test lasts: what waits for them waits for something else."""


HELLO = encode({"worker": "socket", "pools": ["default"], "slots": 2})


@pytest.fixture(autouse=True)
def only_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no time-out and no other look at the store end what a test waits for."""
    monkeypatch.setattr(access, "CHECKED_SECONDS", NEVER)
    monkeypatch.setattr(web_server, "SHUTDOWN_SECONDS", NEVER)
    monkeypatch.setattr("noetlvm.service.executions_api.POLL_SECONDS", NEVER)


class LongRequest(threading.Thread):
    """Something that a client waits for in a thread of its own."""

    def __init__(self, wait: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._wait = wait
        self.answer: Any = None

    def run(self) -> None:
        self.answer = self._wait()

    def result(self) -> Any:
        self.join(60)
        assert not self.is_alive()
        return self.answer


def socket(service: Served, token: str) -> Any:
    address = service.url.replace("http", "ws") + "/api/v1/worker"
    with connect(address, additional_headers={"Authorization": f"Bearer {token}"}) as connection:
        connection.send(HELLO)
        try:
            return connection.recv(60)
        except ConnectionClosed as error:
            return error.rcvd.code if error.rcvd is not None else None


def stream(service: Served, token: str) -> Any:
    id = start(service)
    headers = {"Authorization": f"Bearer {token}", "Last-Event-ID": str(2**53)}
    return httpx.get(f"{service.url}/api/v1/executions/{id}/events/live", headers=headers, timeout=60).text


WAITS = pytest.mark.parametrize(
    ("wait", "revoked", "stopped"),
    [(socket, 4401, 1012), (stream, "retry: 1000\n\n", "retry: 1000\n\n")],
)


@pytest.fixture
def service() -> Iterator[Served]:
    with served() as running:
        yield running


def begun(service: Served, wait: Callable[[Served, str], Any]) -> tuple[LongRequest, CreatedToken]:
    """Return what a client waits for, once the server has it, and its token."""
    token = create_token(service.store, ["worker", "admin"], 1.0)
    request = LongRequest(lambda: wait(service, token.token))
    listeners = len(service.driver.listeners)
    request.start()
    wait_until(lambda: service.driver.workers.hub.workers or len(service.driver.listeners) > listeners)
    return request, token


@WAITS
def test_a_revoked_token_ends_what_waits_under_it_and_nothing_else(
    service: Served, wait: Callable[[Served, str], Any], revoked: Any, stopped: Any
) -> None:
    request, token = begun(service, wait)
    with Client(service.url, service.token) as other:
        answer = httpx.delete(
            f"{service.url}/api/v1/tokens/{token.id}", headers={"Authorization": f"Bearer {service.token}"}
        )
        assert answer.status_code == 204
        assert request.result() == revoked
        assert other.executions()
        with Client(service.url, token.token) as client, pytest.raises(ServiceError, match="revoked"):
            client.executions()


@WAITS
def test_a_server_that_stops_ends_what_waits(
    service: Served, wait: Callable[[Served, str], Any], revoked: Any, stopped: Any
) -> None:
    request, _token = begun(service, wait)
    service.stop()
    assert request.result() == stopped
    service.join()


def test_a_client_follows_on_after_a_stream_that_was_interrupted(
    service: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noetlvm.client.client.RECONNECT_SECONDS", 0.0)
    event = 'id: 1\nevent: x\ndata: {"seq": 1}\n\n'
    answers = iter([f"{event}retry: 1000\n\n", event.replace("1", "2")])
    with Client("http://server", "token") as client:
        client._http = httpx.Client(
            base_url="http://server",
            transport=httpx.MockTransport(lambda _request: httpx.Response(200, text=next(answers))),
        )
        assert [event["seq"] for event in client.follow("x")] == [1, 2]


class Tokens:
    """What is known of tokens elsewhere."""

    def __init__(self) -> None:
        self.answers: list[frozenset[str] | StoreError] = []

    async def checked(self, token: str) -> frozenset[str]:
        answer = self.answers.pop(0)
        if isinstance(answer, StoreError):
            raise answer
        return answer


def test_a_token_that_is_revoked_elsewhere_ends_what_waits_at_the_next_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "CHECKED_SECONDS", 0.0)
    tokens = Tokens()
    tokens.answers = [frozenset({"read"}), StoreError("PostgreSQL does not answer"), frozenset()]

    async def run() -> None:
        waits = OpenWaits(tokens)  # type: ignore[arg-type]  # as far as it is used
        watch = asyncio.create_task(waits.watch())
        with pytest.raises(WaitEndedError, match="revoked"):
            await waits.run("nvt_a_b", asyncio.Event().wait())
        watch.cancel()

    asyncio.run(asyncio.wait_for(run(), 120))
    assert tokens.answers == []


def test_nothing_begins_to_wait_at_a_server_that_stops() -> None:
    async def run() -> None:
        waits = OpenWaits(Tokens())  # type: ignore[arg-type]  # as far as it is used
        waits.stop()
        with pytest.raises(WaitEndedError, match="stopping"):
            await waits.run("nvt_a_b", asyncio.Event().wait())

    asyncio.run(asyncio.wait_for(run(), 120))


def test_what_waits_gives_its_result_and_ends_with_its_client() -> None:
    ended: list[str] = []

    async def lasting(event: asyncio.Event) -> str:
        try:
            await event.wait()
        finally:
            ended.append("ended")
        return "done"

    async def run() -> None:
        waits = OpenWaits(Tokens())  # type: ignore[arg-type]  # as far as it is used
        event = asyncio.Event()
        event.set()
        assert await waits.run("nvt_a_b", lasting(event)) == "done"
        left = asyncio.create_task(waits.run("nvt_a_b", lasting(asyncio.Event())))
        await asyncio.wait((left,), timeout=0)
        left.cancel()
        with pytest.raises(asyncio.CancelledError):
            await left

    asyncio.run(asyncio.wait_for(run(), 120))
    assert ended == ["ended", "ended"]
