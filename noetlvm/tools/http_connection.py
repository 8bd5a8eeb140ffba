"""HTTP/1.1 connections of `kind: http`: a request is written, its response read, and nothing of it is left.

A response is bounded in all its parts: its body by the limit of a result, everything else by `_FRAMING_BYTES_MAX`. One
timer of a connection watches all its limits: it is set again when it is due, not for each piece that arrives.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Callable
from functools import cached_property
from socket import AI_NUMERICHOST, SOCK_STREAM, gaierror, getaddrinfo
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from urllib.parse import unquote

from aiohappyeyeballs import start_connection
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from noetlvm.limits import TOOL_OUTPUT_BYTES_MAX

if TYPE_CHECKING:
    from ssl import SSLContext

    from yarl import URL

_IDLE_SECONDS = 30
_HAPPY_EYEBALLS_SECONDS = 0.25
_FRAMING_BYTES_MAX = 256 * 1024
"""All of a response that is not its body: headers, interim responses, chunks' own headers, trailers."""
_CHUNK_BYTES = 32
"""What each chunk may have besides."""
_Key: TypeAlias = tuple[object, ...]
"""Requests of the same key may use the same connection."""

_IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})


class ResponseError(Exception):
    """A response that cannot be used."""


class ResponseTooLargeError(Exception):
    """A response is larger than a result may be."""


class _UnansweredError(ConnectionError):
    """The server closed the connection without a byte of a response."""


class HttpLimits(NamedTuple):
    """Seconds that a request may take: to connect, between two pieces of the response, and in all."""

    connect: float | None = None
    read: float | None = None
    total: float | None = None


class HttpRequest(NamedTuple):
    method: str
    url: URL
    headers: dict[str, str]
    """Without those that define how the message is framed."""
    body: bytes | None = None
    verify_tls: bool = True


class HttpResponse(NamedTuple):
    status: int
    reason: str
    headers: dict[str, str]
    """By lower-case name; the values of a repeated one are joined."""
    body: bytes


