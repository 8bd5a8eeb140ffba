"""The network between workers and servers, without sockets: connections with latency, and wake-ups.

A connection behaves as TCP does: messages arrive in order or not at all, and what is lost takes the connection with it.
Only wake-ups may be lost one by one. A doubled message stands for a proxy that repeats one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import TYPE_CHECKING

from fastapi import WebSocketDisconnect

from noetlvm.service.access import Caller
from noetlvm.service.playbooks_api import stored_bundle
from noetlvm.service.problems import ProblemError
from noetlvm.service.worker_api import stored_result
from noetlvm.service.worker_exchange import exchange_messages
from noetlvm.sim.loop import WORLD, Process, SimulatedLoop
from noetlvm.store.interface import StoreError

if TYPE_CHECKING:
    from noetlvm.protocol.link import Exchange
    from noetlvm.sim.processes import SimulatedServer, SimulatedWorker
    from noetlvm.wake.interface import Wake

_LATENCY = (0.001, 0.04)
_HANDSHAKE_SECONDS = 10.0
_PING_SECONDS = 30.0
"""Seconds without an answer after which a side considers its connection lost."""
_LOST = 1006


class _End:
    """One side of a connection: what has arrived there."""

    def __init__(self, loop: SimulatedLoop, lost: Callable[[], Exception]) -> None:
        self._loop = loop
        self._lost = lost
        self._arrived: deque[bytes] = deque()
        self._waiting: asyncio.Future[None] | None = None
        self.is_closed = False
        self.last = 0.0
        """When the last message sent to it arrives."""

    def deliver(self, data: bytes) -> None:
        if not self.is_closed:
            self._arrived.append(data)
            self._wake()

    def close(self) -> None:
        self.is_closed = True
        self._wake()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def take(self) -> bytes:
        while not self._arrived:
            if self.is_closed:
                raise self._lost()
            self._waiting = self._loop.create_future()
            await self._waiting
        return self._arrived.popleft()


class Connection:
    """A worker's connection to a server."""

    def __init__(self, network: Network, worker: SimulatedWorker, server: SimulatedServer) -> None:
        self.worker, self.server = worker, server
        self.worker_process, self.server_process = worker.process, server.process
        self._network = network
        self.at_worker = _End(network.loop, lambda: ConnectionResetError("the connection was lost"))
        self.at_server = _End(network.loop, lambda: WebSocketDisconnect(_LOST))
        self.is_cut = False

    # ---- the worker's side

    async def send(self, data: bytes) -> None:
        if self.at_worker.is_closed:
            raise ConnectionResetError("the connection was lost")
        self.worker.before_send()
        self._network.transmit(self, self.at_server, data)
        self.worker.after_send()

    async def receive(self) -> bytes:
        return await self.at_worker.take()

    # ---- the server's side

    async def receive_bytes(self) -> bytes:
        return await self.at_server.take()

    async def send_bytes(self, data: bytes) -> None:
        if self.at_server.is_closed:
            raise WebSocketDisconnect(_LOST)
        self._network.transmit(self, self.at_worker, data)

    async def close(self, code: int = 1000, reason: str | None = None) -> None:  # as WebSocket has it
        self._network.cut(self)


