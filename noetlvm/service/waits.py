"""What clients wait for at this server: long requests, streams of events, connections of workers.

Each ends at once when the server stops, or when the token is revoked under which it began.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable
from typing import TypeVar

from noetlvm.service import access
from noetlvm.service.access import TokenAccess
from noetlvm.service.tokens import token_id
from noetlvm.store.interface import StoreError

REVOKED = "the token was revoked"
STOPPING = "the server is stopping"

_Result = TypeVar("_Result")


class WaitEndedError(Exception):
    """The server ended what a client waited for. Its text says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.is_revoked = reason == REVOKED


class OpenWaits:
    """Everything that lasts as long as a client likes."""

    def __init__(self, access: TokenAccess) -> None:
        self._access = access
        self._open: dict[asyncio.Future[None], str] = {}
        """A future for each, which gets the error that ends it, with its token."""
        self._is_stopping = False

    async def run(self, token: str, work: Awaitable[_Result]) -> _Result:
        """Await something for the holder of a token. Raises WaitEndedError as soon as it may no longer last."""
        task = asyncio.ensure_future(work)
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._open[ended] = token
        if self._is_stopping:
            _end(ended, STOPPING)
        try:
            await asyncio.wait((task, ended), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                await _cancelled(task)
                ended.result()
            return task.result()
        finally:
            del self._open[ended]
            ended.cancel()
            if not task.done():  # this is cancelled itself
                await _cancelled(task)

    async def watch(self) -> None:
        """Look again and again whether another server, or a command, has revoked a token that is in use here."""
        while True:
            await asyncio.sleep(access.CHECKED_SECONDS)
            for token in set(self._open.values()):
                with contextlib.suppress(StoreError):  # it was allowed, and nothing says otherwise
                    if not await self._access.checked(token):
                        self._end_all(REVOKED, token)

    def revoked(self, id: str) -> None:
        """End what began under a token that is revoked now."""
        self._access.forget(id)
        for token in {token for token in self._open.values() if token_id(token) == id}:
            self._end_all(REVOKED, token)

    def stop(self) -> None:
        """End everything, also what begins from now on."""
        self._is_stopping = True
        self._end_all(STOPPING)

    def _end_all(self, reason: str, token: str | None = None) -> None:
        for ended, of in self._open.items():
            if token in (None, of):
                _end(ended, reason)


def _end(ended: asyncio.Future[None], reason: str) -> None:
    if not ended.done():
        ended.set_exception(WaitEndedError(reason))


async def _cancelled(task: asyncio.Future[_Result]) -> None:
    """Cancel a task, and wait until it has ended."""
    task.cancel()
    await asyncio.wait((task,))
