"""The two clients: the same calls, blocking or awaited."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Self, TypeVar

import httpx

from noetlvm.client import calls
from noetlvm.client.calls import API, Json, ServiceCall, ServiceError, refused

TIMEOUT_SECONDS = 30.0
RECONNECT_SECONDS = 1.0
"""Wait before a broken stream of events is opened again, from the last event that arrived."""
PAGE = 1_000
AWAY_STATUSES = (0, 429, 502, 503, 504)
"""Of a server that is away, cannot use its store or is busy: the same request may succeed a moment later."""
FROM_NOW = 2**53
"""No event has this number: a stream after it has no events and ends with the execution."""

Answer = TypeVar("Answer")
Found = TypeVar("Found")


def _explained(server: httpx.URL, error: httpx.HTTPError | ServiceError) -> ServiceError:
    if isinstance(error, ServiceError):
        return error
    address = f"{server.scheme}://{server.netloc.decode()}"
    return ServiceError(0, f"{address} cannot be reached ({error}); is the server running, and the address right?")


class _Lines:
    """Reads server-sent events line by line."""

    def __init__(self, after: int) -> None:
        self.after = after
        self.is_interrupted = False
        """Whether the server has ended the stream before the execution ended."""
        self._data = ""

    def feed(self, line: str) -> str | None:
        """Return the data of an event when its last line has come."""
        if line.startswith("id: "):
            self.after = int(line[4:])
        elif line.startswith("data: "):
            self._data += line[6:]
        elif line.startswith("retry: "):
            self.is_interrupted = True
        elif not line and self._data:
            data, self._data = self._data, ""
            return data
        return None


class _Patience:
    """Says whether to call a server again: one that has answered before may be away for a moment."""

    _has_served = False

    def _read(self, call: ServiceCall[Answer], response: httpx.Response) -> Answer:
        if response.status_code >= 400:
            raise refused(response.status_code, response.content)
        self._has_served = True
        is_json = response.headers.get("content-type", "").startswith("application/json")
        return call.read(response.json() if is_json else response.content)

    def _is_waited_for(self, error: httpx.HTTPError | ServiceError) -> bool:
        is_away = not isinstance(error, ServiceError) or error.status in AWAY_STATUSES
        return self._has_served and is_away


class Client(_Patience):
    """A connection to a server. Raises ServiceError for what the server refuses."""

    def __init__(self, server: str, token: str, *, timeout: float = TIMEOUT_SECONDS) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=server.rstrip("/") + API, headers=headers, timeout=timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def call(self, call: ServiceCall[Answer]) -> Answer:
        """Send a request and parse its response."""
        try:
            response = self._http.request(
                call.method, call.path, params=call.params, headers=call.headers, json=call.json, content=call.content
            )
        except httpx.HTTPError as error:
            raise _explained(self._http.base_url, error) from None
        return self._read(call, response)

    def register(self, playbook: bytes) -> Json:
        """Register a playbook, as YAML or as a bundle; return its path, version, bundle and diagnostics."""
        return self.call(calls.register(playbook))

    def start(
        self,
        path: str | None = None,
        *,
        version: int | None = None,
        bundle: str | None = None,
        payload: Json | None = None,
        ctx: Json | None = None,
        key: str | None = None,
    ) -> str:
        """Start an execution and return its identifier; with the same `key`, that of the first start."""
        return self.call(calls.start(path, version, bundle, payload or {}, ctx or {}, key))

    def execution(self, id: str) -> Json:
        """Return the status of an execution."""
        return self.call(calls.execution(id))

    def ending(self, id: str) -> Json:
        """Return status, ctx, result and failures, as `noetlvm run --json` prints them."""
        return self.call(calls.execution(id, "/ending"))

    def executions(self, **filters: Any) -> Json:
        """Return a page of executions: filters are `status`, `path`, `parent`, `before` and `limit`."""
        return self.call(calls.executions(**filters))

    def playbooks(self, after: str = "", limit: int = 100) -> Json:
        """Return a page of registered playbooks."""
        return self.call(calls.playbooks(after, limit))

    def control(self, id: str, action: str) -> Json:
        """Pause, resume or cancel an execution."""
        return self.call(calls.control(id, action))

    def retry(self, id: str, *, bundle: str | None = None, key: str | None = None) -> str:
        """Run the failed steps of a failed execution again; return the identifier of the new execution."""
        return self.call(calls.retry(id, bundle, key))

    def bundle(self, id: str) -> bytes:
        """Return the bytes of a bundle by its content id."""
        return self.call(calls.stored("bundles", id))

    def result(self, key: str) -> bytes:
        """Return the bytes of a stored result by its key."""
        return self.call(calls.stored("results", key))

    def events(self, id: str, after: int = 0) -> Iterator[Json]:
        """Yield the events of an execution so far."""
        position: int | None = after
        while position is not None:
            page = self.call(calls.execution(id, "/events", after=position, limit=PAGE))
            yield from page["events"]
            position = page["after"]

    def follow(self, id: str, after: int = 0) -> Iterator[Json]:
        """Yield events as they come, until the execution ends; a broken connection is resumed without a gap."""
        lines = _Lines(after)
        while True:
            lines.is_interrupted = False
            try:
                with self._http.stream(
                    "GET", f"/executions/{id}/events/live", headers={"Last-Event-ID": str(lines.after)}
                ) as response:
                    if response.status_code >= 400:
                        raise refused(response.status_code, response.read())
                    self._has_served = True
                    for line in response.iter_lines():
                        data = lines.feed(line)
                        if data is not None:
                            yield json.loads(data)
                if not lines.is_interrupted:
                    return
            except (httpx.HTTPError, ServiceError) as error:
                if not self._is_waited_for(error):
                    raise _explained(self._http.base_url, error) from None
            time.sleep(RECONNECT_SECONDS)

    def wait(self, id: str) -> Json:
        """Return how an execution ended, once it has; a server that goes away meanwhile is waited for."""
        for _ in self.follow(id, FROM_NOW):
            pass
        return self.patiently(lambda: self.ending(id))

    def patiently(self, read: Callable[[], Found]) -> Found:
        """Return what a call returns; a server that is away is called again."""
        while True:
            try:
                return read()
            except ServiceError as error:
                if not self._is_waited_for(error):
                    raise
            time.sleep(RECONNECT_SECONDS)


class AsyncClient(_Patience):
    """The same, awaited."""

    def __init__(self, server: str, token: str, *, timeout: float = TIMEOUT_SECONDS) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx.AsyncClient(base_url=server.rstrip("/") + API, headers=headers, timeout=timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def call(self, call: ServiceCall[Answer]) -> Answer:
        """Send a request and parse its response."""
        try:
            response = await self._http.request(
                call.method, call.path, params=call.params, headers=call.headers, json=call.json, content=call.content
            )
        except httpx.HTTPError as error:
            raise _explained(self._http.base_url, error) from None
        return self._read(call, response)

    async def register(self, playbook: bytes) -> Json:
        return await self.call(calls.register(playbook))

    async def start(
        self,
        path: str | None = None,
        *,
        version: int | None = None,
        bundle: str | None = None,
        payload: Json | None = None,
        ctx: Json | None = None,
        key: str | None = None,
    ) -> str:
        return await self.call(calls.start(path, version, bundle, payload or {}, ctx or {}, key))

    async def execution(self, id: str) -> Json:
        return await self.call(calls.execution(id))

    async def ending(self, id: str) -> Json:
        return await self.call(calls.execution(id, "/ending"))

    async def executions(self, **filters: Any) -> Json:
        return await self.call(calls.executions(**filters))

    async def control(self, id: str, action: str) -> Json:
        return await self.call(calls.control(id, action))

    async def retry(self, id: str, *, bundle: str | None = None, key: str | None = None) -> str:
        return await self.call(calls.retry(id, bundle, key))

    async def bundle(self, id: str) -> bytes:
        return await self.call(calls.stored("bundles", id))

    async def result(self, key: str) -> bytes:
        return await self.call(calls.stored("results", key))

    async def playbooks(self, after: str = "", limit: int = 100) -> Json:
        return await self.call(calls.playbooks(after, limit))

    async def events(self, id: str, after: int = 0) -> AsyncIterator[Json]:
        position: int | None = after
        while position is not None:
            page = await self.call(calls.execution(id, "/events", after=position, limit=PAGE))
            for event in page["events"]:
                yield event
            position = page["after"]

    async def follow(self, id: str, after: int = 0) -> AsyncIterator[Json]:
        lines = _Lines(after)
        while True:
            lines.is_interrupted = False
            try:
                async with self._http.stream(
                    "GET", f"/executions/{id}/events/live", headers={"Last-Event-ID": str(lines.after)}
                ) as response:
                    if response.status_code >= 400:
                        raise refused(response.status_code, await response.aread())
                    self._has_served = True
                    async for line in response.aiter_lines():
                        data = lines.feed(line)
                        if data is not None:
                            yield json.loads(data)
                if not lines.is_interrupted:
                    return
            except (httpx.HTTPError, ServiceError) as error:
                if not self._is_waited_for(error):
                    raise _explained(self._http.base_url, error) from None
            await asyncio.sleep(RECONNECT_SECONDS)

    async def wait(self, id: str) -> Json:
        async for _ in self.follow(id, FROM_NOW):
            pass
        return await self.patiently(lambda: self.ending(id))

    async def patiently(self, read: Callable[[], Awaitable[Found]]) -> Found:
        while True:
            try:
                return await read()
            except ServiceError as error:
                if not self._is_waited_for(error):
                    raise
            await asyncio.sleep(RECONNECT_SECONDS)
