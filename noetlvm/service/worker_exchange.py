"""The server's end of a worker's connection.

Messages are read as they come. The renewal that a message contains is performed at once. What it reports, returns and
wants waits for a turn of the driver: after that of the messages before it, while the next ones are read and their
renewals performed. So a decision or a write that takes long delays no renewal.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Collection
from hashlib import sha256
from typing import Any, Protocol

from fastapi import WebSocketDisconnect

from noetlvm.data.encoding import decode, encode
from noetlvm.protocol.link import MESSAGE_BYTES_MAX, UNAUTHORIZED
from noetlvm.protocol.reported_events import reported_event
from noetlvm.protocol.worker_messages import Hello, WorkerMessage
from noetlvm.service.driver import Driver
from noetlvm.service.hub import ConnectedWorker
from noetlvm.service.tokens import holder_of, worker_name
from noetlvm.store.interface import StoreError

MALFORMED = 4400
"""Code that closes a WebSocket."""
WAITING_BYTES_MAX = MESSAGE_BYTES_MAX
"""Of messages of one worker that wait for a turn. With more, the next ones are not read, nor are their renewals."""
RETRY_SECONDS = 0.5
"""How long after a failure of the store what a worker sent is taken again."""

_LOG = logging.getLogger("noetlvm.server")


class WorkerSocket(Protocol):
    """What of a WebSocket the exchange with a worker uses. Reading raises WebSocketDisconnect if it is lost."""

    async def receive_bytes(self) -> bytes:
        """Return the next message."""

    async def send_bytes(self, data: bytes) -> None:
        """Send a message."""

    async def close(self, code: int = 1000, reason: str | None = None) -> None:
        """Close it."""


async def exchange_messages(
    driver: Driver, socket: WorkerSocket, token: str = "", pools: Collection[str] | None = None
) -> None:
    """Exchange messages with a worker that may work here, until it leaves.

    A worker is its token: it holds leases for that and its name, and serves only `pools`; None: any.
    """
    news = asyncio.Event()
    try:
        hello = Hello.model_validate(_decoded(await socket.receive_bytes()))
    except (ValueError, KeyError, WebSocketDisconnect):
        await close(socket, MALFORMED, "the first message must identify the worker")
        return
    refusal = _refusal(driver, hello, token, pools)
    if refusal:
        await close(socket, UNAUTHORIZED, refusal)
        return
    worker = ConnectedWorker(holder_of(token, hello.worker), hello.pools, hello.slots, news.set)
    waiting = WaitingMessages()
    sending = asyncio.create_task(_send(socket, worker, news))
    taking = asyncio.create_task(_take(driver, worker, waiting))
    reading = asyncio.create_task(_read(driver, socket, worker, waiting))
    try:
        await asyncio.wait((taking, reading), return_when=asyncio.FIRST_COMPLETED)
        if reading.done():
            waiting.close()
            await taking  # what has come before counts
        if any(task.result() for task in (taking, reading) if task.done()):
            await close(socket, MALFORMED, "the message is malformed")
    finally:
        for task in (sending, taking, reading):
            task.cancel()
        driver.workers.leave(worker)


def _refusal(driver: Driver, hello: Hello, token: str, pools: Collection[str] | None) -> str:
    """Return why a worker may not work here under its token; empty: it may."""
    others = [pool for pool in hello.pools if pools is not None and pool not in pools]
    if others:
        return f"the token does not serve the pool {others[0]:.60}: create one with `--scope worker --pool NAME`"
    own = holder_of(token, hello.worker)
    if any(worker_name(id) == hello.worker and id != own for id in driver.workers.hub.workers):
        return "a worker with another token has this name"
    return ""


async def _read(driver: Driver, socket: WorkerSocket, worker: ConnectedWorker, waiting: WaitingMessages) -> bool:
    """Read messages, and renew leases, until the connection is lost; return whether a message is malformed."""
    while True:
        try:
            data = await socket.receive_bytes()
            if len(data) > MESSAGE_BYTES_MAX:
                return True
            message = WorkerMessage.model_validate(_decoded(data))
        except WebSocketDisconnect:
            return False  # the leases of what it held are released, or end by themselves
        except (ValueError, KeyError):
            return True
        await renew(driver, worker, message)
        await waiting.put(message, len(data))


async def _take(driver: Driver, worker: ConnectedWorker, waiting: WaitingMessages) -> bool:
    """Let a worker in, and take what it sends, however long the store fails; return whether a message is malformed.

    Without its connection it would drop what it has reported, and its commands would be open again.
    """
    await driver.join(worker)
    while (message := await waiting.first()) is not None:
        try:
            async with driver.loop.lock:
                await accept_message(driver, worker, message)
            waiting.drop_first()
        except ValueError:
            return True
        except StoreError as error:
            _LOG.error("what a worker has sent waits for the store: %s", error)
            await asyncio.sleep(RETRY_SECONDS)
    return False


class WaitingMessages:
    """Messages of one worker that wait for a turn, in their order."""

    def __init__(self) -> None:
        self._messages: deque[tuple[WorkerMessage, int]] = deque()
        self._bytes = 0
        self._is_closed = False
        self._changed = asyncio.Event()

    async def put(self, message: WorkerMessage, size: int) -> None:
        """Add a message, once there is room."""
        while self._messages and self._bytes + size > WAITING_BYTES_MAX:
            self._changed.clear()
            await self._changed.wait()
        self._messages.append((message, size))
        self._bytes += size
        self._changed.set()

    async def first(self) -> WorkerMessage | None:
        """Return the first message, as soon as there is one; None after `close`, when all have been taken."""
        while not self._messages:
            if self._is_closed:
                return None
            self._changed.clear()
            await self._changed.wait()
        return self._messages[0][0]

    def drop_first(self) -> None:
        """Remove a message that has been taken."""
        _, size = self._messages.popleft()
        self._bytes -= size
        self._changed.set()

    def close(self) -> None:
        """Let nothing follow."""
        self._is_closed = True
        self._changed.set()


async def close(socket: WorkerSocket, code: int, reason: str) -> None:
    with contextlib.suppress(RuntimeError, WebSocketDisconnect):  # the worker may have closed it
        await socket.close(code, reason)


async def _send(socket: WorkerSocket, worker: ConnectedWorker, news: asyncio.Event) -> None:
    while True:
        await news.wait()
        news.clear()
        outbound = worker.take()
        if not outbound.is_empty:
            await socket.send_bytes(encode(outbound.to_data()))


async def renew(driver: Driver, worker: ConnectedWorker, message: WorkerMessage) -> None:
    """Perform the renewal that a message contains. One that fails is not acknowledged: the worker sends another."""
    worker.is_silent = False
    if message.beat:
        with contextlib.suppress(StoreError):
            await driver.workers.renew(worker, [(lease.part, lease.lease) for lease in message.held])
            worker.renewed(message.beat, driver.leases.seconds)


async def accept_message(driver: Driver, worker: ConnectedWorker, message: WorkerMessage) -> None:
    """Take what a worker sends, in a turn of the driver.

    Raises ValueError for a malformed part; nothing of the message counts then. Raises StoreError before it has taken a
    report: the message can be taken again.
    """
    for result in message.results:
        if sha256(result.data).hexdigest() != result.key:
            raise ValueError("a result does not have the checksum that is its key")
    reports = [(report, [reported_event(fields) for fields in report.events]) for report in message.reports]
    if message.results:
        # Large ones come before the reports that refer to them, without the execution that they belong to.
        own = {report.execution_id for report in message.reports} or {part[0] for part in worker.held}
        await driver.put_results([(result.key, result.data) for result in message.results], own)
    if message.slots is not None:
        worker.slots = message.slots
    for released in message.released:
        await driver.workers.release(worker, released.part, released.lease)
    await driver.intake.activate({report.execution_id for report in message.reports})
    for report, events in reports:
        part = (report.execution_id, report.run, report.iteration)
        driver.report(worker, report.number, part, report.lease, events)
    with contextlib.suppress(StoreError):  # the next poll claims
        await driver.workers.claim_backlog(worker)


def _decoded(data: bytes) -> Any:
    try:
        return decode(data)
    except Exception as error:  # msgpack raises many kinds; the bytes come from outside
        raise ValueError(f"the message cannot be decoded: {error}") from None
