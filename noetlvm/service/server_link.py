"""A worker's connection to a server: the port, and its implementations over a WebSocket and over plain requests."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from noetlvm.data.encoding import decode
from noetlvm.limits import TOOL_OUTPUT_BYTES_MAX

if TYPE_CHECKING:
    from httpx import AsyncClient
    from websockets.asyncio.client import ClientConnection

MESSAGE_BYTES_MAX = TOOL_OUTPUT_BYTES_MAX * 3 // 2
"""Of a message of either side: the largest result that a tool may give has room in it."""
READ_SECONDS = 30
CLOSE_SECONDS = 1.0
"""How long to wait for a server to close a connection: it may be gone."""
UNAUTHORIZED = 4401
"""Code that closes a WebSocket whose token is refused."""

_OK = 200

_LOG = logging.getLogger("noetlvm.worker")


class RefusedError(Exception):
    """The server refuses this worker: trying again does not help."""


class Exchange(Protocol):
    """An open connection: messages in both directions, in order.

    If a method raises because the connection is lost, it ends with ConnectionError, or with RefusedError if the server
    refuses this worker.
    """

    async def send(self, data: bytes) -> None:
        """Send a message."""

    async def receive(self) -> bytes:
        """Return the next message."""


class ServerLink(Protocol):
    """The way to a server."""

    def connect(self) -> AbstractAsyncContextManager[Exchange]:
        """Open a connection. Raises OSError."""

    def get(self, path: str) -> bytes:
        """Read a bundle or a result. It blocks. Raises OSError, or LookupError if the server has none."""


class UpgradeRefusedError(ConnectionError):
    """Something on the way answers, and passes no WebSocket on."""


class WebSocketLink:
    """A server at a URL, over a WebSocket."""

    def __init__(self, server: str, token: str) -> None:
        self._server = server.rstrip("/")
        self._token = token

    def __str__(self) -> str:
        return self._server

    @contextlib.asynccontextmanager
    async def connect(self) -> AsyncIterator[Exchange]:
        from websockets.asyncio.client import connect
        from websockets.exceptions import ConnectionClosed, InvalidHandshake, WebSocketException

        address = self._server.replace("http", "ws", 1) + "/api/v1/worker"
        headers = {"Authorization": f"Bearer {self._token}"}
        options: dict[str, Any] = {"max_size": MESSAGE_BYTES_MAX, "compression": None, "close_timeout": CLOSE_SECONDS}
        try:
            async with connect(address, additional_headers=headers, **options) as socket:
                yield _SocketExchange(socket)
        except InvalidHandshake as error:
            raise UpgradeRefusedError(str(error)) from None
        except ConnectionClosed as error:  # whether it was sending or receiving
            reason = error.rcvd.reason if error.rcvd is not None else ""
            if error.rcvd is not None and error.rcvd.code == UNAUTHORIZED:
                raise RefusedError(reason or "the token is refused") from None
            raise ConnectionError(reason or str(error)) from None
        except WebSocketException as error:
            raise ConnectionError(str(error)) from None

    def get(self, path: str) -> bytes:
        url = urlsplit(self._server)
        port = url.port or (443 if url.scheme == "https" else 80)
        host = url.hostname or ""
        connection: http.client.HTTPConnection = (
            http.client.HTTPSConnection(host, port, timeout=READ_SECONDS, context=ssl.create_default_context())
            if url.scheme == "https"
            else http.client.HTTPConnection(host, port, timeout=READ_SECONDS)
        )
        with contextlib.closing(connection):
            try:
                connection.request("GET", path, headers={"Authorization": f"Bearer {self._token}"})
                answer = connection.getresponse()
                data = answer.read()
            except http.client.HTTPException as error:
                raise ConnectionError(f"the connection to the server broke: {error}") from None
        if answer.status != _OK:
            raise LookupError(f"the server answers {answer.status} for {path}")
        return data


class _SocketExchange:
    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def send(self, data: bytes) -> None:
        await self._socket.send(data)

    async def receive(self) -> bytes:
        data = await self._socket.recv()
        return data if isinstance(data, bytes) else data.encode()


class PollingLink:
    """A server at a URL, over plain requests: for a way to it that passes no WebSocket on."""

    def __init__(self, server: str, token: str) -> None:
        self._server = server.rstrip("/")
        self._token = token
        self.get = WebSocketLink(server, token).get

    def __str__(self) -> str:
        return self._server

    @contextlib.asynccontextmanager
    async def connect(self) -> AsyncIterator[Exchange]:
        import httpx

        headers = {"Authorization": f"Bearer {self._token}"}
        async with httpx.AsyncClient(
            base_url=f"{self._server}/api/v1", headers=headers, timeout=READ_SECONDS
        ) as client:
            exchange = _PollingExchange(client)
            try:
                yield exchange
            finally:
                await exchange.close()


class _PollingExchange:
    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._path = ""
        self._opened = asyncio.Event()
        self._messages: list[bytes] = []

    async def send(self, data: bytes) -> None:
        if self._path:
            await self._call("POST", f"{self._path}/messages", content=data)
        else:
            session = (await self._call("POST", "/worker/sessions", content=data)).decode()
            self._path = f"/worker/sessions/{session}"
            self._opened.set()

    async def receive(self) -> bytes:
        await self._opened.wait()
        while not self._messages:
            self._messages = decode(await self._call("GET", f"{self._path}/messages"))
        return self._messages.pop(0)

    async def close(self) -> None:
        """Let the server open the commands again that this worker had."""
        if self._path:
            with contextlib.suppress(OSError, RefusedError):
                await self._call("DELETE", self._path, timeout=CLOSE_SECONDS)

    async def _call(self, method: str, path: str, content: bytes | None = None, timeout: float = READ_SECONDS) -> bytes:
        from httpx import HTTPError

        try:
            answer = await self._client.request(method, path, content=content, timeout=timeout)
        except HTTPError as error:
            raise ConnectionError(f"no answer: {error}") from None
        if answer.status_code in (401, 403):
            raise RefusedError("the token is refused")
        if answer.status_code >= 400:
            raise ConnectionError(f"the server answers {answer.status_code}: {answer.text[:200]}")
        return answer.content


class AnyLink:
    """A server at a URL: over a WebSocket, or over plain requests while something on the way refuses that."""

    def __init__(self, server: str, token: str) -> None:
        self._socket, self._polling = WebSocketLink(server, token), PollingLink(server, token)
        self.get = self._socket.get

    def __str__(self) -> str:
        return str(self._socket)

    @contextlib.asynccontextmanager
    async def connect(self) -> AsyncIterator[Exchange]:
        async with contextlib.AsyncExitStack() as stack:
            try:
                exchange = await stack.enter_async_context(self._socket.connect())
            except UpgradeRefusedError as error:
                _LOG.warning("no WebSocket to %s (%s): plain requests instead", self, error)
                exchange = await stack.enter_async_context(self._polling.connect())
            yield exchange
