"""Drives the server's side in one event loop: inputs of the API and of workers, timers, requests and lost leases.

Several servers may share a store. None owns an execution: each decides on the state that it has in memory, and the
store refuses a decision whose state another server has moved on. Whatever a server leaves behind is a row that the
others find within the polling interval, or at once by a wake-up.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any

from noetlvm.data.event import Event, Recorded
from noetlvm.language.events import EventName
from noetlvm.machine.decide import decide, work_for
from noetlvm.machine.loaded import Bundle
from noetlvm.machine.messages import LeaseLost, OpenWork, StopWork, TimerDue, Work, WorkerReport
from noetlvm.machine.scope import redacted
from noetlvm.protocol.messages import Part, work_form
from noetlvm.results.interface import ResultStore
from noetlvm.results.offered import store_for
from noetlvm.rounds.active import Active, Ending, unit_pool
from noetlvm.rounds.credentials import Resolve, UnresolvedError
from noetlvm.rounds.identity import NewIds, new_ids
from noetlvm.rounds.recovery import SNAPSHOT_EVENTS, recovered
from noetlvm.rounds.requests import PreparedRetry, ReusedKeyError, StartContent
from noetlvm.rounds.rounds import TURN_SECONDS, Decide, NotFoundError, Server
from noetlvm.service.hub import CommandGrant, ConnectedWorker, Hub
from noetlvm.service.leases import LEASE_SECONDS, Leases
from noetlvm.service.store_threads import InThread, StoreCalls
from noetlvm.store.interface import Execution, QueuedCommand, Store, StoreError
from noetlvm.wake.interface import SERVERS, LocalWakeUps, WakeUps, pool_topic

REST_SECONDS = 0.01
"""How long others get their turn after decisions that took long."""
RECONNECT_SECONDS = 2.0
"""How often to try again to connect what carries wake-ups."""
POLL_SECONDS = 1.0
"""Seconds between polls for rows that no wake-up announced."""

IDLE_SECONDS = 60.0
"""How long an execution stays in memory after its last input; what comes then reads it again."""
THREAD_EXECUTIONS = 2
"""A write of at least this many executions is made in a thread: others may send something meanwhile."""
ANSWER_SECONDS = 5.0
"""A store that does not answer for longer than this is not ready."""
ENDINGS_CACHED = 32
"""Executions that ended last, whose ending is in memory: a client that waited for one reads it immediately."""
UNIT_COMMANDS = 1_000
"""Commands of local units that a worker claims at once, whatever its slots: they wait for them there."""

_LOG = logging.getLogger("noetlvm.server")

Listener = Callable[[Execution, Sequence[Recorded]], None]


class Driver:
    """One server process."""

    def __init__(
        self,
        store: Store,
        results: ResultStore,
        resolve: Resolve,
        *,
        connect_wake_ups: Callable[[], Awaitable[WakeUps]] | None = None,
        lease_seconds: float = LEASE_SECONDS,
        poll_seconds: float = POLL_SECONDS,
        ids: NewIds = new_ids,
        decide: Decide = decide,
        snapshot_events: int = SNAPSHOT_EVENTS,
        in_thread: InThread | None = None,
        thread_executions: int = THREAD_EXECUTIONS,
        is_remote: bool = False,
        leases: Leases | None = None,
    ) -> None:
        """`in_thread` makes large writes, and if the store `is_remote`, every call: it may not answer for a while.

        `leases`: over connections of their own; else those of the store.
        """
        self.store = store
        self.results = results
        self.hub = Hub()
        self.listeners: set[Listener] = set()
        self._endings: dict[str, Ending] = {}
        """Of executions that ended here last."""
        self.leases = leases or Leases(store, store.now, lease_seconds)
        self.server = Server(
            store,
            results,
            resolve=resolve,
            now=store.now,
            ids=ids,
            decide=decide,
            observers=[self._observe],
            assign=self._assign,
            is_shared=True,
            is_spent=self._is_spent,
            snapshot_events=snapshot_events,
        )
        self._connect_wake_ups = connect_wake_ups
        self._wake_ups: WakeUps = LocalWakeUps()
        self._is_poll_due = True
        self._round_started = 0.0
        self._decided: dict[Active, None] = {}
        """Executions with effects to perform once their decisions are written."""
        self._subscribed: set[str] = set()
        self._backlog: set[str] = set()
        """Pools that may have commands which no worker had a slot for."""
        self._publishing: set[asyncio.Task[None]] = set()
        self._poll_seconds = poll_seconds
        self._wake = asyncio.Event()
        self._call = StoreCalls(in_thread, is_remote=is_remote)
        self._thread_executions = thread_executions
        self.turn = asyncio.Lock()
        """Who has it may change anything. During a call in a thread, executions get inputs, no more."""
        self._left: list[ConnectedWorker] = []
        """Workers that left since the last turn."""
        self._returned: list[tuple[ConnectedWorker, QueuedCommand]] = []
        """Commands that could not be handed out in the last turn."""
        self._taken_over: list[tuple[ConnectedWorker, QueuedCommand]] = []
        """Commands that workers have from earlier connections, since the last turn."""
        self._is_stopping = False
        self._beginning: set[asyncio.Future[bool]] = set()
        """Starts and retries that are not durable yet."""
        self._failure = ""
        """Why the store failed in the last turn; empty: it did not."""

    # ---- the loop

    async def run(self) -> None:
        """Drive until `stop`. What was not durable then is answered with an error."""
        try:
            await self._drive()
        finally:
            self._is_stopping = True
            for durable in self._beginning:
                if not durable.done():
                    durable.set_exception(StoreError("the server is stopping; send the request again"))

    async def _drive(self) -> None:
        next_poll = 0.0
        loop = asyncio.get_running_loop()
        connecting = None if await self._has_wake_ups() else loop.create_task(self._connect_again())
        while not self._is_stopping:
            self._wake.clear()
            try:
                async with self.turn:
                    await self._let_go()
                    await self._grant_taken_over()
                    if self._is_poll_due or loop.time() >= next_poll:
                        self._is_poll_due = False
                        next_poll = loop.time() + self._poll_seconds
                        await self._poll()
                    await self._round()
                self._failure = ""
            except StoreError as error:
                self._failure = str(error)
                _LOG.error("the store failed: %s", error)
                next_poll = loop.time() + self._poll_seconds
            if self._has_work() and not self._failure:
                # One pass of the event loop completes no request: a request takes many.
                await asyncio.sleep(REST_SECONDS if self._is_spent() else 0)
                continue
            # A timer that sets the event costs less than `wait_for`, which makes a task for each wait.
            timer = loop.call_later(max(0.0, self._wait_seconds(next_poll - loop.time())), self._wake.set)
            await self._wake.wait()
            timer.cancel()
        if connecting is not None:
            connecting.cancel()
        await self._let_go()
        await self._wake_ups.close()

    async def _has_wake_ups(self) -> bool:
        """Connect what carries wake-ups, and return whether it answers: only latency depends on it."""
        try:
            if self._connect_wake_ups is not None:
                self._wake_ups = await self._connect_wake_ups()
            for topic in (SERVERS, *self._subscribed):  # workers may have come before
                await self._wake_ups.subscribe(topic, self.wake)
        except StoreError as error:
            _LOG.warning("no wake-ups, polling instead: %s", error)
            return False
        return True

    async def _connect_again(self) -> None:
        while not await self._has_wake_ups():
            await asyncio.sleep(RECONNECT_SECONDS)
        self.wake()  # what was published meanwhile is lost

    @property
    def failure(self) -> str:
        """Why the store cannot be used now; empty: it can. Readiness depends on it."""
        if self._call.waiting_seconds > ANSWER_SECONDS:
            return f"the store has not answered for {ANSWER_SECONDS:g} seconds"
        return self._failure or self.leases.failure

    def stop(self) -> None:
        self._is_stopping = True
        self._wake.set()

    def wake(self, _identifier: str = "") -> None:
        """Look for rows at once."""
        self._is_poll_due = True
        self._wake.set()

    def announce(self, topic: str, identifier: str) -> None:
        """Wake other servers up: there is something that one of them may take."""
        task = asyncio.get_running_loop().create_task(self._wake_ups.publish(topic, identifier))
        self._publishing.add(task)
        task.add_done_callback(self._publishing.discard)

    def _wait_seconds(self, until_poll: float) -> float:
        due = None if self._failure else self.server.next_due  # a store that fails is tried again at the next poll
        return until_poll if due is None else min(until_poll, due - self.store.now())

    async def _round(self) -> None:
        self._round_started = asyncio.get_running_loop().time()
        if self.server.is_behind:  # the last turn could not read
            await self._read(self.server.catch_up)
        self.server.collect_due()
        is_in_thread = False
        while self._has_work() and not self._is_spent() and not is_in_thread:  # then others have their turn
            # What a failed write has not made durable is performed after the write that does.
            self._decided |= dict.fromkeys(self.server.decide_waiting())
            is_in_thread = await self._write()
            decided, self._decided = self._decided, {}
            for active in decided:
                for effect in self.server.take_effects(active):
                    _PERFORMED[type(effect)](self, active, effect)
            self.hub.drop_assigned()

    async def _write(self) -> bool:
        """Make durable what was decided; return whether others could send something meanwhile."""
        batch = self.server.take_batch()
        is_large = len(batch) >= self._thread_executions
        if batch:
            conflicts = await self._call(lambda: self.server.write_batch(batch), is_large=is_large)
            if is_large:
                self._round_started = asyncio.get_running_loop().time()
            self.server.settle(batch, conflicts)
            if self.server.is_behind:
                await self._call(self.server.catch_up)
        return is_large and self._call.has_thread

    async def _read(self, read: Callable[[], object]) -> None:
        """Let the server read the store. Nothing else changes its executions meanwhile: the caller has the turn."""
        if self.server.has_unwritten:
            await self._write()
        await self._call(read)

    async def activate(self, execution_ids: Iterable[str]) -> None:
        """Read executions that are not in memory; one that cannot continue here stays out of it."""
        for id in execution_ids:
            if id not in self.server.active:
                try:
                    await self._read(partial(self.server.activate, id))
                except (NotFoundError, UnresolvedError) as problem:
                    _LOG.error("execution %s cannot continue here: %s", id, problem)

    def _has_work(self) -> bool:
        return self.server.has_inputs() or self.server.has_unwritten or bool(self._decided)

    def _is_spent(self, _events: int = 0) -> bool:
        return asyncio.get_running_loop().time() - self._round_started > TURN_SECONDS

    async def _poll(self) -> None:
        """Take up what other processes left: requests, timers, commands of lost workers, commands that wait."""
        now = self.store.now()
        expired = await self.leases.expired(now)
        due = await self._call(lambda: self.store.due(now))
        await self._read(self.server.collect_requests)
        await self.activate([row.execution_id for row in due] + [command.execution_id for command in expired])
        for row in due:
            self._submit(row.execution_id, TimerDue())
        for command in expired:
            self.hub.expired(command.part, command.lease)
            self._submit(command.execution_id, LeaseLost(command.run, command.unit, command.lease))
        for worker in list(self.hub.workers.values()):
            await self.claim_for(worker)
        self.server.evict_idle(now - IDLE_SECONDS)

    def _submit(self, execution_id: str, given: Any, done: Callable[[bool], None] | None = None) -> bool:
        active = self.server.active.get(execution_id)
        if active is None or active.state.is_over:
            return False
        self.server.submit(active, given, done)
        self._wake.set()
        return True

    # ---- commands

    def _assign(self, active: Active, work: OpenWork) -> tuple[str, float]:
        """Choose the worker of a command in the transaction that opens it."""
        now = self.store.now()
        worker = self.hub.assign(active.execution_id, work, now)
        return worker, self.leases.end() if worker else 0.0

    def _open(self, active: Active, work: OpenWork) -> None:
        part = (active.execution_id, work.run, work.iteration)
        worker = self.hub.take_assigned(part, work.lease)
        if worker is not None:
            if not self._hand_out(worker, part, work.lease):
                self._returned.append((worker, QueuedCommand(*part, work.lease)))
            return
        self._backlog.add(work.pool)
        self.announce(pool_topic(work.pool), active.execution_id)

    def _stop_work(self, active: Active, work: StopWork) -> None:
        self.hub.withdrawn((active.execution_id, work.run, work.iteration), work.lease)

    async def claim_backlog(self, worker: ConnectedWorker) -> None:
        """Give a worker what is known to wait for one of its pools; the rest is found by wake-ups and by polling."""
        if worker.unit_pools or not self._backlog.isdisjoint(worker.pools):
            await self.claim_for(worker)

    async def claim_for(self, worker: ConnectedWorker) -> None:
        """Give a worker what waits for one of its pools."""
        free = worker.free
        if not free:
            self._backlog |= worker.pools  # looked for when a slot is free again
        elif await self._claim(worker, worker.pools, free) < free:
            self._backlog -= worker.pools
        pools = worker.unit_pools
        if pools:
            await self._claim(worker, pools, UNIT_COMMANDS)

    async def _claim(self, worker: ConnectedWorker, pools: Iterable[str], limit: int) -> int:
        """Claim commands of pools for a worker; return how many there were."""
        claimed = await self.leases.claim(worker, pools, limit)
        await self.activate(command.execution_id for command in claimed)
        for command in claimed:
            await self._refresh(command)
            if not self._hand_out(worker, command.part, command.lease):
                self._returned.append((worker, command))
        return len(claimed)

    def _hand_out(self, worker: ConnectedWorker, part: Part, lease: int) -> bool:
        execution_id, run, iteration = part
        active = self.server.active.get(execution_id)
        if active is None or self.server.is_ahead(active):
            return False  # in the log, this run may belong to another step than here
        work = self._work(active, run, iteration, lease)
        if work is None:
            return False
        entries = active.credentials.entries
        named = {name: entries[name] for name in work.keychain if name in entries}
        data = work_form(work)
        self._grant(worker, active, work, data)
        worker.send(command={"work": data, "secrets": named})
        return True

    def _grant(self, worker: ConnectedWorker, active: Active, work: Work, data: dict[str, Any]) -> None:
        """Let a worker read what its command refers to."""
        unit = active.playbook.steps[work.step].unit(work.iteration)
        pool = unit_pool(work.execution_id, work.run, unit) if unit != work.iteration else ""
        part = (work.execution_id, work.run, work.iteration)
        worker.grant(part, CommandGrant(work.bundle, data, pool))

    def _work(self, active: Active, run: int, iteration: str, lease: int) -> Work | None:
        """Return the work of a command, if it is open under this lease in the state that is in memory."""
        work = work_for(active.playbook, active.state, run, iteration, active.offload)
        return work if work is not None and work.lease == lease else None

    async def _refresh(self, command: QueuedCommand) -> None:
        """Read an execution again if another server has moved it on and opened this command."""
        active = self.server.active.get(command.execution_id)
        if active is not None:
            thread = active.state.thread(command.run, command.unit)
            if thread is None or thread.lease != command.lease:
                await self._read(partial(self.server.refresh, active))

    # ---- workers

    async def join(self, worker: ConnectedWorker) -> None:
        """Take a worker in: it may renew leases at once, and gets commands in the next turn."""
        self.hub.workers[worker.id] = worker
        for topic in map(pool_topic, worker.pools):
            if topic not in self._subscribed:
                self._subscribed.add(topic)
                await self._wake_ups.subscribe(topic, self.wake)
        async with self.turn:
            with contextlib.suppress(StoreError):  # the next poll claims
                await self.claim_for(worker)

    def leave(self, worker: ConnectedWorker) -> None:
        """Let a worker go in the next turn: what it held is open again then."""
        self._left.append(worker)
        self._wake.set()

    async def _let_go(self) -> None:
        returned, self._returned = self._returned, []
        for worker, command in returned:  # found again by polling: the next worker may not get it either
            with contextlib.suppress(StoreError):
                await self.leases.release(worker, [command])
        while self._left:
            worker = self._left.pop()
            later = self.hub.workers.get(worker.id)
            if later is worker:
                del self.hub.workers[worker.id]
            held = worker.held | worker.leaving
            if later not in (None, worker):  # it has connected again, and what it renewed there stays with it
                held = {part: lease for part, lease in held.items() if later.held.get(part) != lease}
            await self._release(worker, [QueuedCommand(*part, lease) for part, lease in held.items()])
            worker.held.clear()

    async def release(self, worker: ConnectedWorker, part: Part, lease: int) -> None:
        """Open a command again that a worker returns."""
        await self._release(worker, [QueuedCommand(*part, lease)])

    async def _release(self, worker: ConnectedWorker, held: list[QueuedCommand]) -> None:
        if held:
            with contextlib.suppress(StoreError):  # the leases end by themselves
                await self.leases.release(worker, held)
            self.wake()

    async def renew(self, worker: ConnectedWorker, named: Sequence[tuple[Part, int]]) -> None:
        """Extend the leases that a worker names. It needs no turn. Raises StoreError."""
        taken_over = await self.leases.renew(worker, named)
        if taken_over:
            self._taken_over += [(worker, command) for command in taken_over]
            self._wake.set()

    async def _grant_taken_over(self) -> None:
        """Let workers read what commands of earlier connections refer to: they may still need it."""
        while self._taken_over:
            worker, command = self._taken_over[0]
            await self.activate([command.execution_id])
            await self._refresh(command)
            active = self.server.active.get(command.execution_id)
            work = active and self._work(active, command.run, command.unit, command.lease)
            if active and work:
                self._grant(worker, active, work, work_form(work))
            del self._taken_over[0]

    async def put_results(self, results: Sequence[tuple[str, bytes]], execution_ids: Iterable[str]) -> None:
        """Store results that reports of these executions refer to, in the stores that their playbooks name."""
        await self.activate(execution_ids)
        for execution_id in execution_ids:
            active = self.server.active.get(execution_id)
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
        if not is_held or not self._submit(execution_id, WorkerReport(run, iteration, lease, events), _on_loop(done)):
            done(accepted=False)

    def _redacted(self, execution_id: str, events: list[Event]) -> list[Event]:
        """Redact the secrets that this server has, in case a worker does not have them."""
        active = self.server.active.get(execution_id)
        redact = active.credentials.redact if active is not None else None
        return events if redact is None else [redacted(event, redact) for event in events]

    def _is_open(self, part: Part, lease: int) -> bool:
        """Return whether a pipeline still runs under a lease: it may have ended, or wait for a child or a retry."""
        execution_id, run, iteration = part
        active = self.server.active.get(execution_id)
        thread = active.state.thread(run, iteration) if active is not None else None
        return thread is not None and thread.lease == lease

    # ---- the API

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
        objection = self.server.objection(bundle, payload, ctx)
        if objection and await self._started(start_key) is None:
            raise await self._call(partial(self.server.refuse_start, bundle, objection))
        return await self._begin(
            start_key,
            lambda done: self.server.begin(bundle, payload, ctx=ctx, start_key=start_key, done=done),
            lambda known: content.started(self.store, self.results.get, known),
        )

    async def retry(self, prepared: PreparedRetry, start_key: str = "") -> str:
        """Continue a failed execution as a new one; return its identifier once that is durable.

        Raises UnresolvedError, ReusedKeyError, StoreError.
        """
        bundle, failed = prepared.bundle.id, prepared.plan.state.execution_id
        return await self._begin(
            start_key,
            lambda done: self.server.retry(prepared, start_key=start_key, done=done),
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
        async with self.turn:
            if self._is_stopping:
                raise StoreError("the server is stopping; send the request again")
            id = begin(_on_loop(_resolving(durable)))
        self._wake.set()
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

    def _observe(self, row: Execution, recorded: Sequence[Recorded]) -> None:
        active = self.server.active.get(row.execution_id) if row.ended is not None else None
        if active is not None:
            self._endings[row.execution_id] = active.ending()
            if len(self._endings) > ENDINGS_CACHED:
                del self._endings[next(iter(self._endings))]
        for listener in list(self.listeners):
            listener(row, recorded)


def _resolving(future: asyncio.Future[bool]) -> Callable[[bool], None]:
    def done(accepted: bool) -> None:
        if not future.done():
            future.set_result(accepted)

    return done


def _on_loop(done: Callable[[bool], None]) -> Callable[[bool], None]:
    """Return a confirmation that any thread may make: one that reads the store finds out what an answer was."""
    loop = asyncio.get_running_loop()
    own = threading.get_ident()

    def confirm(accepted: bool) -> None:
        if threading.get_ident() == own:
            done(accepted)
        else:
            loop.call_soon_threadsafe(done, accepted)

    return confirm


def _is_last(event: Event) -> bool:
    """Return whether a worker leaves its command with an event: at its end, or while a child or a long wait lasts."""
    return event.name in _ENDINGS or bool(event.data.get("child") or event.data.get("suspended"))


_ENDINGS: frozenset[EventName] = frozenset({"step.done", "step.failed", "loop.iteration.done", "loop.iteration.failed"})

_PERFORMED: dict[type, Callable[[Driver, Active, Any], None]] = {
    OpenWork: Driver._open,
    StopWork: Driver._stop_work,
}
"""How each effect is performed that the server leaves to this process."""
