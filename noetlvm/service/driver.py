"""One server process: the loop of rounds over a store that several servers may share, and connected workers.

None owns an execution: each decides on the state that it has in memory, and the store refuses a decision whose state
another server has moved on. Whatever a server leaves behind is a row that the others find within the polling interval,
or at once by a wake-up.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from noetlvm.data.event import Event, Recorded
from noetlvm.language.events import EventName
from noetlvm.machine.loaded import Bundle
from noetlvm.machine.messages import Input, LeaseLost, TimerDue, WorkerReport
from noetlvm.machine.scope import redacted
from noetlvm.protocol.messages import Part
from noetlvm.results.interface import ResultStore
from noetlvm.results.offered import store_for
from noetlvm.rounds.active import Ending
from noetlvm.rounds.admission import Admission
from noetlvm.rounds.credentials import Resolve
from noetlvm.rounds.intake import Intake
from noetlvm.rounds.library import Library
from noetlvm.rounds.loop import Performer, RoundLoop, RoundWriter, Sources, ThreadedWriter
from noetlvm.rounds.pending import Done
from noetlvm.rounds.recovery import recovered
from noetlvm.rounds.requests import BadRequestError, PreparedRetry, ReusedKeyError, StartContent, record_refusal
from noetlvm.rounds.rounds import News, Rounds
from noetlvm.service.dispatcher import Dispatcher
from noetlvm.service.hub import ConnectedWorker
from noetlvm.service.leases import Leases
from noetlvm.service.server_pace import POLL_SECONDS, ServerPace
from noetlvm.service.store_threads import StoreCalls
from noetlvm.service.wake_line import WakeLine
from noetlvm.store.interface import Execution, Store, StoreError
from noetlvm.wake.interface import WakeUps, pool_topic

IDLE_SECONDS = 60.0
"""How long an execution stays in memory after its last input; what comes then reads it again."""
THREAD_EXECUTIONS = 2
"""A write of at least this many executions is made in a thread: others may send something meanwhile."""
ANSWER_SECONDS = 5.0
"""A store that does not answer for longer than this is not ready."""
ENDINGS_CACHED = 32
"""Executions that ended last, whose ending is in memory: a client that waited for one reads it immediately."""

_Answer = TypeVar("_Answer")
Listener = Callable[[Execution, Sequence[Recorded]], None]


class ServerPorts(NamedTuple):
    """What a server reaches its surroundings by."""

    connect_wake_ups: Callable[[], Awaitable[WakeUps]] | None = None
    poll_seconds: float = POLL_SECONDS
    calls: StoreCalls | None = None
    """Calls of the store for decisions; else they are made in the event loop."""
    thread_executions: int = THREAD_EXECUTIONS


_ALONE = ServerPorts()


class Driver:
    """A server: executions, and the workers that are connected to it."""

    def __init__(
        self,
        store: Store,
        results: ResultStore,
        resolve: Resolve,
        ports: ServerPorts = _ALONE,
        *,
        rounds: Rounds | None = None,
        leases: Leases | None = None,
    ) -> None:
        """`leases`: over connections of their own; else those of the store."""
        self.store = store
        self.rounds = rounds = rounds or Rounds()
        self.leases = leases or Leases(store, store.now)
        self._call = ports.calls or StoreCalls()
        self.library = Library(store, results, is_shared=True)
        self._admission = Admission(rounds, self.library, resolve, store.now)
        self.intake = Intake(rounds, self.library, self._admission, self._call)
        self._pace = ServerPace(rounds, self.intake, store, ports.poll_seconds)
        self._line = WakeLine(ports.connect_wake_ups, self._pace.look)
        self.workers = Dispatcher(rounds, self.intake, self.leases, self._pace, self._line)
        sources = ServerSources(store, self._call, self.intake, rounds, self.workers, self._pace)
        writer = ThreadedWriter(
            store, self.library, self.workers.assign, store.now, self._write, large=ports.thread_executions
        )
        self.loop = ServerLoop(rounds, sources, writer, self.workers, self._pace)
        self.loop.observers.append(self._observe)
        self.listeners: set[Listener] = set()
        self._endings: dict[str, Ending] = {}
        """Of executions that ended here last."""
        self._beginning: set[asyncio.Future[bool]] = set()
        """Starts and retries that are not durable yet."""

    @property
    def results(self) -> ResultStore:
        return self.library.results

    # ---- running

    async def run(self) -> None:
        """Drive until `stop`. What was not durable then is answered with an error."""
        await self._line.open()
        try:
            await self.loop.run()
            await self.workers.let_go()
            await self._line.close()
        finally:
            self._pace.is_stopping = True
            for durable in self._beginning:
                if not durable.done():
                    durable.set_exception(StoreError("the server is stopping; send the request again"))

    def stop(self) -> None:
        self._pace.stop()

    def wake(self) -> None:
        """Look for rows at once."""
        self._pace.look()

    @property
    def failure(self) -> str:
        """Why the store cannot be used now; empty: it can. Readiness depends on it."""
        if self._call.waiting_seconds > ANSWER_SECONDS:
            return f"the store has not answered for {ANSWER_SECONDS:g} seconds"
        return self._pace.failure or self.leases.failure

    async def _write(self, call: Callable[[], _Answer], *, is_large: bool = False) -> _Answer:
        if is_large and self._call.has_thread:
            self._pace.give_way()
        return await self._call(call, is_large=is_large)

    # ---- workers

    async def join(self, worker: ConnectedWorker) -> None:
        """Take a worker in: it may renew leases at once, and gets commands in the next turn."""
        self.workers.hub.workers[worker.id] = worker
        for topic in map(pool_topic, worker.pools):
            await self._line.subscribe(topic)
        async with self.loop.lock:
            with contextlib.suppress(StoreError):  # the next poll claims
                await self.workers.claim_for(worker)

    async def put_results(self, results: Sequence[tuple[str, bytes]], execution_ids: Iterable[str]) -> None:
        """Store results that reports of these executions refer to, in the stores that their playbooks name."""
        await self.intake.activate(execution_ids)
        for execution_id in execution_ids:
            active = self.rounds.active.get(execution_id)
            if active is not None:  # else its report is refused
                store = store_for(self.results, active.playbook.executor)
                await self._call(partial(store.put, results))

    def report(self, worker: ConnectedWorker, number: int, part: Part, lease: int, events: list[Event]) -> None:
        """Let an execution decide on a worker's report; the answer is sent once that is durable."""
        execution_id, run, iteration = part

        def done(accepted: bool) -> None:
            is_open = accepted and self._is_open(part, lease)
            worker.answer(number, part, lease, accepted=accepted, is_open=is_open)

        events = self._redacted(execution_id, events)
        is_held = worker.report(part, lease, is_last=bool(events) and _is_last(events[-1]))
        if not is_held or not self._submit(execution_id, WorkerReport(run, iteration, lease, events), done):
            done(accepted=False)

    def _submit(self, execution_id: str, given: Input, done: Done) -> bool:
        active = self.rounds.active.get(execution_id)
        if active is not None:
            self.rounds.submit(active, given, done)
            self._pace.wake()
        return active is not None

    def _redacted(self, execution_id: str, events: list[Event]) -> list[Event]:
        """Redact the secrets that this server has, in case a worker does not have them."""
        active = self.rounds.active.get(execution_id)
        redact = active.credentials.redact if active is not None else None
        return events if redact is None else [redacted(event, redact) for event in events]

    def _is_open(self, part: Part, lease: int) -> bool:
        """Return whether a pipeline still runs under a lease: it may have ended, or wait for a child or a retry."""
        execution_id, run, iteration = part
        active = self.rounds.active.get(execution_id)
        thread = active.state.thread(run, iteration) if active is not None else None
        return thread is not None and thread.lease == lease

    # ---- the API

    def refuse(self, error: dict[str, Any], path: str, name: str = "") -> BadRequestError:
        """Record that a request is refused, and return what to raise (S61); any thread may call it."""
        now, ids = self.store.now(), self.rounds.new_ids
        return record_refusal(self.store, error, path, name=name, now=now, ids=ids)

    async def start(
        self,
        bundle: Bundle,
        payload: dict[str, Any],
        ctx: dict[str, Any],
        start_key: str = "",
        *,
        is_latest: bool = False,
    ) -> str:
        """Start an execution and return its identifier once that is durable.

        `is_latest`: the request names the path of the playbook, and no version. Raises BadRequestError, ReusedKeyError,
        StoreError.
        """
        content = StartContent(bundle.program.main.path, "" if is_latest else bundle.id, payload, ctx)
        objection = self._admission.objection(bundle, payload, ctx)
        if objection and await self._started(start_key) is None:
            main = bundle.program.main
            raise await self._call(partial(self.refuse, objection, main.path, main.name))
        return await self._begin(
            start_key,
            lambda done: self._admission.start(bundle, payload, ctx, start_key=start_key, done=done),
            lambda known: content.started(self.store, self.library.results.get, known),
        )

    async def retry(self, prepared: PreparedRetry, start_key: str = "") -> str:
        """Continue a failed execution as a new one; return its identifier once that is durable.

        Raises UnresolvedError, ReusedKeyError, StoreError.
        """
        bundle, failed = prepared.bundle.id, prepared.plan.state.execution_id
        return await self._begin(
            start_key,
            lambda done: self._admission.retry(prepared, start_key, done),
            lambda known: recovered(self.store, known, bundle).retried_from == failed,
        )

    async def _begin(
        self, start_key: str, begin: Callable[[Callable[[bool], None]], str], has_begun: Callable[[str], bool]
    ) -> str:
        """Begin an execution, unless one has the key already; return its identifier once that is durable.

        `has_begun` returns whether the same request began the execution that has the key.
        """
        known = await self._started(start_key)
        if known is None:
            begun = await self._begun(begin)
            known = await self._started(start_key) or begun
            if known == begun:
                return known
        if not await self._call(lambda: has_begun(known), is_large=True):
            raise ReusedKeyError(f"the key was used for another request, which began {known}; use a new key")
        return known

    async def _begun(self, begin: Callable[[Callable[[bool], None]], str]) -> str:
        durable: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if self._pace.is_stopping:
            raise StoreError("the server is stopping; send the request again")
        id = begin(_resolving(durable))
        self._pace.wake()
        self._beginning.add(durable)
        try:
            await durable
        finally:
            self._beginning.discard(durable)
        return id

    async def _started(self, start_key: str) -> str | None:
        return await self._call(lambda: self.store.started(start_key)) if start_key else None

    def ending(self, row: Execution) -> Ending:
        """Return the ending of an execution, or its current status; any thread may call it."""
        known = self._endings.get(row.execution_id)
        if known is not None and known.event_count == row.seq:
            return known
        return Ending.of(row.execution_id, row.status, recovered(self.store, row.execution_id, row.bundle))

    def _observe(self, news: News) -> None:
        row = news.row
        if row.ended is not None:
            self._endings[row.execution_id] = news.active.ending()
            if len(self._endings) > ENDINGS_CACHED:
                del self._endings[next(iter(self._endings))]
        for listener in list(self.listeners):
            listener(row, news.recorded)