class Network:
    """All connections, and what is wrong with them."""

    def __init__(self, loop: SimulatedLoop, random: Random, servers: list[SimulatedServer]) -> None:
        self.loop = loop
        self.connections: list[Connection] = []
        self.armed: dict[str, float] = {}
        """Faults that apply to the next message, by kind."""
        self.happened: Callable[[str], None] = lambda _kind: None
        self._random = random
        self._servers = servers
        self._partitions: dict[tuple[int, int], float] = {}
        """When the partition between a worker and a server ends."""

    # ---- connections

    @asynccontextmanager
    async def connect(self, worker: SimulatedWorker) -> AsyncIterator[Exchange]:
        """Connect a worker to some server. Raises OSError."""
        await asyncio.sleep(self._latency())
        server = self._random.choice(self._servers)
        if server.process.is_dead or self._is_cut_off(worker, server):
            raise ConnectionRefusedError("no connection")
        if server.process.is_stopped:
            await asyncio.sleep(_HANDSHAKE_SECONDS)
            raise TimeoutError("the handshake took too long")
        connection = Connection(self, worker, server)
        self.connections.append(connection)
        self.loop.spawn(server.process, exchange_messages(server.driver, connection))
        try:
            yield connection
        finally:
            self.cut(connection)

    def transmit(self, connection: Connection, to: _End, data: bytes) -> None:
        """Send a message with everything that may happen to it on the way."""
        if connection.is_cut:
            return
        delay = self._latency()
        if "message_late" in self.armed:
            delay += self.armed.pop("message_late")
            self.happened("message_late")
        now = self.loop.time()
        heals = self._partitions.get((connection.worker.number, connection.server.number), 0.0)
        to.last = max(to.last, now + delay, heals)
        self._deliver(connection, to, data)
        if "message_doubled" in self.armed:
            del self.armed["message_doubled"]
            self.happened("message_doubled")
            self._deliver(connection, to, data)
        if "message_lost" in self.armed:
            del self.armed["message_lost"]
            self.happened("message_lost")
            self.cut(connection)
        elif "message_reordered" in self.armed and to is connection.at_server:
            wait = self.armed.pop("message_reordered")
            self.happened("message_reordered")
            to.last += wait
            self.loop.call_in(WORLD, to.last + 0.1 - now, self.cut, connection)
            self._deliver(connection, to, data)
            connection.at_worker.close()

    def _deliver(self, connection: Connection, to: _End, data: bytes) -> None:
        def arrive() -> None:
            if not connection.is_cut:
                to.deliver(data)

        self.loop.call_in(WORLD, to.last - self.loop.time(), arrive)

    def cut(self, connection: Connection, *, half_open: float = 0.0) -> None:
        """End a connection: what is on the way is lost, and both sides notice; the server perhaps later."""
        if connection.is_cut:
            return
        connection.is_cut = True
        if connection in self.connections:
            self.connections.remove(connection)
        self.loop.call_in(WORLD, self._latency(), connection.at_worker.close)
        self.loop.call_in(WORLD, half_open or self._latency(), connection.at_server.close)

    def died(self, process: Process, *, half_open: float = 0.0) -> None:
        """Cut the connections of a dead process; without a reset, the other side detects it by its pings."""
        for connection in list(self.connections):
            if process in (connection.worker_process, connection.server_process):
                self.cut(connection, half_open=half_open)

    def _latency(self) -> float:
        return self._random.uniform(*_LATENCY)

    # ---- partitions

    def part(self, worker: int, server: int, seconds: float) -> None:
        """Separate a worker from a server: what is sent waits, and a connection that waits too long is lost."""
        self._partitions[worker, server] = self.loop.time() + seconds
        if seconds > _PING_SECONDS:
            for connection in list(self.connections):
                if (connection.worker.number, connection.server.number) == (worker, server):
                    self.loop.call_in(WORLD, _PING_SECONDS, self.cut, connection)

    def unanswered(self, process: Process, seconds: float) -> None:
        """Lose the connections of a process that stops for so long that the other side closes them."""
        if seconds > _PING_SECONDS:
            self.loop.call_in(WORLD, _PING_SECONDS, self.died, process)

    def _is_cut_off(self, worker: SimulatedWorker, server: SimulatedServer) -> bool:
        return self._partitions.get((worker.number, server.number), 0.0) > self.loop.time()

    def heal(self) -> None:
        self._partitions.clear()
        self.armed.clear()

    # ---- bundles and results

    def get(self, worker: SimulatedWorker, path: str) -> bytes:
        """Read what a worker needs from the server that it is connected to. Raises OSError or LookupError."""
        current = [one for one in self.connections if one.worker_process is worker.process]
        if not current:
            raise ConnectionRefusedError("no connection")
        server = current[-1].server
        if server.process.is_dead or server.process.is_stopped or self._is_cut_off(worker, server):
            raise ConnectionRefusedError("no connection")
        _, _, _, kind, name = path.split("/")
        key, _, query = name.partition("?")
        stored = stored_bundle if kind == "bundles" else stored_result
        caller = Caller("", frozenset({"worker"}))
        try:
            return stored(server.driver, key, caller, query.removeprefix("worker="))
        except (ProblemError, StoreError) as problem:  # the server answers, with another status than 200
            raise LookupError(str(problem)) from None


class WakeUpBus:
    """Wake-ups between servers. Each may be lost, doubled or late."""

    def __init__(self, loop: SimulatedLoop, random: Random) -> None:
        self.armed: dict[str, float] = {}
        self.happened: Callable[[str], None] = lambda _kind: None
        self._loop = loop
        self._random = random
        self._subscribers: list[tuple[Process, str, Wake]] = []

    def connect(self, process: Process) -> SimulatedWakeUps:
        return SimulatedWakeUps(self, process)

    def subscribe(self, process: Process, topic: str, wake: Wake) -> None:
        self._subscribers.append((process, topic, wake))

    def leave(self, process: Process) -> None:
        self._subscribers = [one for one in self._subscribers if one[0] is not process]

    def publish(self, topic: str, identifier: str) -> None:
        times = 1
        delay = 0.0
        if "wake_up_lost" in self.armed:
            del self.armed["wake_up_lost"]
            self.happened("wake_up_lost")
            times = 0
        elif "wake_up_doubled" in self.armed:
            delay = self.armed.pop("wake_up_doubled")
            self.happened("wake_up_doubled")
            times = 2
        for process, wanted, wake in self._subscribers:
            if wanted == topic:
                for _ in range(times):
                    self._loop.call_in(process, delay + self._random.uniform(*_LATENCY), wake, identifier)


class SimulatedWakeUps:
    def __init__(self, bus: WakeUpBus, process: Process) -> None:
        self._bus = bus
        self._process = process

    async def publish(self, topic: str, identifier: str) -> None:
        self._bus.publish(topic, identifier)

    async def subscribe(self, topic: str, wake: Wake, group: str = "") -> None:  # as the port has it
        self._bus.subscribe(self._process, topic, wake)

    async def close(self) -> None:
        self._bus.leave(self._process)
