"""Connections of `kind: http`: when one is used again, what goes through a proxy, and where a response ends."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from noetlvm.tools.call import Outcome
from noetlvm.tools.http_connection import HttpLimits, _Connection

Run = Callable[..., Outcome]
RunAll = Callable[..., list[Outcome]]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CLOSE = b""
"""Instead of an answer: the server closes the connection."""


class Server:
    """Gives its answers one after another, each to one request, over as many connections as the client opens."""

    def __init__(self, answers: list[bytes], tls: ssl.SSLContext | None = None, tunnels: bool = False) -> None:
        self.requests: list[str] = []
        self.connections = 0
        self._answers = iter(answers)
        self._tls = tls
        self._tunnels = tunnels
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            if self._tunnels:
                self.requests.append(_request(connection))
                connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            secure = self._tls.wrap_socket(connection, server_side=True) if self._tls else connection
            while request := _request(secure):
                self.requests.append(request)
                answer = next(self._answers)
                if answer is CLOSE:
                    return
                secure.sendall(answer)
                if b"\r\n\r\n" in answer and b"Content-Length" not in answer and b"chunked" not in answer:
                    return

    def close(self) -> None:
        self._listener.close()


def _request(connection: socket.socket) -> str:
    """Return a request without its body; empty: there is none."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return ""
        data += piece
    return data.decode()


@contextmanager
def serving(*answers: bytes, **more: Any) -> Iterator[Server]:
    server = Server(list(answers), **more)
    try:
        yield server
    finally:
        server.close()


def self_signed() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Path(__file__).with_name("tls") / "self_signed.pem")
    return context


def get(server: Server, **inputs: Any) -> tuple[str, dict[str, Any]]:
    return "http", {"url": f"http://{server.address}/", **inputs}


def test_a_connection_is_used_again(run_all: RunAll) -> None:
    with serving(OK, OK, OK) as server:
        assert [outcome["status"] for outcome in run_all(*[get(server)] * 3)] == ["ok"] * 3
    assert server.connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        OK + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
        OK + b"more",
        b"HTTP/1.1 200 OK\r\n\r\nok",
    ],
    ids=["close", "HTTP/1.0", "two responses", "more than it says", "to the end of the connection"],
)
def test_a_connection_that_may_hold_something_else_is_not_used_again(run_all: RunAll, answer: bytes) -> None:
    with serving(answer, OK) as server:
        found = [outcome["result"]["data"] for outcome in run_all(get(server), get(server))]
    assert (found, server.connections) == (["ok", "ok"], 2)


@pytest.mark.parametrize(("method", "status"), [("GET", "ok"), ("PUT", "ok"), ("POST", "error")])
def test_a_request_that_an_idle_connection_lost_is_sent_again_if_it_is_idempotent(
    run_all: RunAll, method: str, status: str
) -> None:
    with serving(OK, CLOSE, OK) as server:
        _, second = run_all(get(server), get(server, method=method))
    assert second["status"] == status
    assert len(server.requests) == (3 if status == "ok" else 2)


def test_a_new_connection_that_is_closed_gets_no_second_request(run: Run) -> None:
    with serving(CLOSE, OK) as server:
        error = run(*get(server))["error"]
    assert (error["kind"], error["retryable"], len(server.requests)) == ("connection", True, 1)


@pytest.mark.parametrize(
    ("method", "answer", "data"),
    [
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", None),
        ("GET", b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", None),
        ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n", None),
        (
            "GET",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1;x=y\r\nk\r\n0\r\nT: t\r\n\r\n",
            "ok",
        ),
        ("GET", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + OK, "ok"),
    ],
    ids=["HEAD", "204", "304", "chunks and trailers", "interim responses"],
)
def test_the_end_of_a_response_is_found(run_all: RunAll, method: str, answer: bytes, data: str | None) -> None:
    with serving(answer, OK) as server:
        first, second = run_all(get(server, method=method), get(server))
    assert (first["status"], first["result"]["data"], second["result"]["data"]) == ("ok", data, "ok")
    assert server.connections == 1
    assert not {"link", "t"} & first["result"]["headers"].keys()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", "another protocol"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "transfer coding `gzip, chunked`"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nT: " + b"t" * 300_000, "262,144 bytes"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;" + b"x" * 300_000 + b"\r\nok\r\n", "262,144 bytes"),
        (b"HTTP/1.1 103 Early Hints\r\n\r\n" * 20_000, "262,144 bytes"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "cannot be read"),
    ],
    ids=["upgrade", "transfer coding", "trailer", "chunk extension", "interim responses", "two framings"],
)
def test_a_response_that_was_not_requested_is_refused(run: Run, answer: bytes, words: str) -> None:
    with serving(answer) as server:
        assert words in run(*get(server))["error"]["message"]


