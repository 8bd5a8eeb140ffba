"""A worker's connection to a server over WebSocket."""

from __future__ import annotations

import asyncio

import pytest
from websockets.asyncio.server import ServerConnection, serve

from noetlvm.protocol.link import UNAUTHORIZED, RefusedError, WebSocketLink


def exchanged(code: int) -> None:
    """Connect to a server that closes with a code, and read."""

    async def close(socket: ServerConnection) -> None:
        await socket.close(code, "because")

    async def run() -> None:
        async with serve(close, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            async with WebSocketLink(f"http://127.0.0.1:{port}", "token").connect() as exchange:
                await exchange.receive()

    asyncio.run(asyncio.wait_for(run(), 120))


def test_a_refused_token_is_final() -> None:
    with pytest.raises(RefusedError, match="because"):
        exchanged(UNAUTHORIZED)


def test_a_lost_connection_can_be_tried_again() -> None:
    with pytest.raises(ConnectionError):
        exchanged(1011)


def test_a_server_that_is_not_there_is_an_error_of_the_connection() -> None:
    async def run() -> None:
        async with WebSocketLink("http://127.0.0.1:9", "token").connect():
            pass

    with pytest.raises(OSError, match=r"."):
        asyncio.run(run())
