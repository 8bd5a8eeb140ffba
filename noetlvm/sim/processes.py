"""Servers and workers as simulated processes: the production driver and remote worker, with ports that may fail."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from random import Random
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar, cast

from noetlvm.engine.engine import Engine, EngineOptions
from noetlvm.engine.pace import Budget
from noetlvm.language.placement import DEFAULT_POOL
from noetlvm.rounds.recovery import is_orphan
from noetlvm.rounds.rounds import Rounds
from noetlvm.service.driver import Driver, ServerPorts
from noetlvm.service.store_threads import StoreCalls
from noetlvm.sim.loop import WORLD, KilledError, Process, SimulatedLoop
from noetlvm.sim.playbooks import POOL
from noetlvm.sim.ports import FaultyStore, SimulatedClock, SimulatedTools, resolve_secrets
from noetlvm.store.interface import Action, Store, StoreError
from noetlvm.worker.remote_worker import RemoteWorker

if TYPE_CHECKING:
    from noetlvm.machine.loaded import Bundle
    from noetlvm.protocol.link import Exchange
    from noetlvm.results.interface import MemoryResults
    from noetlvm.rounds.identity import NewIds
    from noetlvm.sim.network import Network, WakeUpBus
    from noetlvm.store.memory import MemoryStore

_Answer = TypeVar("_Answer")

RESTART_SECONDS = (0.5, 8.0)
CALL_SECONDS = (0.0, 0.05)
"""Seconds before the store performs a call, and again before its server continues."""
SNAPSHOT_EVENTS = 7
"""Events after which an execution gets a snapshot: few, so that servers that restart or lose a race begin with one."""


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

        async def in_thread(call: Callable[[], _Answer], /, block_seconds: float) -> _Answer:
            await asyncio.sleep(around.random.uniform(*CALL_SECONDS))
            answer = call()
            await asyncio.sleep(around.random.uniform(*CALL_SECONDS))
            return answer

        self.driver = Driver(
            cast("Store", store),
            around.results,
            resolve_secrets,
            ServerPorts(
                connect_wake_ups,  # type: ignore[arg-type]  # it is one
                calls=StoreCalls(in_thread),
                thread_executions=1,
            ),
            rounds=Rounds(around.ids, SNAPSHOT_EVENTS),
        )
        around.loop.spawn(process, self.driver.run())

    @property
    def api(self) -> Process:
        """Where requests are handled."""
        return self.process

    async def begin(self, bundle: Bundle, number: int) -> str:
        """Start an execution, as the API does. Raises StoreError."""
        return await self.driver.start(bundle, {}, {}, f"key {number}")

    async def retry(self, execution_id: str, key: str) -> str:
        """Retry a failed execution, as the API does. Raises StoreError."""
        prepared = self.driver.library.prepare_retry(execution_id)
        await asyncio.sleep(self._around.random.uniform(*CALL_SECONDS))  # a thread reads that
        return await self.driver.retry(prepared, key)

    def request(self, execution_id: str, action: Action) -> None:
        """Take a control request, as the API does. Raises StoreError."""
        self.driver.store.request(execution_id, action)
        self.driver.wake()

    def crash(self) -> None:
        """Die, and restart later."""
        around = self._around
        if self.process.is_dead:
            return
        around.loop.kill(self.process)
        around.wake_ups.leave(self.process)
        around.network.died(self.process)
        around.loop.call_in(WORLD, around.random.uniform(*RESTART_SECONDS), self.start)


class SimulatedEngine:
    """Processes that are server and worker, one after the other: each starts what is new and resumes what is left."""

    def __init__(self, number: int, around: Surroundings, tools: SimulatedTools) -> None:
        self.number = number
        self.armed: dict[str, float] = {}
        self._around = around
        self._tools = tools
        self._wanted: dict[str, Bundle] = {}
        self._retries: dict[str, tuple[str, str]] = {}
        """By key: the failed execution, and the one that the last process made of it."""
        self.resumed: Counter[str] = Counter()
        """How often an execution was resumed, by the one at its root: then its tools run again under the same lease."""
        self.start()

    def start(self) -> None:
        around = self._around
        self.process = process = Process(f"engine {self.number}")
        store = FaultyStore(
            around.store, around.loop, process, around.store_clock, self.armed, self.crash, around.happened
        )
        engine = Engine(
            cast("Store", store),
            around.results,
            self._tools,
            EngineOptions(resolve=resolve_secrets),
            clock=around.store_clock,
            rounds=Rounds(around.ids, SNAPSHOT_EVENTS),
            budget=Budget(around.loop.time),
        )
        around.loop.spawn(process, self._run(engine))

    async def _run(self, engine: Engine) -> None:
        """Run until everything has ended, or the store fails: a command ends then, and a person calls the next."""
        store = self._around.store
        with contextlib.suppress(StoreError):
            for row in store.unfinished():
                if not row.parent or is_orphan(store, row):
                    self.resumed[row.trace_id] += 1
                    engine.resume(row.execution_id)
            for id, bundle in self._wanted.items():
                if store.execution(id) is None:
                    engine.start(bundle, {}, id)
            for key, (failed, id) in self._retries.items():
                if store.execution(id) is None:
                    self._retries[key] = failed, engine.retry(failed)
            await engine.run(listens=True)
        self.crash()

    @property
    def api(self) -> Process:
        """Where requests are handled: no process has to be there for them."""
        return WORLD

    async def begin(self, bundle: Bundle, number: int) -> str:
        """Have an execution started, and return its identifier once that is durable."""
        id = f"root{number:08x}"
        self._wanted[id] = bundle
        while self._around.store.execution(id) is None:
            await asyncio.sleep(0.1)
        return id

    async def retry(self, execution_id: str, key: str) -> str:
        """Have a failed execution retried by the next process, and return the identifier once that is durable."""
        self._retries.setdefault(key, (execution_id, ""))
        while self._around.store.execution(self._retries[key][1]) is None:
            await asyncio.sleep(0.1)
        return self._retries[key][1]

    def request(self, execution_id: str, action: Action) -> None:
        """Leave a control request in the store, as another process does. Raises StoreError."""
        self._around.store.request(execution_id, action)

    def crash(self) -> None:
        """End, gracefully or not; the next process starts later."""
        around = self._around
        if not self.process.is_dead:
            around.loop.kill(self.process)
            around.loop.call_in(WORLD, around.random.uniform(*RESTART_SECONDS), self.start)


Host: TypeAlias = SimulatedServer | SimulatedEngine
"""What decides for executions."""


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
            pools=(DEFAULT_POOL, POOL) if self.number == 0 else (DEFAULT_POOL,),
            slots=around.random.choice((1, 1, 2, 4)),
            clock=self.clock,
            jitter=around.random.random,
        )
        around.loop.spawn(self.process, self.remote.run())

    def crash(self) -> None:
        """Die, with or without closing the connection, and restart later."""
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
