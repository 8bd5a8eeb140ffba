"""The worker protocol: messages over one WebSocket.

A worker sends reports and the results that they refer to, returns commands that it cannot finish, and names the leases
that it renews by a beat, which the server acknowledges. It gets answers to its reports, commands to stop, and new
commands. Messages are msgpack.
"""

from __future__ import annotations

import asyncio
import contextlib
from hashlib import sha256
from typing import Annotated, Any, Protocol

from fastapi import APIRouter, Path, Request, Response, WebSocket, WebSocketDisconnect
from pydantic import BaseModel, ConfigDict, Field

from noetlvm.data.encoding import decode, encode, references_in
from noetlvm.language.placement import DEFAULT_POOL, POOL_CHARS_MAX
from noetlvm.service.access import Caller, TokenAccess, requires
from noetlvm.service.driver import Driver
from noetlvm.service.hub import ConnectedWorker, Part
from noetlvm.service.playbooks_api import driver_of
from noetlvm.service.problems import ProblemError, documented
from noetlvm.service.reported_events import NUMBER_MAX, reported_event
from noetlvm.service.server_link import MESSAGE_BYTES_MAX, UNAUTHORIZED
from noetlvm.store.interface import StoreError

worker_router = APIRouter(tags=["workers"])

SLOTS_MAX = 10_000
RESULT = "application/octet-stream"
MALFORMED = 4400
"""Code that closes a WebSocket."""
TRY_AGAIN = 1013
"""Code that closes a WebSocket while the store cannot be used."""

STORE_FAILED = "the server cannot use its store; connect again"

Identifier = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]*$", max_length=500)]
Number = Annotated[int, Field(ge=1, le=NUMBER_MAX)]
ResultKey = Annotated[str, Path(pattern="^[0-9a-f]{64}$")]


class WorkerSocket(Protocol):
    """What of a WebSocket the exchange with a worker uses. Reading raises WebSocketDisconnect if it is lost."""

    async def receive_bytes(self) -> bytes:
        """Return the next message."""

    async def send_bytes(self, data: bytes) -> None:
        """Send a message."""

    async def close(self, code: int = 1000, reason: str | None = None) -> None:
        """Close it."""


class Hello(BaseModel):
    """The first message of a worker."""

    model_config = ConfigDict(extra="forbid")

    worker: str = Field(min_length=1, max_length=100, description="Identifier, new for each process.")
    pools: list[Annotated[str, Field(min_length=1, max_length=POOL_CHARS_MAX)]] = Field([DEFAULT_POOL], max_length=100)
    slots: int = Field(1, ge=1, le=SLOTS_MAX)


class ReportModel(BaseModel):
    """Events of one command."""

    model_config = ConfigDict(extra="forbid")

    number: int = Field(ge=0)
    execution_id: Identifier
    run: Number
    iteration: Identifier
    lease: Number
    events: list[list[Any]]


class LeaseModel(BaseModel):
    """A command that a worker has."""

    model_config = ConfigDict(extra="forbid")

    execution_id: Identifier
    run: Number
    iteration: Identifier
    lease: Number

    @property
    def part(self) -> Part:
        return self.execution_id, self.run, self.iteration


class WorkerMessage(BaseModel):
    """What a worker sends."""

    model_config = ConfigDict(extra="forbid")

    reports: list[ReportModel] = []
    results: list[tuple[str, bytes]] = Field([], description="Keys and bytes of results that reports refer to.")
    slots: int | None = Field(None, ge=0, le=SLOTS_MAX, description="0: the worker takes no more commands.")
    released: list[LeaseModel] = Field([], description="Commands for another worker, or for this one again.")
    beat: int = Field(0, ge=0, description="Renews `held`; the server acknowledges the number. 0: no renewal.")
    held: list[LeaseModel] = Field([], max_length=SLOTS_MAX)


@worker_router.websocket("/worker")
async def connect_worker(socket: WebSocket) -> None:
    """Exchange messages with a worker until it leaves."""
    driver: Driver = socket.app.state.driver
    access: TokenAccess = socket.app.state.access
    scheme, _, token = socket.headers.get("authorization", "").partition(" ")
    await socket.accept()
    try:
        is_allowed = scheme.lower() == "bearer" and "worker" in await access.checked(token)
    except StoreError:
        await _close(socket, TRY_AGAIN, STORE_FAILED)
        return
    if not is_allowed:
        await _close(socket, UNAUTHORIZED, "a token with the scope `worker` is needed")
        return
    await exchange_messages(driver, socket, access, token)


