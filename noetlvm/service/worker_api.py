"""Routes of workers: the connection, and the stored results that commands refer to."""

from __future__ import annotations

import contextlib
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response, WebSocket

from noetlvm.data.encoding import references_in
from noetlvm.protocol.link import UNAUTHORIZED
from noetlvm.service.access import Caller, TokenAccess, requires
from noetlvm.service.driver import Driver
from noetlvm.service.hub import ConnectedWorker
from noetlvm.service.playbooks_api import driver_of, readers_of
from noetlvm.service.problems import ProblemError, documented
from noetlvm.service.tokens import holder_of, pools_of
from noetlvm.service.waits import WaitEndedError
from noetlvm.service.worker_exchange import close, exchange_messages
from noetlvm.store.interface import StoreError

worker_router = APIRouter(tags=["workers"])

RESULT = "application/octet-stream"
RESTARTING = 1012
"""Code that closes a WebSocket because the server stops."""
TRY_AGAIN = 1013
"""Code that closes a WebSocket while the store cannot be used."""

STORE_FAILED = "the server cannot use its store; connect again"

ResultKey = Annotated[str, Path(pattern="^[0-9a-f]{64}$")]


@worker_router.websocket("/worker")
async def connect_worker(socket: WebSocket) -> None:
    """Exchange messages with a worker until it leaves."""
    driver: Driver = socket.app.state.driver
    access: TokenAccess = socket.app.state.access
    scheme, _, token = socket.headers.get("authorization", "").partition(" ")
    await socket.accept()
    try:
        allowed = await access.checked(token) if scheme.lower() == "bearer" else frozenset()
    except StoreError:
        await close(socket, TRY_AGAIN, STORE_FAILED)
        return
    if "worker" not in allowed:
        await close(socket, UNAUTHORIZED, "a token with the scope `worker` is needed")
        return
    try:
        await socket.app.state.waits.run(token, exchange_messages(driver, socket, token, pools_of(allowed)))
    except WaitEndedError as error:
        await close(socket, UNAUTHORIZED if error.is_revoked else RESTARTING, str(error))


@worker_router.get(
    "/results/{key}",
    response_class=Response,
    responses={200: {"content": {RESULT: {}}}, **documented(404, 422)},
)
async def get_result(
    request: Request, key: ResultKey, caller: Annotated[Caller, requires("read", "worker")], worker: str = ""
) -> Response:
    """Return a stored result: with the scope `read`, or to a worker that was given a command which refers to it."""
    data = await readers_of(request).read(caller, stored_result, driver_of(request), key, caller, worker)
    return Response(data, media_type=RESULT)


def stored_result(driver: Driver, key: str, caller: Caller, worker: str) -> bytes:
    """Return a stored result that a caller may read."""
    holder = driver.workers.hub.workers.get(holder_of(caller.token, worker))
    if "read" not in caller.allowed and (holder is None or not is_readable(driver, holder, key)):
        raise ProblemError(404, "no command of this worker refers to such a result")
    try:
        return driver.results.get(key)
    except LookupError:
        raise ProblemError(404, f"there is no stored result {key}") from None


def is_readable(driver: Driver, holder: ConnectedWorker, key: str) -> bool:
    """Say whether a command of a worker refers to a result, directly or through another stored one."""
    seen: set[str] = set()
    waiting = [result for grant in holder.grants for result in grant.results]
    while waiting:
        one = waiting.pop()
        if one == key:
            return True
        if one not in seen:
            seen.add(one)
            with contextlib.suppress(LookupError, OSError, ValueError):
                waiting += references_in(driver.results.get(one))
    return False
