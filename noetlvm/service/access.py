"""Who may call what, how often and with how much: tokens, scopes, rates, sizes and slow senders."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from noetlvm.service.problems import ProblemError, problem_response
from noetlvm.service.store_threads import StoreThread
from noetlvm.service.tokens import allowed_by, token_id
from noetlvm.store.interface import Tokens

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as HttpProtocol
else:
    from uvicorn.protocols.http.auto import AutoHTTPProtocol as HttpProtocol  # in C if httptools is there

BODY_BYTES_MAX = 32 * 1024 * 1024
"""The largest body of a request: a bundle, or a stored result."""
BODY_SECONDS_MAX = 30.0
"""How long a client may take to send a body."""
HEADERS_SECONDS_MAX = 15.0
"""How long a client may take to send the headers of a request."""
HEADERS_BYTES_MAX = 64 * 1024
REQUESTS_PER_SECOND = 200.0
BURST_REQUESTS = 1_000
"""What one token may send: a burst, and a rate per second. Workers have one connection and are not counted."""
READERS_MAX = 16
"""Threads for the requests of people that read the store, and as many for those of workers."""
CALLERS_MAX = 10_000
"""Callers whose rate is in memory; the least recent is evicted first."""
CHECKED_SECONDS = 2.0
"""How long a checked token is trusted before the store is read again: one revoked elsewhere works no longer."""


_Read = TypeVar("_Read")


class Caller(NamedTuple):
    """The sender of a request, from its token."""

    token: str
    allowed: frozenset[str]


class TokenAccess:
    """Checks tokens and rates. Both are caches: losing them costs a read of the store."""

    def __init__(self, store: Tokens, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._thread = StoreThread("tokens")
        self._clock = clock
        self._checked: OrderedDict[str, tuple[float, frozenset[str]]] = OrderedDict()
        self._reading: dict[str, asyncio.Future[frozenset[str]]] = {}
        self._rates: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def known(self, token: str) -> frozenset[str] | None:
        """Return what a token allows; None: that must be read."""
        found = self._checked.get(token)
        return None if found is None or self._clock() - found[0] > CHECKED_SECONDS else found[1]

    def allowed(self, token: str) -> frozenset[str]:
        """Return what a token allows, from the store unless that was read a moment ago."""
        found = self.known(token)
        if found is None:
            now, found = self._clock(), allowed_by(self._store, token)
            _remember(self._checked, token, (now, found))
        return found

    async def checked(self, token: str) -> frozenset[str]:
        """Return what a token allows. Many requests at once with one token read it once."""
        found = self.known(token)
        if found is not None:
            return found
        if token not in self._reading:
            self._reading[token] = asyncio.ensure_future(self._thread(partial(self.allowed, token), 0.0))
            self._reading[token].add_done_callback(lambda _done: self._reading.pop(token))
        return await asyncio.shield(self._reading[token])

    def close(self) -> None:
        """End the thread. Idempotent."""
        self._thread.close()

    def forget(self, id: str) -> None:
        """Read a token again when it is used next."""
        for token in [token for token in self._checked if token_id(token) == id]:
            del self._checked[token]

    def spend(self, token: str) -> float:
        """Count a request; return how many seconds to wait if that is one too many, else 0."""
        now = self._clock()
        left, since = self._rates.get(token, (float(BURST_REQUESTS), now))
        left = min(float(BURST_REQUESTS), left + (now - since) * REQUESTS_PER_SECOND)
        _remember(self._rates, token, (max(left - 1, 0.0), now))
        return 0.0 if left >= 1 else (1 - left) / REQUESTS_PER_SECOND


def _remember(cache: OrderedDict[str, Any], key: str, value: Any) -> None:
    cache[key] = value
    cache.move_to_end(key)
    while len(cache) > CALLERS_MAX:
        cache.popitem(last=False)


class _ScopeCheck(HTTPBearer):
    """A dependency that checks token, rate and scope. One for all three: each level of dependencies costs time."""

    def __init__(self, scopes: tuple[str, ...], *, is_counted: bool) -> None:
        super().__init__(scheme_name="HTTPBearer", description="A token of `noetlvm token create`.", auto_error=False)
        self._scopes = scopes
        self._is_counted = is_counted

    async def __call__(self, request: Request) -> Caller:  # type: ignore[override]  # a caller instead of its token
        access: TokenAccess = request.app.state.access
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        token = given.strip() if scheme.lower() == "bearer" else ""
        allowed = await access.checked(token) if token else frozenset()
        if not allowed:
            problem = "this token is unknown or revoked" if token else "send a token: `Authorization: Bearer …`"
            detail = f"{problem}; `noetlvm token create` makes one"
            raise ProblemError(401, detail, headers={"WWW-Authenticate": "Bearer"})
        wait = access.spend(token) if self._is_counted else 0.0
        if wait:
            raise ProblemError(429, "too many requests", headers={"Retry-After": f"{max(1, round(wait))}"})
        if not allowed.intersection(self._scopes):
            raise ProblemError(403, f"this token does not allow {' or '.join(f'`{scope}`' for scope in self._scopes)}")
        return Caller(token, allowed)


def requires(*scopes: str, is_counted: bool = True) -> Any:
    """Return the dependency of a route that needs one of these scopes; `is_counted`: its rate is limited."""
    return Depends(_ScopeCheck(scopes, is_counted=is_counted))


class Readers:
    """Threads that read the store for requests, some for people and some for workers: neither waits for the other.

    Leases, reports and the checks of tokens use none of them.
    """

    def __init__(self) -> None:
        self._workers = CapacityLimiter(READERS_MAX)
        to_thread.current_default_thread_limiter().total_tokens = READERS_MAX

    async def read(self, caller: Caller, read: Callable[..., _Read], *given: Any) -> _Read:
        """Read something for a caller."""
        return await to_thread.run_sync(read, *given, limiter=self._workers if "worker" in caller.allowed else None)


class BodyLimits:
    """ASGI middleware: a body that is too large or too slow ends its request, before anything reads it whole."""

    def __init__(self, app: ASGIApp, bytes_max: int = BODY_BYTES_MAX, seconds_max: float = BODY_SECONDS_MAX) -> None:
        self._app = app
        self._bytes_max = bytes_max
        self._seconds_max = seconds_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if "\0" in scope["path"] or b"%00" in scope["query_string"]:  # PostgreSQL takes no such text
            await self._refuse(
                404 if "\0" in scope["path"] else 400, "nothing has a NUL character in its name", scope, receive, send
            )
            return
        headers = dict(scope["headers"])
        announced = headers.get(b"content-length", b"0")
        too_large = f"a body may have {self._bytes_max:,} bytes"
        if not announced.isdigit() or int(announced) > self._bytes_max:
            await self._refuse(413, too_large, scope, receive, send)
            return
        try:
            async with asyncio.timeout(self._seconds_max):
                body = await self._body(receive)
        except TimeoutError:
            await self._refuse(408, f"send the body within {self._seconds_max:g} seconds", scope, receive, send)
            return
        if body is None:
            await self._refuse(413, too_large, scope, receive, send)
            return
        await self._app(scope, _replayed(body, receive), send)

    async def _body(self, receive: Receive) -> bytes | None:
        parts: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return b""
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._bytes_max:
                return None
            if not message.get("more_body"):
                return b"".join(parts)

    @staticmethod
    async def _refuse(status: int, detail: str, scope: Scope, receive: Receive, send: Send) -> None:
        # The rest of the body is not read: the connection cannot serve another request.
        await problem_response(status, detail, {"Connection": "close"})(scope, receive, send)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives a body that was read already, and then waits for the client to leave."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return messages.pop() if messages else await receive()

    return again


class TimedConnection(HttpProtocol):
    """A connection of uvicorn that ends if headers are too large or do not arrive in time; bodies have limits too."""

    headers_seconds_max = HEADERS_SECONDS_MAX
    _timer: asyncio.TimerHandle | None = None
    _headers_size = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_headers()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._headers_size = self._headers_size + len(data) if self._is_waiting else 0
        self._expect_headers()
        if self._headers_size > HEADERS_BYTES_MAX:
            self._refuse(b"431 Request Header Fields Too Large")

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    @property
    def _is_waiting(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _expect_headers(self) -> None:
        if not self._is_waiting:
            self._stop_timer()  # they have arrived
        elif self._timer is None and self.timeout_keep_alive_task is None:
            self._timer = self.loop.call_later(self.headers_seconds_max, self._expire)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        self._timer = None
        if self._is_waiting and self.timeout_keep_alive_task is None:
            self._refuse(b"408 Request Timeout")

    def _refuse(self, status: bytes) -> None:
        if self.transport.get_protocol() is self and not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 %s\r\nConnection: close\r\nContent-Length: 0\r\n\r\n" % status)
            self.transport.close()