async def exchange_messages(
    driver: Driver, socket: WorkerSocket, access: TokenAccess | None = None, token: str = ""
) -> None:
    """Exchange messages with a worker that may work here, until it leaves or may no longer."""
    news = asyncio.Event()
    try:
        hello = Hello.model_validate(_decoded(await socket.receive_bytes()))
    except (ValueError, KeyError, WebSocketDisconnect):
        await _close(socket, MALFORMED, "the first message must identify the worker")
        return
    worker = ConnectedWorker(hello.worker, hello.pools, hello.slots, news.set)
    sender = asyncio.create_task(_send(socket, worker, news))
    try:
        await driver.join(worker)
        while True:
            data = await socket.receive_bytes()
            if access is not None and "worker" not in await access.checked(token):
                await _close(socket, UNAUTHORIZED, "the token was revoked")
                return
            if len(data) > MESSAGE_BYTES_MAX:
                raise ValueError("the message is too large")
            message = WorkerMessage.model_validate(_decoded(data))
            async with driver.turn:
                await accept_message(driver, worker, message)
    except (ValueError, KeyError):
        await _close(socket, MALFORMED, "the message is malformed")
    except WebSocketDisconnect:
        pass  # the leases of what it held are released, or end by themselves
    except StoreError:
        await _close(socket, TRY_AGAIN, STORE_FAILED)
    finally:
        sender.cancel()
        driver.leave(worker)


async def _close(socket: WorkerSocket, code: int, reason: str) -> None:
    with contextlib.suppress(RuntimeError, WebSocketDisconnect):  # the worker may have closed it
        await socket.close(code, reason)


async def _send(socket: WorkerSocket, worker: ConnectedWorker, news: asyncio.Event) -> None:
    while True:
        await news.wait()
        news.clear()
        outbound = worker.take()
        if not outbound.is_empty:
            await socket.send_bytes(encode(outbound._asdict()))


async def accept_message(driver: Driver, worker: ConnectedWorker, message: WorkerMessage) -> None:
    """Take what a worker sends, in a turn of the driver.

    Raises ValueError for a malformed part; nothing of the message counts then.
    """
    for key, data in message.results:
        if sha256(data).hexdigest() != key:
            raise ValueError("a result does not have the checksum that is its key")
    reports = [(report, [reported_event(fields) for fields in report.events]) for report in message.reports]
    worker.is_silent = False
    if message.results:
        # Large ones come before the reports that refer to them, without the execution that they belong to.
        own = {report.execution_id for report in message.reports} or {part[0] for part in worker.held}
        await driver.put_results(message.results, own)
    if message.slots is not None:
        worker.slots = message.slots
    if message.beat:
        await driver.renew(worker, [(lease.part, lease.lease) for lease in message.held])
        worker.renewed(message.beat, driver.lease_seconds)
    for released in message.released:
        await driver.release(worker, released.part, released.lease)
    for report, events in reports:
        part = (report.execution_id, report.run, report.iteration)
        driver.report(worker, report.number, part, report.lease, events)
    await driver.claim_backlog(worker)


def _decoded(data: bytes) -> Any:
    try:
        return decode(data)
    except Exception as error:  # msgpack raises many kinds; the bytes come from outside
        raise ValueError(f"the message cannot be decoded: {error}") from None


@worker_router.get(
    "/results/{key}",
    response_class=Response,
    responses={200: {"content": {RESULT: {}}}, **documented(404, 422)},
)
def get_result(
    request: Request, key: ResultKey, caller: Annotated[Caller, requires("read", "worker")], worker: str = ""
) -> Response:
    """Return a stored result: with the scope `read`, or to a worker that was given a command which refers to it."""
    driver = driver_of(request)
    holder = driver.hub.workers.get(worker)
    if "read" not in caller.allowed and (holder is None or not is_readable(driver, holder, key)):
        raise ProblemError(404, "no command of this worker refers to such a result")
    try:
        return Response(driver.results.get(key), media_type=RESULT)
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