class Connections:
    """Connections by server. An idle one is used for the next request; their number has no limit here."""

    def __init__(self) -> None:
        from urllib.request import getproxies

        self._proxies = getproxies()
        self._idle: dict[_Key, list[_Connection]] = {}
        self._open: set[_Connection] = set()

    async def send(self, request: HttpRequest, limits: HttpLimits) -> HttpResponse:
        """Send a request and return its response.

        Raises OSError, which TimeoutError is one of; ResponseError; ResponseTooLargeError.
        """
        url, proxy = request.url, self._proxy(request.url)
        message = _message(request, proxy)
        key = url.scheme, url.raw_host, url.port, request.verify_tls, proxy
        connection = self._take_idle(key)
        if connection is not None:
            try:
                return await self._exchange(connection, request.method, message, limits)
            except _UnansweredError:  # closed for being idle, while the request was on its way
                if request.method not in _IDEMPOTENT:
                    raise
        connection = await self._connect(request, key, proxy, limits)
        return await self._exchange(connection, request.method, message, limits)

    async def close(self) -> None:
        for connection in list(self._open):
            connection.abort()
        await asyncio.sleep(0)  # now the event loop has closed their sockets

    async def _exchange(self, connection: _Connection, method: str, message: bytes, limits: HttpLimits) -> HttpResponse:
        response = await connection.exchange(method, message, limits)
        if connection.is_reusable:
            connection.rest()
            self._idle.setdefault(connection.key, []).append(connection)
        else:
            connection.abort()
        return response

    def _take_idle(self, key: _Key) -> _Connection | None:
        idle = self._idle.get(key)
        while idle:
            connection = idle.pop()
            if connection.is_reusable:
                return connection
        return None

    def _lost(self, connection: _Connection) -> None:
        self._open.discard(connection)
        idle = self._idle.get(connection.key)
        if idle is None:
            return
        if connection in idle:
            idle.remove(connection)
        if not idle:
            del self._idle[connection.key]

    def _proxy(self, url: URL) -> URL | None:
        if not self._proxies:
            return None
        from urllib.request import proxy_bypass

        from yarl import URL

        given = None if proxy_bypass(url.host or "") else self._proxies.get(url.scheme)
        if not given:
            return None
        proxy = URL(given if "://" in given else f"http://{given}")
        if proxy.scheme not in ("http", "https") or not proxy.host:
            raise OSError(f"the proxy of {url.scheme} addresses is none of HTTP: `{proxy.scheme}://`")
        return proxy

    async def _connect(self, request: HttpRequest, key: _Key, proxy: URL | None, limits: HttpLimits) -> _Connection:
        url = request.url
        server = f"{url.host_subcomponent}:{url.port}"
        try:
            async with asyncio.timeout(limits.connect) as limit:
                connection = await self._opened(proxy or url, key, request.verify_tls)
                if proxy is not None and url.scheme == "https":
                    await self._tunnel(connection, request, proxy, limits)
        except (OSError, UnicodeError) as failed:
            if limit.expired():
                raise TimeoutError(f"no connection to {server} within {limits.connect} s") from None
            raise ConnectionError(f"no connection to {server}: {failed or type(failed).__name__}") from failed
        return connection

    async def _opened(self, url: URL, key: _Key, verify_tls: bool) -> _Connection:
        context = self._context(verify_tls) if url.scheme == "https" else None
        loop = asyncio.get_running_loop()
        socket = await start_connection(
            await _addresses(url.raw_host or "", url.port or 0), happy_eyeballs_delay=_HAPPY_EYEBALLS_SECONDS
        )
        _, connection = await loop.create_connection(
            lambda: _Connection(key, self._lost),
            sock=socket,
            ssl=context,
            server_hostname=url.raw_host if context else None,
        )
        self._open.add(connection)
        return connection

    async def _tunnel(self, connection: _Connection, request: HttpRequest, proxy: URL, limits: HttpLimits) -> None:
        """Let a proxy connect to the server, and begin TLS with that one."""
        address = f"{request.url.host_subcomponent}:{request.url.port}"
        lines = [f"CONNECT {address} HTTP/1.1", f"Host: {address}", *_proxy_authorization(proxy)]
        try:
            response = await connection.exchange("CONNECT", _lines(lines), limits)
            if response.status != 200:
                raise OSError(f"the proxy {proxy.host} answered {response.status} {response.reason}".rstrip())
            await connection.begin_tls(self._context(request.verify_tls), request.url.raw_host or "")
        except BaseException:
            connection.abort()
            raise

    def _context(self, verify_tls: bool) -> SSLContext:
        return self._checked_tls if verify_tls else self._unchecked_tls

    @cached_property
    def _checked_tls(self) -> SSLContext:
        from ssl import create_default_context

        context = create_default_context()
        context.set_alpn_protocols(["http/1.1"])
        return context

    @cached_property
    def _unchecked_tls(self) -> SSLContext:
        from ssl import CERT_NONE, PROTOCOL_TLS_CLIENT, SSLContext

        context = SSLContext(PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = CERT_NONE
        context.set_alpn_protocols(["http/1.1"])
        return context


async def _addresses(host: str, port: int) -> list[Any]:
    """Return where to connect. Raises OSError or UnicodeError."""
    try:
        return getaddrinfo(host, port, type=SOCK_STREAM, flags=AI_NUMERICHOST)  # an address needs no thread
    except gaierror:
        return await asyncio.get_running_loop().getaddrinfo(host, port, type=SOCK_STREAM)


# ---- the request


def _message(request: HttpRequest, proxy: URL | None) -> bytes:
    """Return a request as it is sent."""
    method, url, headers, body, _ = request
    given = {name.lower() for name in headers}
    target = url.raw_path_qs
    lines = [f"{name}: {value}" for name, value in headers.items() if name.lower() not in _FRAMING]
    if proxy is not None and url.scheme == "http":
        target = str(url.with_user(None).with_fragment(None))
        lines += _proxy_authorization(proxy)
    if "host" not in given:
        lines.insert(0, f"Host: {url.host_port_subcomponent}")
    if url.raw_user is not None and "authorization" not in given:
        lines.append(f"Authorization: {_basic(url)}")
    if body is not None or method in ("POST", "PUT", "PATCH"):
        lines.append(f"Content-Length: {len(body or b'')}")
    return _lines([f"{method} {target} HTTP/1.1", *lines]) + (body or b"")


_FRAMING = frozenset({"content-length", "transfer-encoding"})
"""Headers that only the client itself may set."""


def _lines(lines: list[str]) -> bytes:
    """Return the head of a message. Raises ValueError."""
    head = "\r\n".join([*lines, "\r\n"]).encode()
    if head.count(b"\n") != len(lines) + 1 or head.count(b"\r") != len(lines) + 1:
        raise ValueError("a header has a line break")
    return head


def _proxy_authorization(proxy: URL) -> list[str]:
    return [] if proxy.raw_user is None else [f"Proxy-Authorization: {_basic(proxy)}"]


def _basic(url: URL) -> str:
    pair = f"{unquote(url.raw_user or '')}:{unquote(url.raw_password or '')}"
    return f"Basic {b64encode(pair.encode()).decode()}"


# ---- the response


class _Connection(asyncio.Protocol):
    """One connection. Its `on_…` methods are called by the parser."""

    def __init__(self, key: _Key, lost: Callable[[_Connection], None]) -> None:
        self.key = key
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport = None  # type: ignore[assignment]  # set before anything else is called
        self._waiting: asyncio.Future[HttpResponse] | None = None
        """Of the request whose response is not complete."""
        self.is_reusable = False
        self._alarm: asyncio.TimerHandle | None = None
        self._limits = HttpLimits()
        self._began = self._moved = 0.0
        """When the request was sent, and when something of it or its response last moved."""
        self._unsent = 0

    # ---- for `Connections`

    async def exchange(self, method: str, message: bytes, limits: HttpLimits) -> HttpResponse:
        """Send one request and return its response; whatever is raised, the connection is closed."""
        self._limits, self.is_reusable = limits, False
        self._began = self._moved = self._loop.time()
        self._has_body = method not in ("HEAD", "CONNECT")
        self._parser = HttpResponseParser(self)
        self._framing, self._framing_max = 0, _FRAMING_BYTES_MAX
        self._body = bytearray()  # a list would take fifty bytes for each chunk, however short
        self._status = 0
        self._begin_head()
        self._waiting = self._loop.create_future()
        self._transport.write(message)
        self._unsent = self._transport.get_write_buffer_size()
        self._watch()
        try:
            return await self._waiting
        except BaseException:
            self.abort()
            raise

    def rest(self) -> None:
        """Wait for the next request, but not for long."""
        self._limits = HttpLimits(total=_IDLE_SECONDS)
        self._began = self._loop.time()
        self._watch()

    async def begin_tls(self, context: SSLContext, host: str) -> None:
        secure = await self._loop.start_tls(self._transport, self, context, server_hostname=host)
        assert secure is not None, "the transport was open"
        self._transport = secure

    def abort(self) -> None:
        self.is_reusable = False
        self._transport.abort()

    # ---- limits

    def _watch(self) -> None:
        """See to it that the alarm does not ring after a limit."""
        due = self._due()
        if due is None or (self._alarm is not None and self._alarm.when() <= due):
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._loop.call_at(due, self._ring)

    def _due(self) -> float | None:
        _, read, total = self._limits
        if read is None:
            return None if total is None else self._began + total
        return self._moved + read if total is None else min(self._moved + read, self._began + total)

    def _ring(self) -> None:
        self._alarm = None
        now, unsent = self._loop.time(), self._transport.get_write_buffer_size()
        if unsent != self._unsent:  # the server reads what it is sent, however slowly
            self._unsent, self._moved = unsent, now
        due = self._due()
        if due is None or due > now:
            self._watch()
        elif self._waiting is None:
            self.abort()
        else:
            _, read, total = self._limits
            is_whole = total is not None and self._began + total <= now
            self._fail(
                TimeoutError(f"the request took longer than {total} s" if is_whole else f"no answer in {read} s")
            )

    # ---- for the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # one that can be written to

    def data_received(self, data: bytes) -> None:
        if self._waiting is None:  # a response to no request
            self.abort()
            return
        self._moved = self._loop.time()
        self._framing += len(data)
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            self._fail(ConnectionError("the server changes to another protocol, which was not requested"))
        except HttpParserError as problem:
            self._fail(ConnectionError(f"the response cannot be read: {problem}"))
        if self._framing > self._framing_max:
            self._fail(ConnectionError(f"the response's headers are larger than {_FRAMING_BYTES_MAX:,} bytes"))

    def connection_lost(self, problem: Exception | None) -> None:
        self.is_reusable = False
        self._lost(self)
        if self._alarm is not None:
            self._alarm.cancel()
        if self._waiting is None:
            return
        if problem is None and self._ends_with_connection:
            self._complete()
        elif self._framing == 0:
            self._fail(_UnansweredError(f"the server closed the connection without an answer{_because(problem)}"))
        else:
            self._fail(ConnectionError(f"the connection ended in the middle of the response{_because(problem)}"))

    # ---- for the parser

    def on_message_begin(self) -> None:
        if self._waiting is None:  # something follows the response
            self.is_reusable = False

    def on_status(self, text: bytes) -> None:
        self._reason += text

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._is_in_head:
            key, text = name.decode("utf-8", "replace").lower(), value.decode("utf-8", "replace")
            known = self._headers.get(key)
            self._headers[key] = text if known is None else f"{known}, {text}"

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:
            return  # the response is still to come
        self._status, self._is_in_head = status, False
        coding = self._headers.get("transfer-encoding")
        self._ends_with_connection = coding is None and "content-length" not in self._headers
        if not self._has_body:
            self._complete()
        elif coding is not None and coding.lower() != "chunked":
            self._fail(ResponseError(f"the response has the transfer coding `{coding[:40]}`, which was not requested"))

    def on_chunk_header(self) -> None:
        self._framing_max += _CHUNK_BYTES

    def on_body(self, data: bytes) -> None:
        if self._waiting is None:
            self.is_reusable = False
            return
        self._framing -= len(data)
        self._body += data
        if len(self._body) > TOOL_OUTPUT_BYTES_MAX:
            self._fail(ResponseTooLargeError())

    def on_message_complete(self) -> None:
        if self._is_in_head:
            self._begin_head()
        elif self._waiting is not None:
            self._complete()

    def _begin_head(self) -> None:
        self._is_in_head, self._ends_with_connection = True, False
        self._reason = b""
        self._headers: dict[str, str] = {}

    def _complete(self) -> None:
        self.is_reusable = self._parser.should_keep_alive() and not self._transport.is_closing()
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            reason = self._reason.decode("utf-8", "replace")
            waiting.set_result(HttpResponse(self._status, reason, self._headers, bytes(self._body)))

    def _fail(self, problem: Exception) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_exception(problem)
        self.abort()


def _because(problem: Exception | None) -> str:
    return f": {problem}" if problem else ""
