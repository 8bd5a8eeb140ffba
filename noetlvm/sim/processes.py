"""Servers and workers as simulated processes: the production driver and remote worker, with ports that may fail."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from random import Random
from typing import TYPE_CHECKING, NamedTuple, cast

from noetlvm.language.placement import DEFAULT_POOL
from noetlvm.service.driver import Driver
from noetlvm.service.remote_worker import RemoteWorker
from noetlvm.sim.loop import WORLD, KilledError, Process, SimulatedLoop
from noetlvm.sim.ports import FaultyStore, SimulatedClock, SimulatedTools, resolve_secrets

if TYPE_CHECKING:
    from collections.abc import Callable

    from noetlvm.results.memory import MemoryResults
    from noetlvm.server.identity import NewIds
    from noetlvm.service.server_link import Exchange
    from noetlvm.sim.network import Network, WakeUpBus
    from noetlvm.store.interface import Store
    from noetlvm.store.memory import MemoryStore

RESTART_SECONDS = (0.5, 8.0)
SNAPSHOT_EVENTS = 7
"""An execution of so few events has a snapshot, so that servers that restart or lose a race begin with one."""


class Surroundings(NamedTuple):
    """What all processes of a simulation share."""

    loop: SimulatedLoop
    random: Random
    store: MemoryStore
    results: MemoryResults
    network: Network
    wake_ups: WakeUpBus
    store_clock: SimulatedClock
    ids: NewIds
    happened: Callable[[str], None]


class SimulatedServer:
    """A server, through all its restarts."""

    def __init__(self, number: int, around: Surroundings) -> None:
        self.number = number
        self.armed: dict[str, float] = {}
        self._around = around
        self.start()

    def start(self) -> None:
        around = self._around
        self.process = process = Process(f"server {self.number}")
        store = FaultyStore(
            around.store, around.loop, process, around.store_clock, self.armed, self.crash, around.happened
        )

        async def connect_wake_ups() -> object:
            return around.wake_ups.connect(process)

        self.driver = Driver(
            cast("Store", store),
            around.results,
            resolve_secrets,
            connect_wake_ups=connect_wake_ups,  # type: ignore[arg-type]  # it is one
            ids=around.ids,
            snapshot_events=SNAPSHOT_EVENTS,
        )
        around.loop.spawn(process, self.driver.run())

    def crash(self) -> None:
        """Die, and come back later."""
        around = self._around
        if self.process.is_dead:
            return
        around.loop.kill(self.process)
        around.wake_ups.leave(self.process)
        around.network.died(self.process)
        around.loop.call_in(WORLD, around.random.uniform(*RESTART_SECONDS), self.start)


class SimulatedWorker:
    """A worker, through all its restarts: also its link to the servers."""

    def __init__(self, number: int, around: Surroundings, tools: SimulatedTools) -> None:
        self.number = number
        self.armed: dict[str, float] = {}
        self._around = around
        self._tools = tools
        self._generation = 0
        self.clock = SimulatedClock(around.loop)
        self.start()

    def start(self) -> None:
        around = self._around
        self._generation += 1
        self.process = Process(f"worker {self.number}")
        self.remote = RemoteWorker(
            self,
            self._tools,
            id=f"worker-{self.number}-{self._generation}",
            pools=(DEFAULT_POOL,),
            slots=around.random.choice((1, 1, 2, 4)),
            clock=self.clock,
            jitter=around.random.random,
        )
        around.loop.spawn(self.process, self.remote.run())

    def crash(self) -> None:
        """Die, with or without a sign to the server, and come back later."""
        around = self._around
        if self.process.is_dead:
            return
        around.loop.kill(self.process)
        around.network.died(self.process, half_open=around.random.choice((0.0, 0.0, 25.0)))
        around.loop.call_in(WORLD, around.random.uniform(*RESTART_SECONDS), self.start)

    # ---- its link

    def connect(self) -> AbstractAsyncContextManager[Exchange]:
        return self._around.network.connect(self)

    def get(self, path: str) -> bytes:
        return self._around.network.get(self, path)

    def before_send(self) -> None:
        self._crash_if("worker_crash_before_report")

    def after_send(self) -> None:
        self._crash_if("worker_crash_after_report")

    def _crash_if(self, kind: str) -> None:
        if self.armed.pop(kind, None) is not None:
            self._around.happened(kind)
            self.crash()
            raise KilledError
