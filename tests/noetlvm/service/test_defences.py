"""What a server does about slow senders, large messages, revoked tokens and workers that do not redact."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from contextlib import suppress
from typing import Any

import pytest

from noetlvm.command_line.process import CommandError
from noetlvm.data.event import Event
from noetlvm.protocol.link import RefusedError, ServerLink, WebSocketLink
from noetlvm.protocol.messages import event_form
from noetlvm.protocol.reported_events import reported_event
from noetlvm.rounds.credentials import Credentials
from noetlvm.service import access
from noetlvm.service.access import TimedConnection
from noetlvm.service.driver import Driver
from noetlvm.service.process import bound_socket
from noetlvm.worker.remote_worker import RemoteWorker
from tests.canary import find_canaries
from tests.noetlvm.engine.runs import PlayedTools
from tests.noetlvm.service.test_leases import driven
from tests.noetlvm.service.test_placement import CHAIN, Hand, settled, start
from tests.noetlvm.service.test_remote_worker import served
from tests.waiting import turns, until, wait_until

SECRET = "canary-7d1fa0c35b9e4426"


def answer_to(port: int, *parts: bytes) -> bytes:
    """Send what is given, each part after an answer to the one before; return all until the connection is closed."""
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        received = b""
        for part in parts[:-1]:
            connection.sendall(part)
            received += connection.recv(65536)
        connection.sendall(b"".join(parts[-1:]))
        with suppress(ConnectionResetError):  # the server closes it with something unread
            while data := connection.recv(65536):
                received += data
    return received


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TimedConnection, "headers_seconds_max", 0.5)
    monkeypatch.setattr(access.BodyLimits, "__init__", _impatient)


def _impatient(self: access.BodyLimits, app: Any) -> None:
    self._app, self._bytes_max, self._seconds_max = app, access.BODY_BYTES_MAX, 0.5


@pytest.mark.usefixtures("impatient")
def test_senders_that_are_too_slow_get_an_answer_and_lose_the_connection() -> None:
    with served() as service:
        port = int(service.url.rpartition(":")[2])
        for begun in (b"", b"GET /healthz HT", b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: "):
            assert answer_to(port, begun).startswith(b"HTTP/1.1 408")
        ok = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
        twice = answer_to(port, ok, b"GET /healthz HTTP/1.1\r\nHo")
        assert twice.startswith(b"HTTP/1.1 200")
        assert b"HTTP/1.1 408" in twice
        head = b"POST /api/v1/executions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n"
        slow = answer_to(port, head + b"{")
        assert slow.startswith(b"HTTP/1.1 408")
        assert b"send the body within 0.5 seconds" in slow


def test_headers_without_end_lose_the_connection() -> None:
    with served() as service:
        port = int(service.url.rpartition(":")[2])
        answer = answer_to(port, b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: " + b"x" * 100_000)
        assert not answer or answer.startswith((b"HTTP/1.1 431", b"HTTP/1.1 400"))


@pytest.mark.usefixtures("impatient")
def test_a_connection_that_works_is_not_ended_by_the_timers() -> None:
    async def run(link: ServerLink) -> None:
        async with asyncio.timeout(120), link.connect() as exchange:
            from noetlvm.data.encoding import encode

            await exchange.send(encode({"worker": "one", "pools": ["default"], "slots": 1}))
            await asyncio.sleep(2 * TimedConnection.headers_seconds_max)  # the timers would have ended it
            await exchange.send(encode({"beat": 1, "held": []}))
            assert await exchange.receive()

    with served() as service:
        asyncio.run(run(WebSocketLink(service.url, service.token)))


def test_a_worker_that_sends_after_it_was_refused_does_not_try_again() -> None:
    async def run() -> None:
        while True:
            # A reset by the kernel can overtake the close frame: the worker connects again then.
            with contextlib.suppress(ConnectionError):
                async with WebSocketLink(service.url, "unknown").connect() as exchange:
                    while True:
                        await exchange.send(b"")
                        await turns()

    with served() as service, pytest.raises(RefusedError):
        asyncio.run(asyncio.wait_for(run(), 120))


def test_a_revoked_token_ends_the_connection_of_its_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "CHECKED_SECONDS", 0.1)

    async def run(token: str, revoke: Any) -> None:
        worker = RemoteWorker(WebSocketLink(service.url, token), PlayedTools(), id="one", pools=("default",), slots=1)
        task = asyncio.create_task(worker.run())
        await until(lambda: service.driver.workers.hub.workers)
        revoke()
        with pytest.raises(RefusedError):
            await asyncio.wait_for(task, 120)

    with served() as service:
        from noetlvm.service.tokens import create_token

        made = create_token(service.store, ["worker"], 1.0)
        asyncio.run(run(made.token, lambda: service.store.revoke_token(made.id, 2.0)))


ERROR = {"kind": "shell", "message": "exit code 1"}
DONE = {"outcome": {"status": "ok"}, "do": "continue", "pc": 3}


@pytest.mark.parametrize(
    "fields",
    [
        ["task.done", DONE, 1, "", 1, "a"],
        ["task.done", DONE, "1", "", 1, "a", 1],
        ["task.done", DONE, 1, "", 2**70, "a", 1],
        ["task.done", DONE, 1, "", 1, "a\0", 1],
        ["task.done", DONE | {"pc": None}, 1, "", 1, "a", 1],
        ["task.done", DONE | {"outcome": {"error": {}}}, 1, "", 1, "a", 1],
        ["task.done", DONE | {"iter": 3}, 1, "", 1, "a", 1],
        ["task.started", {"child": {}}, 1, "", 1, "a", 1],
        ["step.failed", {}, 1, "", 0, "", 0],
        ["step.failed", {"error": {"kind": "x"}}, 1, "", 0, "", 0],
        ["loop.iteration.done", {"result": 1, "stored": {"at": [0]}}, 1, "0", 0, "", 0],
        ["execution.cancelled", {}, 1, "", 0, "", 0],
        ["nonsense", {}, 1, "", 0, "", 0],
    ],
)
def test_an_event_that_no_worker_sends_is_refused(fields: list[Any]) -> None:
    with pytest.raises(ValueError, match=r"event|has|lacks|field|is"):
        reported_event(dict(zip(Event._fields, fields, strict=False)))


@pytest.mark.parametrize("fields", [{}, {"name": "step.done"}, {**Event("step.done", {})._asdict(), "more": 1}])
def test_an_event_with_unknown_or_missing_fields_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="unknown or missing fields"):
        reported_event(fields)


def test_an_event_of_a_worker_is_taken() -> None:
    for data in (DONE, DONE | {"outcome": {"status": "error", "error": ERROR, "meta": {"ts": 1.5}}, "do": "retry"}):
        sent = Event("task.done", data, 1, "2.0", 1, "a.b", 1)
        assert reported_event(event_form(sent)) == sent


def test_a_message_may_hold_the_largest_result_of_a_tool() -> None:
    from hashlib import sha256

    from noetlvm.data.encoding import encode
    from noetlvm.limits import TOOL_OUTPUT_BYTES_MAX
    from noetlvm.protocol.link import MESSAGE_BYTES_MAX

    data = encode("x" * TOOL_OUTPUT_BYTES_MAX)
    message = encode({"reports": [], "results": [{"key": sha256(data).hexdigest(), "data": data}]})
    assert len(message) < MESSAGE_BYTES_MAX


def test_the_server_takes_secrets_out_of_what_a_worker_reports() -> None:
    async def test(driver: Driver) -> None:
        hand = await Hand(driver, "one").join()
        id = await start(driver, CHAIN)
        (work,) = await hand.next()
        driver.rounds.active[id].credentials = Credentials({"db": SECRET}, [SECRET])
        hand.report(work, Event("step.done", {"result": {"dsn": f"postgres://x:{SECRET}@db"}}, work.run))
        await settled(driver)
        log = list(driver.store.events(id))
        assert any(one.event.name == "step.done" for one in log)
        assert not find_canaries(repr(log).encode(), SECRET)

    driven(test)


def test_the_metrics_name_no_data_of_playbooks() -> None:
    with served() as service:
        import httpx

        wait_until(lambda: httpx.get(f"{service.url}/readyz").status_code == 200)
        text = httpx.get(f"{service.url}/metrics", headers={"Authorization": f"Bearer {service.token}"}).text
        assert "noetlvm_workers_connected" in text
        labels = {line.partition("{")[2].partition("=")[0] for line in text.splitlines() if "{" in line}
        assert labels <= {"name", "status"}


@pytest.mark.parametrize("listen", ["127.0.0.1", "127.0.0.1:x", "127.0.0.1:65536", ":80"])
def test_an_address_that_is_none_is_refused(listen: str) -> None:
    with pytest.raises(CommandError, match="is not an address: give HOST:PORT"):
        bound_socket(listen)


def test_a_port_that_is_taken_is_named_once() -> None:
    with bound_socket("127.0.0.1:0") as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(CommandError, match=f"^cannot listen on {listen}: Address already in use$"):
            bound_socket(listen)
