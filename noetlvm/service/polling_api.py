"""The worker protocol over plain requests, for workers behind a proxy that passes no WebSocket on.

A session takes the place of the connection: the worker posts its messages, and waits for the server's with long
requests. Behind it is the same exchange as over a WebSocket. A session lives in one server; a load balancer must send
all requests of a worker to the same one. A session that is silent for too long has lost its worker.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response, WebSocketDisconnect

from noetlvm.data.encoding import encode
from noetlvm.service.access import Caller, requires
from noetlvm.service.playbooks_api import driver_of
from noetlvm.service.problems import ProblemError, documented
from noetlvm.service.server_link import MESSAGE_BYTES_MAX
from noetlvm.service.worker_api import RESULT, exchange_messages

polling_router = APIRouter(tags=["workers"])

SESSIONS_MAX = 1_000
WAIT_SECONDS_MAX = 25.0
"""How long a request waits for a message: less than proxies allow."""
SILENT_SECONDS_MAX = 60.0
WAITING_MAX = 1_000
"""Messages of a worker that wait to be taken."""
MESSAGES = "application/vnd.msgpack"

_BODY = {"requestBody": {"required": True, "content": {RESULT: {"schema": {"type": "string"}}}}}

SessionId = Annotated[str, Path(max_length=100)]
WorkerCaller = Annotated[Caller, requires("worker", is_counted=False)]


class PollingSession:
    """A worker that sends plain requests, as the exchange of messages sees it: a socket."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.closed = ""
        """Why it was closed; empty: it is open."""
        self._received: asyncio.Queue[bytes] = asyncio.Queue(WAITING_MAX)
        self._sent: list[bytes] = []
        self._news = asyncio.Event()
        self._last_request = asyncio.get_running_loop().time()

    def put(self, message: bytes) -> None:
        """Take a message of the worker. Raises asyncio.QueueFull."""
        self._touch()
        self._received.put_nowait(message)

    async def wait(self, seconds: float) -> list[bytes]:
        """Return messages for the worker as soon as there are some; none after that time."""
        self._touch()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), seconds)
        self._touch()
        self._news.clear()
        sent, self._sent = self._sent, []
        return sent

    def _touch(self) -> None:
        self._last_request = asyncio.get_running_loop().time()

    # ---- the socket

    async def receive_bytes(self) -> bytes:
        while True:
            left = self._last_request + SILENT_SECONDS_MAX - asyncio.get_running_loop().time()
            if left <= 0 or self.closed:
                raise WebSocketDisconnect
            with contextlib.suppress(TimeoutError):
                return await asyncio.wait_for(self._received.get(), left)

    async def send_bytes(self, data: bytes) -> None:
        self._sent.append(data)
        self._news.set()

    async def close(self, code: int = 1000, reason: str | None = None) -> None:
        self.closed = reason or str(code)
        self._news.set()


def _session(request: Request, id: str, caller: Caller) -> PollingSession:
    found: PollingSession | None = _sessions(request).get(id)
    if found is None or found.token != caller.token:
        raise ProblemError(404, "there is no such session: open a new one")
    if found.closed:
        raise ProblemError(409, f"the session is closed: {found.closed}")
    return found


def _sessions(request: Request) -> dict[str, PollingSession]:
    sessions: dict[str, PollingSession] = request.app.state.sessions
    return sessions


async def _message(request: Request) -> bytes:
    message = await request.body()
    if len(message) > MESSAGE_BYTES_MAX:
        raise ProblemError(413, f"a message may have at most {MESSAGE_BYTES_MAX:,} bytes")
    return message


@polling_router.post(
    "/worker/sessions",
    status_code=201,
    response_class=Response,
    responses={201: {"content": {"text/plain": {}}}, **documented(422)},
    openapi_extra=_BODY,
)
async def open_session(request: Request, caller: WorkerCaller) -> Response:
    """Open a session with a worker's first message; the answer is its identifier."""
    sessions, driver = _sessions(request), driver_of(request)
    if len(sessions) >= SESSIONS_MAX:
        raise ProblemError(503, f"the server has {SESSIONS_MAX:,} sessions", headers={"Retry-After": "5"})
    id, session = secrets.token_urlsafe(24), PollingSession(caller.token)
    session.put(await _message(request))
    sessions[id] = session

    async def run() -> None:
        try:
            await exchange_messages(driver, session, request.app.state.access, caller.token)
        finally:
            session.closed = session.closed or "the worker was silent"
            await asyncio.sleep(WAIT_SECONDS_MAX)  # it may fetch the reason
            sessions.pop(id, None)

    request.app.state.running.add(task := asyncio.create_task(run()))
    task.add_done_callback(request.app.state.running.discard)
    return Response(id, 201, media_type="text/plain")


@polling_router.post(
    "/worker/sessions/{session}/messages",
    status_code=204,
    response_class=Response,
    responses=documented(404, 409, 422),
    openapi_extra=_BODY,
)
async def post_message(request: Request, session: SessionId, caller: WorkerCaller) -> Response:
    """Take a message of a worker."""
    try:
        _session(request, session, caller).put(await _message(request))
    except asyncio.QueueFull:
        raise ProblemError(
            429, "messages arrive faster than they are processed", headers={"Retry-After": "1"}
        ) from None
    return Response(status_code=204)


@polling_router.get(
    "/worker/sessions/{session}/messages",
    response_class=Response,
    responses={200: {"content": {MESSAGES: {}}}, **documented(404, 409, 422)},
)
async def get_messages(
    request: Request,
    session: SessionId,
    caller: WorkerCaller,
    wait: Annotated[float, Query(ge=0, le=WAIT_SECONDS_MAX)] = WAIT_SECONDS_MAX,
) -> Response:
    """Return messages for a worker, as a list, as soon as there are some."""
    messages = await _session(request, session, caller).wait(wait)
    return Response(encode(messages), media_type=MESSAGES)


@polling_router.delete(
    "/worker/sessions/{session}", status_code=204, response_class=Response, responses=documented(404, 409, 422)
)
async def close_session(request: Request, session: SessionId, caller: WorkerCaller) -> Response:
    """End a session: the commands of its worker are open again."""
    found = _session(request, session, caller)
    await found.close(reason="the worker left")
    found.put(b"")
    return Response(status_code=204)