def test_many_small_chunks_are_no_large_header(run: Run) -> None:
    chunks = b"1\r\nx\r\n" * 100_000
    with serving(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n") as server:
        assert run(*get(server))["result"]["data"] == "x" * 100_000


def test_headers_of_the_task_replace_usual_ones_however_they_are_written(run: Run) -> None:
    headers = {"user-agent": "mine", "ACCEPT": "text/plain", "content-length": "7", "host": "other"}
    with serving(OK) as server:
        run(*get(server, headers=headers, method="POST", body="four"))
    sent = [line.lower() for line in server.requests[0].split("\r\n")]
    found = {name: [line for line in sent if line.startswith(f"{name}:")] for name in headers | {"accept": ""}}
    assert found["user-agent"] == ["user-agent: mine"]
    assert found["accept"] == ["accept: text/plain"]
    assert found["host"] == ["host: other"]
    assert found["content-length"] == ["content-length: 4"]


def test_a_user_in_the_url_authenticates_unless_a_header_does(run: Run) -> None:
    with serving(OK, OK) as server:
        url = f"http://me:p%40w@{server.address}/"
        run("http", {"url": url})
        run("http", {"url": url, "headers": {"authorization": "Bearer t"}})
    first, second = server.requests
    assert "Authorization: Basic bWU6cEB3" in first
    assert "Basic" not in second


def test_a_secret_with_a_line_break_is_refused_and_not_shown(run: Run) -> None:
    with serving(OK) as server:
        error = run("http", {"url": f"http://{server.address}/"}, None, "t0ken\r\nX-Injected: 1")["error"]
    assert error["kind"] == "input"
    assert "t0ken" not in error["message"]
    assert server.requests == []


@pytest.fixture
def through(monkeypatch: pytest.MonkeyPatch) -> Callable[[Server, str], None]:
    def set_proxy(server: Server, scheme: str) -> None:
        monkeypatch.setenv("no_proxy", "")
        monkeypatch.setenv(f"{scheme}_proxy", f"http://me:pw@{server.address}")

    return set_proxy


def test_a_proxy_gets_the_whole_address(run: Run, through: Callable[[Server, str], None]) -> None:
    with serving(OK) as proxy:
        through(proxy, "http")
        assert run("http", {"url": "http://example.invalid/a?b=1#c"})["result"]["data"] == "ok"
    assert proxy.requests[0].startswith("GET http://example.invalid/a?b=1 HTTP/1.1\r\nHost: example.invalid\r\n")
    assert "Proxy-Authorization: Basic bWU6cHc=" in proxy.requests[0]


def test_a_proxy_connects_to_a_server_with_tls(run_all: RunAll, through: Callable[[Server, str], None]) -> None:
    with serving(OK, OK, tls=self_signed(), tunnels=True) as proxy:
        through(proxy, "https")
        call = ("http", {"url": "https://example.invalid/a"}, {"verify_tls": False})
        assert [outcome["result"]["data"] for outcome in run_all(call, call)] == ["ok", "ok"]
    connect, first, second = proxy.requests
    assert connect.startswith("CONNECT example.invalid:443 HTTP/1.1\r\n")
    assert "Proxy-Authorization: Basic bWU6cHc=" in connect
    assert first == second
    assert first.startswith("GET /a HTTP/1.1\r\nHost: example.invalid\r\n")
    assert "Proxy-Authorization" not in first


def test_a_proxy_that_refuses_is_named(run: Run, through: Callable[[Server, str], None]) -> None:
    with serving(b"HTTP/1.1 407 Who are you\r\nContent-Length: 0\r\n\r\n") as proxy:
        through(proxy, "https")
        error = run("http", {"url": "https://example.invalid/"})["error"]
    assert "the proxy 127.0.0.1 answered 407 Who are you" in error["message"]


class _SlowTransport(asyncio.Transport):
    """Of what it should write, it has less and less left, and then no less."""

    def __init__(self) -> None:
        super().__init__()
        self.left = [3, 2, 1]
        self.looked = 0

    def write(self, data: Any) -> None:
        """Take it."""

    def get_write_buffer_size(self) -> int:
        self.looked += 1
        return self.left.pop(0) if self.left else 1

    def abort(self) -> None:
        """Nothing is open."""


def test_a_server_that_reads_slowly_is_not_taken_for_silent() -> None:
    async def exchange() -> int:
        connection, transport = _Connection((), lambda _: None), _SlowTransport()
        connection.connection_made(transport)
        with pytest.raises(TimeoutError):
            await connection.exchange("PUT", b"", HttpLimits(read=0.01))
        return transport.looked

    assert asyncio.run(exchange()) == 4
