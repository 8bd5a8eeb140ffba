"""A TCP proxy that can cut, stall and slow the connections through it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from typing import Any

_CHUNK = 65_536


class Proxy:
    """Forwards connections from a loopback port to an address, `HOST:PORT` or the path of a socket."""

    def __init__(self, upstream: str) -> None:
        self.port = 0
        self._upstream = upstream
        self._loop = asyncio.new_event_loop()
        self._flows = asyncio.Event()
        self._delay = 0.0
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._ready = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()
        assert self._ready.wait(30)

    def stall(self) -> None:
        """Forward nothing; connections stay open."""
        self._call(self._flows.clear)

    def resume(self) -> None:
        """Forward again: what was held back arrives late."""
        self._call(self._flows.set)

    def reset(self) -> None:
        """Close all connections, and forward those that come."""
        self._call(self._close_all)

    def slow(self, seconds: float) -> None:
        """Hold everything back for so long; 0: no more."""
        self._delay = seconds

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._shut_down(), self._loop).result(10)
        self._call(self._loop.stop)

    async def _shut_down(self) -> None:
        self._close_all()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _call(self, function: Any) -> None:
        self._loop.call_soon_threadsafe(function)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._flows.set()
        self._loop.run_until_complete(self._listen())
        self._loop.run_forever()

    async def _listen(self) -> None:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self._upstream.startswith("/"):
                there, back = await asyncio.open_unix_connection(self._upstream)
            else:
                host, _, port = self._upstream.rpartition(":")
                there, back = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.close()
            return
        self._writers |= {writer, back}
        self._spawn(self._pump(reader, back))
        self._spawn(self._pump(there, writer))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK):
                await self._flows.wait()
                if self._delay:
                    await asyncio.sleep(self._delay)  # the fault itself
                writer.write(data)
                await writer.drain()
        self._writers.discard(writer)
        writer.close()

    def _close_all(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()
        self._flows.set()
