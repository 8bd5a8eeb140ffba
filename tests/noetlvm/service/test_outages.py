"""A store that cannot be read for a while, and a server that goes away: who waits for an execution waits on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from starlette.websockets import WebSocketDisconnect

from noetlvm.client import AsyncClient, Client, ServiceError
from noetlvm.service import executions_api
from noetlvm.service.executions_api import live_events
from noetlvm.store.interface import StoreError
from tests.noetlvm.service.conftest import HELLO, Service


def failing(call: Callable[..., Any], times: int) -> Callable[..., Any]:
    """Return a call that fails so many times before it succeeds."""
    left = [None] * times

    def fail(*given: Any, **named: Any) -> Any:
        if left:
            left.pop()
            raise StoreError("PostgreSQL does not answer")
        return call(*given, **named)

    return fail


@pytest.mark.parametrize("method", ["execution", "events"])
def test_a_stream_of_events_goes_on_when_the_store_can_be_read_again(
    service: Service, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(executions_api, "POLL_SECONDS", 0.01)
    headers = {"Content-Type": "application/yaml", **service.as_("run")}
    bundle = service.http.post("/api/v1/playbooks", content=HELLO, headers=headers).json()["bundle"]
    started = service.http.post("/api/v1/executions", json={"bundle": bundle}, headers=service.as_("run"))
    id = started.json()["execution_id"]
    store = service.driver.store
    monkeypatch.setattr(store, method, failing(getattr(store, method), 2))

    async def followed() -> str:
        return "".join([text async for text in live_events(service.driver, id, 0)])

    text = asyncio.run(asyncio.wait_for(followed(), 120))
    numbers = [int(line[4:]) for line in text.splitlines() if line.startswith("id: ")]
    assert numbers == [recorded.seq for recorded in store.events(id)]


def test_a_worker_is_sent_away_with_a_reason_while_the_store_cannot_be_read(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = service.driver.store
    monkeypatch.setattr(store, "token", failing(store.token, 1))
    with (
        service.http.websocket_connect("/api/v1/worker", headers=service.as_("worker")) as socket,
        pytest.raises(WebSocketDisconnect) as ended,
    ):
        socket.receive_bytes()
    assert ended.value.code == 1013


# ---- clients

EVENTS = "".join(f'id: {number}\nevent: x\ndata: {{"seq": {number}}}\n\n' for number in (1, 2, 3))
FIRST = EVENTS[: EVENTS.index("id: 2")]
ENDING = {"status": "success"}


class Broken(httpx.SyncByteStream, httpx.AsyncByteStream):
    """The beginning of a stream, whose connection is lost then."""

    def __iter__(self) -> Any:
        yield FIRST.encode()
        raise httpx.ReadError("the connection was lost")

    async def __aiter__(self) -> Any:
        yield FIRST.encode()
        raise httpx.ReadError("the connection was lost")


def away(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("refused", request=request)


def problem(status: int) -> Callable[[httpx.Request], httpx.Response]:
    return lambda _request: httpx.Response(status, json={"detail": "the store cannot be read"})


def server(answers: list[Callable[[httpx.Request], httpx.Response]]) -> httpx.MockTransport:
    left = iter(answers)
    return httpx.MockTransport(lambda request: next(left)(request))


def outage() -> list[Callable[[httpx.Request], httpx.Response]]:
    def rest(request: httpx.Request) -> httpx.Response:
        assert request.headers["Last-Event-ID"] == "1"
        return httpx.Response(200, text=EVENTS[len(FIRST) :])

    return [lambda _request: httpx.Response(200, stream=Broken()), away, problem(503), problem(429), rest]


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noetlvm.client.client.RECONNECT_SECONDS", 0.0)


def test_a_client_follows_an_execution_through_an_outage() -> None:
    with Client("http://server", "token") as client:
        client._http = httpx.Client(base_url="http://server", transport=server(outage()))
        assert [event["seq"] for event in client.follow("x")] == [1, 2, 3]


def test_a_client_waits_for_an_ending_through_an_outage() -> None:
    end = [
        lambda _request: httpx.Response(200, text=""),
        away,
        problem(503),
        lambda _request: httpx.Response(200, json=ENDING),
    ]
    with Client("http://server", "token") as client:
        client._http = httpx.Client(base_url="http://server", transport=server(end))
        assert client.wait("x") == ENDING


def test_an_async_client_waits_through_an_outage() -> None:
    answers = [*outage(), away, problem(503), lambda _request: httpx.Response(200, json=ENDING)]

    async def run() -> None:
        async with AsyncClient("http://server", "token") as client:
            client._http = httpx.AsyncClient(base_url="http://server", transport=server(answers))
            assert [event["seq"] async for event in client.follow("x")] == [1, 2, 3]
            assert await client.patiently(lambda: client.ending("x")) == ENDING

    asyncio.run(run())


def test_a_client_that_was_served_follows_through_an_outage_from_the_start() -> None:
    served = [lambda _request: httpx.Response(200, json=ENDING)]
    with Client("http://server", "token") as client:
        client._http = httpx.Client(base_url="http://server", transport=server([*served, away, *outage()]))
        client.ending("x")
        assert [event["seq"] for event in client.follow("x")] == [1, 2, 3]


@pytest.mark.parametrize(("answer", "status"), [(away, 0), (problem(503), 503), (problem(404), 404)])
def test_a_server_that_never_answered_is_not_waited_for(
    answer: Callable[[httpx.Request], httpx.Response], status: int
) -> None:
    with Client("http://server", "token") as client:
        client._http = httpx.Client(base_url="http://server", transport=server([answer]))
        with pytest.raises(ServiceError) as refused:
            list(client.follow("x"))
    assert refused.value.status == status
