"""One simulation: servers, workers and clients over one store, with a playbook and a schedule of faults."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, NamedTuple, TypeAlias

from fastapi import WebSocketDisconnect

from noetlvm.bridge import compile_valid
from noetlvm.data.event import Recorded
from noetlvm.data.references import Reference
from noetlvm.machine.loaded import Bundle
from noetlvm.machine.payload import Offload
from noetlvm.machine.replay import replay
from noetlvm.machine.state import State
from noetlvm.results.interface import MemoryResults
from noetlvm.rounds.recovery import folded, recovered
from noetlvm.sim.faults import FAULT_SECONDS, FAULTS, Fault, random_schedule
from noetlvm.sim.loop import WORLD, SimulatedLoop, StuckLoopError
from noetlvm.sim.network import Network, WakeUpBus
from noetlvm.sim.playbooks import Document, random_playbooks
from noetlvm.sim.ports import CallRecord, SimulatedClock, SimulatedTools, numbered_ids
from noetlvm.sim.processes import Host, SimulatedEngine, SimulatedServer, SimulatedWorker, Surroundings
from noetlvm.store.interface import Action, Execution, StoreError
from noetlvm.store.memory import MemoryStore

Begin: TypeAlias = Callable[[Host], Awaitable[str]]
"""Lets a server begin an execution, and returns its identifier. Raises StoreError."""

QUIET_SECONDS = 14_400.0
"""Seconds after the last fault by which everything must have ended: a long playbook, retried twice, takes an hour."""
_SETTLE_SECONDS = 2.0
_PATIENCE_SECONDS = 10.0
"""How long a client waits for an answer before it sends its request again."""
_RESUME_SECONDS = 5.0


class Scenario(NamedTuple):
    """Everything that a simulation depends on."""

    seed: int
    """Of tools, latencies and all other small choices."""
    playbooks: list[Document]
    servers: int
    workers: int
    starts: list[float]
    """When each execution is started."""
    faults: list[Fault]
    is_embedded: bool = False
    """One process is server and worker, as with `noetlvm run`."""

    @classmethod
    def of(cls, seed: int, *, is_embedded: bool = False) -> Scenario:
        random = Random(f"scenario {seed}")
        return cls(
            seed,
            random_playbooks(Random(f"playbook {seed}")),
            random.choice((1, 2, 2)),
            random.randint(1, 3),
            [round(random.uniform(0, 4), 3) for _ in range(random.choice((1, 1, 2)))],
            random_schedule(random, Random(f"reads {seed}"), Random(f"retries {seed}"), is_embedded=is_embedded),
            is_embedded,
        )


class StoredLog(NamedTuple):
    """What the store has of an execution in the end."""

    row: Execution
    events: list[Recorded]


class Retried(NamedTuple):
    """Retry requests with one key."""

    execution: str
    """The failed one."""
    answers: set[str]
    """Identifiers that the client got."""


class History(NamedTuple):
    logs: dict[str, StoredLog]
    calls: list[CallRecord]
    ctx: dict[str, dict[str, Any]]
    """`ctx` of each execution in the state that its log makes."""
    differences: dict[str, int]
    """Executions whose log is decided differently now, and from which event on."""
    unlike_snapshots: list[str]
    """Executions whose snapshot leads to another state than all their events."""
    answers: dict[int, set[str]]
    """Identifiers that the client got for each of its starts."""
    retries: list[Retried]
    blobs: dict[str, bytes]
    left: list[str]
    """What is unfinished in the store."""
    failures: list[tuple[str, BaseException]]
    """Process and exception of each unexpected failure."""
    resumed: Counter[str]
    """How often a new process resumed an execution, by the one at its root; only of embedded ones."""
    happened: Counter[str]
    seconds: float
    """Virtual time."""
    log_lines: list[str]


class World:
    """A simulated service and its surroundings."""

    def __init__(self, scenario: Scenario, bundle: Bundle) -> None:
        self.scenario = scenario
        self.loop = SimulatedLoop()  # type: ignore[abstract]  # nothing here uses files, sockets or signals
        self.store = MemoryStore()
        self.store_clock = SimulatedClock(self.loop)
        self.counts: Counter[str] = Counter()
        self.servers: list[Host] = []
        self._reachable: list[SimulatedServer] = []
        """Those that workers connect to."""
        self.workers: list[SimulatedWorker] = []
        self._bundle = bundle
        self._random = random = Random(f"world {scenario.seed}")
        self._results = MemoryResults()
        self.network = Network(self.loop, random, self._reachable)
        self.wake_ups = WakeUpBus(self.loop, random)
        self.network.happened = self.wake_ups.happened = self.happened
        self._calls: list[CallRecord] = []
        self._answers: dict[int, set[str]] = {number: set() for number in range(len(scenario.starts))}
        self._retries: dict[str, Retried] = {}
        """By key."""
        self._retry_random = Random(f"retrying {scenario.seed}")
        self.awaited = [fault for fault in scenario.faults if fault.kind == "retry"]
        """Faults that have not struck, and that the end waits for: they need what has ended."""
        self._stuck: list[str] = []
        """Why the simulation stopped early."""

    # ---- what faults use

    def happened(self, kind: str) -> None:
        """Count a fault that took effect."""
        self.counts[kind] += 1

    def server(self, fault: Fault) -> Host:
        return self.servers[fault.target % len(self.servers)]

    def worker(self, fault: Fault) -> SimulatedWorker:
        return self.workers[fault.target % len(self.workers)]

    def an_execution(self, fault: Fault) -> str:
        """Return an execution that has not ended; empty: there is none."""
        open_ones = self.store.unfinished()
        return open_ones[fault.target % len(open_ones)].execution_id if open_ones else ""

    def a_failed_execution(self, fault: Fault) -> str:
        """Return an execution that has failed; empty: there is none."""
        failed = self.store.executions(status="failed")
        return failed[fault.target % len(failed)].execution_id if failed else ""

    def is_busy(self) -> bool:
        """Return whether an execution has not ended, or a request to begin one has no answer."""
        answers = [*self._answers.values(), *(one.answers for one in self._retries.values())]
        return not all(answers) or self.store.has_unfinished()

    def control(self, execution_id: str, action: Action, server: Host | None = None) -> None:
        """Send a control request through a server, as the API does."""
        self.loop.spawn(WORLD, self._control(execution_id, action, server))

    def start_again(self, number: int) -> None:
        """Send a start request that was or will be sent a second time."""
        self.loop.spawn(WORLD, self._start(number % len(self.scenario.starts), 0.0))

    def retry(self, execution_id: str, key: str) -> None:
        """Send a request to retry a failed execution."""
        retried = self._retries.setdefault(key, Retried(execution_id, set()))
        request = self._begin(lambda server: server.retry(execution_id, key), self._retry_random, retried.answers)
        self.loop.spawn(WORLD, request)

    # ---- clients

    async def _control(self, execution_id: str, action: Action, server: Host | None) -> None:
        while True:
            chosen = server or self._random.choice(self.servers)
            sent = self.loop.create_future()
            self.loop.spawn(chosen.api, self._sent(chosen, execution_id, action, sent))
            try:
                if await asyncio.wait_for(sent, _PATIENCE_SECONDS):
                    return
            except TimeoutError:
                pass
            row = self.store.execution(execution_id)
            if row is None or row.ended is not None:
                return
            server = None

    async def _sent(self, server: Host, execution_id: str, action: Action, sent: asyncio.Future[bool]) -> None:
        try:
            server.request(execution_id, action)
            accepted = True
        except StoreError:
            accepted = False
            await asyncio.sleep(1)
        if not sent.done():
            sent.set_result(accepted)

    async def _start(self, number: int, at: float) -> None:
        await asyncio.sleep(at)
        await self._begin(lambda server: server.begin(self._bundle, number), self._random, self._answers[number])

    async def _begin(self, begin: Begin, random: Random, answers: set[str]) -> None:
        """Send a request that begins an execution to any server, until one answers."""
        while True:
            server = random.choice(self.servers)
            begun = self.loop.create_future()
            self.loop.spawn(server.api, self._begun(begin, server, begun))
            try:
                id = await asyncio.wait_for(begun, _PATIENCE_SECONDS)
            except TimeoutError:
                continue
            if id:
                answers.add(id)
                return

    async def _begun(self, begin: Begin, server: Host, begun: asyncio.Future[str]) -> None:
        try:
            id = await begin(server)
        except StoreError:
            await asyncio.sleep(1)
            id = ""
        if not begun.done():
            begun.set_result(id)

    # ---- the run

    def run(self) -> History:
        """Run until everything has ended, or nothing moves any more."""
        lines = _Lines()
        logger = logging.getLogger("noetlvm")
        logger.addHandler(lines)
        propagates, logger.propagate = logger.propagate, False
        try:
            with self.loop:
                self._set_up()
                try:
                    self._run_to_the_end()
                except StuckLoopError as error:
                    self._stuck = [str(error)]
                return self._history(lines.lines)
        finally:
            logger.removeHandler(lines)
            logger.propagate = propagates

    def _run_to_the_end(self) -> None:
        self.loop.run(self._is_over, FAULT_SECONDS)
        self._end_faults()
        self.loop.run(self._is_over, self.loop.time() + QUIET_SECONDS)
        self.loop.run(lambda: False, self.loop.time() + _SETTLE_SECONDS)
        # A process that failed in its last write leaves requests to what has ended; the next one acknowledges them.
        self.loop.run(lambda: not self.store.requests(), self.loop.time() + QUIET_SECONDS)

    def _set_up(self) -> None:
        scenario = self.scenario
        around = Surroundings(
            self.loop,
            self._random,
            self.store,
            self._results,
            self.network,
            self.wake_ups,
            self.store_clock,
            numbered_ids(),
            self.happened,
        )
        tools = SimulatedTools(scenario.seed, self.store, self._calls)
        if scenario.is_embedded:
            self.servers.append(SimulatedEngine(0, around, tools))
        else:
            self._reachable += [SimulatedServer(number, around) for number in range(scenario.servers)]
            self.servers += self._reachable
            self.workers += [SimulatedWorker(number, around, tools) for number in range(scenario.workers)]
        for number, at in enumerate(scenario.starts):
            self.loop.spawn(WORLD, self._start(number, at))
        for fault in scenario.faults:
            self.loop.call_in(WORLD, fault.at, FAULTS[fault.kind].strike, self, fault)

    def _end_faults(self) -> None:
        self.network.heal()
        self.wake_ups.armed.clear()
        for server in self.servers:
            server.armed.clear()
        for worker in self.workers:
            worker.armed.clear()
        self.loop.spawn(WORLD, self._resume_paused())

    async def _resume_paused(self) -> None:
        while True:
            for row in self.store.unfinished():
                if row.status == "paused":
                    self.control(row.execution_id, "resume")
            await asyncio.sleep(_RESUME_SECONDS)

    def _is_over(self) -> bool:
        return not self.awaited and not self.is_busy()

    def _history(self, lines: list[str]) -> History:
        rows = self.store.executions()
        logs = {row.execution_id: StoredLog(row, list(self.store.events(row.execution_id))) for row in reversed(rows)}
        left = [f"execution {row.execution_id} is {row.status}" for row in rows if row.ended is None]
        left += [f"a command of {command.part} is open" for command in self.store.commands()]
        left += [f"a request {one.action} to {one.execution_id} waits" for one in self.store.requests()]
        left += self._stuck
        left += [f"start {number} has no answer" for number, ids in self._answers.items() if not ids]
        left += [f"{key} has no answer" for key, retried in self._retries.items() if not retried.answers]
        failures = [(name, error) for name, error in self.loop.failures if not isinstance(error, _EXPECTED)]
        states = {id: folded(self.store, id) for id in logs}
        return History(
            logs,
            self._calls,
            {id: state.ctx for id, state in states.items()},
            self._differences(logs),
            [id for id, state in states.items() if not self._is_like_its_snapshot(id, state)],
            self._answers,
            list(self._retries.values()),
            self._results.blobs,
            left,
            failures,
            sum((server.resumed for server in self.servers if isinstance(server, SimulatedEngine)), Counter()),
            self.counts,
            self.loop.time(),
            lines,
        )

    def _is_like_its_snapshot(self, id: str, state: State) -> bool:
        return recovered(self.store, id, state.bundle).to_data() == state.to_data()

    def _fetch(self, reference: Reference) -> bytes:
        return self._results.get(reference.key)

    def _differences(self, logs: dict[str, StoredLog]) -> dict[str, int]:
        found: dict[str, int] = {}
        for id, log in logs.items():
            playbook = self._bundle.program.playbooks[log.row.path]
            offload = Offload(playbook.limits.max_payload_bytes, self._fetch)
            difference = replay(playbook, log.events, offload)
            if difference is not None:
                found[id] = difference.seq
        return found


def _expected() -> tuple[type[BaseException], ...]:
    return (OSError, WebSocketDisconnect)


_EXPECTED = _expected()
"""Ends the task that sends on a lost connection."""


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def simulate(scenario: Scenario) -> History:
    """Compile the playbooks of a scenario and run it. They must be valid, as those of `Scenario.of` are."""
    return World(scenario, Bundle.of(compile_valid(texts_of(scenario)))).run()


def texts_of(scenario: Scenario) -> list[str]:
    """Return the playbooks of a scenario as text for the compiler, the main one first."""
    return [json.dumps(one) for one in scenario.playbooks]
