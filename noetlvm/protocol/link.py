"""A worker's connection to a server: the port, and its implementation over a WebSocket."""

from __future__ import annotations

import contextlib
import http.client
import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from noetlvm.limits import TOOL_OUTPUT_BYTES_MAX

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

MESSAGE_BYTES_MAX = TOOL_OUTPUT_BYTES_MAX * 3 // 2
"""Of a message of either side: the largest result that a tool may give has room in it."""
READ_SECONDS = 30
CLOSE_SECONDS = 1.0
"""How long to wait for a server to close a connection: it may be gone."""
UNAUTHORIZED = 4401
"""Code that closes a WebSocket whose token is refused."""

_OK = 200


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
        from websockets.exceptions import ConnectionClosed, WebSocketException

        address = self._server.replace("http", "ws", 1) + "/api/v1/worker"
        headers = {"Authorization": f"Bearer {self._token}"}
        options: dict[str, Any] = {"max_size": MESSAGE_BYTES_MAX, "compression": None, "close_timeout": CLOSE_SECONDS}
        try:
            async with connect(address, additional_headers=headers, **options) as socket:
                yield _SocketExchange(socket)
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