class ServerLoop(RoundLoop):
    """The loop of a server. Messages of workers and rounds take turns."""

    def __init__(
        self, rounds: Rounds, sources: Sources, writer: RoundWriter, performer: Performer, pace: ServerPace
    ) -> None:
        super().__init__(rounds, sources, writer, performer, pace)
        self._pace = pace
        self.lock = asyncio.Lock()
        """Who has it may read executions and hand out commands. Inputs need no turn."""

    async def turn(self) -> None:
        async with self.lock:
            await super().turn()
        self._pace.failure = ""


class ServerSources:
    """Where a server's inputs come from, besides requests and reports."""

    def __init__(
        self,
        store: Store,
        call: StoreCalls,
        intake: Intake,
        rounds: Rounds,
        workers: Dispatcher,
        pace: ServerPace,
    ) -> None:
        self._store = store
        self._call = call
        self._intake = intake
        self._rounds = rounds
        self._workers = workers
        self._pace = pace

    @property
    def has_postponed(self) -> bool:
        return self._intake.has_postponed

    def look(self) -> None:
        self._intake.looks = True

    async def take_in(self) -> None:
        await self._workers.let_go()
        await self._workers.grant_taken_over()
        if self._pace.takes_poll():
            await self._poll()
        await self._intake.take_in()
        self._rounds.collect_due(self._store.now())

    async def _poll(self) -> None:
        """Take up what other processes left: requests, timers, commands of lost workers, commands that wait."""
        now = self._store.now()
        expired = await self._workers.expired(now)
        due = await self._call(lambda: self._store.due(now))
        self._intake.looks = True
        await self._intake.activate([row.execution_id for row in due] + [command.execution_id for command in expired])
        for row in due:
            self._submit(row.execution_id, TimerDue())
        for command in expired:
            self._workers.hub.expired(command.part, command.lease)
            self._submit(command.execution_id, LeaseLost(command.run, command.unit, command.lease))
        for worker in list(self._workers.hub.workers.values()):
            await self._workers.claim_for(worker)
        self._intake.evict(now - IDLE_SECONDS)

    def _submit(self, execution_id: str, given: Input) -> None:
        active = self._rounds.active.get(execution_id)
        if active is not None:
            self._rounds.submit(active, given)


def _resolving(future: asyncio.Future[bool]) -> Done:
    def done(accepted: bool) -> None:
        if not future.done():
            future.set_result(accepted)

    return done


def _is_last(event: Event) -> bool:
    """Return whether a worker leaves its command with an event: at its end, or while a child or a long wait lasts."""
    return event.name in _ENDINGS or bool(event.data.get("child") or event.data.get("suspended"))


_ENDINGS: frozenset[EventName] = frozenset({"step.done", "step.failed", "loop.iteration.done", "loop.iteration.failed"})
