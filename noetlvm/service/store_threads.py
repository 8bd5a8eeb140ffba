"""Threads for the calls of a remote store: none blocks the event loop, and none waits for the calls of another subject.

A server has one for its decisions, one for leases and one for tokens. Requests of people have the threads of the web
framework, which are bounded (`access.READERS_MAX`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Protocol, TypeVar

_Answer = TypeVar("_Answer")

BLOCK_SECONDS = 0.05
"""How long a call of a remote store blocks the event loop: most answers come sooner than it could do something else."""


class InThread(Protocol):
    """Makes a call of the store in a thread, and blocks the event loop for `block_seconds` at most."""

    def __call__(self, call: Callable[[], _Answer], /, block_seconds: float) -> Awaitable[_Answer]: ...


class StoreThread:
    """One thread, for the calls of one subject: they are made in the order in which they come."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, name)

    async def __call__(self, call: Callable[[], _Answer], /, block_seconds: float) -> _Answer:
        answer = self._thread.submit(call)
        if block_seconds:
            with suppress(TimeoutError):
                return answer.result(block_seconds)
        return await asyncio.wrap_future(answer)

    def close(self) -> None:
        """Wait for what is being called, and end. Idempotent."""
        self._thread.shutdown()


class StoreCalls:
    """The calls of one subject, in a thread if there is one, and since when the oldest of them waits."""

    def __init__(self, in_thread: InThread | None = None, *, is_remote: bool = False) -> None:
        """`in_thread` makes large calls, and if the store `is_remote`, every call: it may not answer for a while."""
        self._in_thread = in_thread
        self._is_remote = is_remote
        self._began: list[float] = []

    @property
    def has_thread(self) -> bool:
        return self._in_thread is not None

    @property
    def waiting_seconds(self) -> float:
        """Return for how long the oldest call has not been answered."""
        return asyncio.get_running_loop().time() - self._began[0] if self._began else 0.0

    async def __call__(self, call: Callable[[], _Answer], *, is_large: bool = False) -> _Answer:
        if self._in_thread is None or not (is_large or self._is_remote):
            return call()
        self._began.append(began := asyncio.get_running_loop().time())
        try:
            return await self._in_thread(call, block_seconds=0.0 if is_large else BLOCK_SECONDS)
        finally:
            self._began.remove(began)
