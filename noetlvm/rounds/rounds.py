"""The server's side of executions: takes inputs, decides, writes the decisions of many in one batch, and acts on them.

A round has three phases. `decide_waiting` decides on all inputs that wait, in memory. `write` makes the decisions
durable, in one batch for all executions: events, row, commands for workers, requests to other executions and timers.
`take_effects` gives the effects that remain to be performed in this process. An execution that lost a race to another
server is read again, and its inputs are decided again; its neighbours are not affected.

Parents and children exchange requests (start, cancel, child_finished), which are rows of the same write: so they may
be on different servers, and a crash in between loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count, repeat
from typing import Any, TypeAlias

from noetlvm.data.event import Recorded
from noetlvm.machine.decide import decide
from noetlvm.machine.instructions import failure
from noetlvm.machine.loaded import Bundle, LoadedPlaybook, LoadedProgram
from noetlvm.machine.messages import (
    Cancel,
    CancelChild,
    ChildFinished,
    CloseWork,
    Continue,
    Decision,
    Effect,
    Input,
    OpenWork,
    Pause,
    Refuse,
    Request,
    Resume,
    Retry,
    Start,
    StartChild,
    StopWork,
    TimerDue,
    WakeAt,
    WorkerReport,
)
from noetlvm.machine.payload import Offload
from noetlvm.machine.state import State
from noetlvm.results.interface import ResultStore
from noetlvm.results.offered import store_for
from noetlvm.rounds.active import Active, Ending, WaitingInput, objection_to, unoffered_store
from noetlvm.rounds.children import Children, ChildRequest, RefusedChildError, outcome_of
from noetlvm.rounds.credentials import Credentials, Resolve, UnresolvedError
from noetlvm.rounds.identity import NewIds, child_id
from noetlvm.rounds.recovery import SNAPSHOT_EVENTS, BundleCache, recovered, wants_snapshot
from noetlvm.rounds.requests import BadRequestError, PreparedRetry, prepare_retry, record_refusal
from noetlvm.store.interface import Append, Execution, ExecutionRequest, Snapshot, Store

Observer = Callable[[Execution, Sequence[Recorded]], None]
"""Gets the events of an execution once they are durable, and its row."""

Decide = Callable[..., Decision]

Assign = Callable[[Active, OpenWork], tuple[str, float]]
"""Returns the worker that gets a command, and until when; empty: it waits for a claim."""


TURN_SECONDS = 0.05
"""How long decisions may take before everything else in the event loop gets a turn (S62)."""

_REQUESTS_AT_ONCE = 200
"""Requests that are taken up before what they cause is decided."""

WriteBatch: TypeAlias = dict[str, tuple[Active, Append]]
"""Executions by identifier, and what is to be written of each."""


class NotFoundError(LookupError):
    """The store has no such execution, or not what is needed to continue it."""


class Server:
    """Decides for the executions that it has in memory."""

    def __init__(
        self,
        store: Store,
        results: ResultStore,
        *,
        resolve: Resolve,
        now: Callable[[], float],
        ids: NewIds,
        observers: Sequence[Observer] = (),
        assign: Assign = lambda _active, _work: ("", 0.0),
        is_shared: bool = False,
        decide: Decide = decide,
        is_spent: Callable[[int], bool] | None = None,
        shuffle: Callable[[list[Any]], None] | None = None,
        snapshot_events: int = SNAPSHOT_EVENTS,
    ) -> None:
        """`assign` chooses the worker of a command, which then claims it in the transaction that opens it.

        `is_shared`: other servers use the store too, so this one takes up requests to any execution. `shuffle` chooses
        the order of a batch and of its effects, for tests; else it is the order of arrival.
        """
        self.store = store
        self.results = results
        self.active: dict[str, Active] = {}
        self.endings: dict[str, Ending] = {}
        """How executions ended that the caller started or resumed."""
        self._wanted: set[str] = set()
        self._resolve = resolve
        self._now = now
        self._ids = ids
        self._observers = observers
        self._assign = assign
        self._is_shared = is_shared
        self._decide = decide
        self._is_spent = is_spent
        self._snapshot_events = snapshot_events
        self.bundles = BundleCache(store)
        self._children = Children(store, results.get, self._bundle)
        self._new_bundles: dict[str, bytes] = {}
        self._new_results: list[tuple[ResultStore, list[tuple[str, bytes]]]] = []
        """Those that decisions refer to which wait for a write."""
        self._batch_bundles: dict[str, bytes] = {}
        """Those of the batch that is being written: more may come meanwhile."""
        self._waiting: dict[Active, None] = {}
        """Executions with inputs."""
        self._timed: dict[Active, None] = {}
        """Executions that have a timer, or had one when timers were last looked for."""
        self._unwritten: dict[Active, None] = {}
        self._conflicted: dict[Active, None] = {}
        """Executions that lost a race and are not read again yet."""
        self._decided_at = 0.0
        """Time of all events of the next write."""
        self._last_request = 0
        self._arrived: dict[int, ExecutionRequest] = {}
        """Requests that were read and are not delivered yet."""
        self._postponed: dict[int, ExecutionRequest] = {}
        """Those that wait until another request to the same execution is answered."""
        self._obsolete: dict[str, tuple[Execution, list[int]]] = {}
        """Requests that nothing needs any more, by the execution that acknowledges them."""
        self._shuffle = shuffle
        self._has_sent = False

    # ---- inputs

    def start(
        self,
        bundle: Bundle,
        payload: dict[str, Any],
        execution_id: str | None = None,
        *,
        ctx: dict[str, Any] | None = None,
        start_key: str = "",
        done: Callable[[bool], None] | None = None,
    ) -> str:
        """Start the main playbook of a bundle, and return the execution's identifier. Raises BadRequestError.

        `done` is called once that is durable: with False if another execution has the start key.
        """
        objection = self.objection(bundle, payload, ctx or {})
        if objection:
            raise self.refuse_start(bundle, objection)
        return self.begin(bundle, payload, execution_id, ctx=ctx, start_key=start_key, done=done)

    def objection(self, bundle: Bundle, payload: dict[str, Any], ctx: dict[str, Any]) -> str:
        """Return why a request to start is refused; empty: it is not."""
        return objection_to(bundle.program.main, payload, ctx) or unoffered_store(self.results, bundle.program)

    def refuse_start(self, bundle: Bundle, objection: str) -> BadRequestError:
        """Record that a request to start is refused, and return what to raise (S61). It writes to the store."""
        self._use(bundle)
        return self.refuse(failure("request", objection), bundle.program.main.path, bundle.program.main.name)

    def begin(
        self,
        bundle: Bundle,
        payload: dict[str, Any],
        execution_id: str | None = None,
        *,
        ctx: dict[str, Any] | None = None,
        start_key: str = "",
        done: Callable[[bool], None] | None = None,
    ) -> str:
        """Start what nothing objects to. It does not use the store."""
        self._use(bundle)
        request = Request(execution_id or self._ids(self._now(), 1)[0], bundle.id, payload, ctx=ctx or {})
        if not self._is_shared:  # a service holds no endings in memory: its store has them
            self._wanted.add(request.execution_id)
        self._create(bundle.program, bundle.program.main, request, start_key, done)
        return request.execution_id

    def prepare_retry(self, execution_id: str, bundle: Bundle | None = None) -> PreparedRetry:
        """Read what the retry of a failed execution needs; any thread may. Raises NotFoundError, RefusedRetryError."""
        row = self.store.execution(execution_id)
        if row is None:
            raise NotFoundError(f"there is no execution {execution_id}")
        return prepare_retry(self.store, self.results.get, row, bundle or self._bundle(row.bundle))

    def retry(self, prepared: PreparedRetry, *, start_key: str = "", done: Callable[[bool], None] | None = None) -> str:
        """Continue a failed execution as a new one, and return its identifier. Raises UnresolvedError."""
        bundle, playbook, log, plan = prepared
        credentials = self._resolve(playbook.keychain)
        id = self._ids(self._now(), 1)[0]
        self._use(bundle)
        new = Execution(id, bundle.id, playbook.name, playbook.path, "running", self._now())
        active = self._enlist(new, bundle.program, playbook, plan.state, credentials)
        active.snapshot_seq, active.shared, active.start_key = 0, log, start_key
        if not self._is_shared:
            self._wanted.add(id)
        self.submit(active, plan.retry(id, bundle.id), done)
        return id

    def refuse(self, error: dict[str, Any], path: str, name: str = "") -> BadRequestError:
        """Record that a request is refused, and return what to raise (S61)."""
        return record_refusal(self.store, error, path, name=name, now=self._now(), ids=self._ids)

    def submit(self, active: Active, given: Input, done: Callable[[bool], None] | None = None) -> None:
        """Let an execution decide on an input in the next round."""
        active.used = self._now()
        active.inbox.append(WaitingInput(given, None, done))
        self._waiting[active] = None

    def activate(self, execution_id: str) -> Active:
        """Return an execution, read from the store if it is not in memory. Raises NotFoundError, UnresolvedError."""
        found = self.active.get(execution_id)
        if found is not None:
            return found
        self.write()  # the store shows nothing of what is not written
        row = self.store.execution(execution_id)
        if row is None:
            raise NotFoundError(f"there is no execution {execution_id}")
        program = self._bundle(row.bundle).program
        playbook = program.playbooks[row.path]
        unoffered = unoffered_store(self.results, program)
        if unoffered:
            raise NotFoundError(unoffered)
        state = recovered(self.store, execution_id, row.bundle, row.seq)
        # What has ended needs no secrets any more.
        credentials = Credentials() if state.is_over else self._resolve(playbook.keychain)
        active = self._enlist(row, program, playbook, state, credentials)
        if state.is_over:
            self._close(active)
        return active

    def resume(self, execution_id: str) -> Active:
        """Continue an execution that no process has; one that has ended only gets its ending."""
        self._wanted.add(execution_id)
        active = self._continue(execution_id)
        if not active.state.is_over:
            self.collect_requests()
        return active

    def _continue(self, execution_id: str) -> Active:
        active = self.activate(execution_id)
        if not active.state.is_over:
            # What ran out of time meanwhile is not started again.
            self.submit(active, TimerDue())
            self.submit(active, Resume())
            for request in self.store.requests(execution_id):
                self._deliver(request)
        return active

    def collect_requests(self) -> None:
        """Take up requests that were stored since the last time."""
        limit = None if self._is_shared else _REQUESTS_AT_ONCE
        self._arrived, self._postponed = self._postponed | self._arrived, {}
        while True:
            requests = self.store.requests(after=self._last_request, limit=limit)
            for request in requests:
                self._arrived[request.number] = request
                self._last_request = request.number
            self._deliver_arrived()
            self._acknowledge_obsolete()
            if len(requests) != limit:
                return
            self._collect_controls()
            if self._waiting:  # the rest after the next write
                self._has_sent = True
                return

    def _deliver_arrived(self) -> None:
        while self._arrived:
            number, request = next(iter(self._arrived.items()))
            self._deliver(request)
            self._arrived.pop(number, None)

    def _acknowledge_obsolete(self) -> None:
        if self._obsolete:
            self.store.write([Append(row, row.seq, acknowledged=numbers) for row, numbers in self._obsolete.values()])
            self._obsolete = {}

    def _collect_controls(self) -> None:
        """Take up requests to the executions that the caller started: they do not wait for those of their children."""
        for id in self._wanted & self.active.keys():
            for request in self.store.requests(id):
                self._deliver(request)

    def evict_idle(self, before: float) -> None:
        """Evict executions that got no input since a time: the next input reads them from the store again.

        Their timers are rows, which every server looks for. Only where the store is shared: else nothing does.
        """
        idle = [
            active
            for active in self.active.values()
            if active.used < before and active.is_idle and active not in self._conflicted
        ]
        for active in idle:
            del self.active[active.execution_id]
            self._children.forget(active.execution_id)

    def collect_due(self) -> None:
        """Give `TimerDue` to the executions whose timer is due."""
        now = self._now()
        for active, due in self._timers().items():
            if due <= now:
                active.due = None
                self.submit(active, TimerDue())

    @property
    def next_due(self) -> float | None:
        """Time of the first timer."""
        return min(self._timers().values(), default=None)

    def _timers(self) -> dict[Active, float]:
        """Return the executions in memory that have a timer, and when it is due: most have none."""
        current = {active: active.due for active in self._timed if self.active.get(active.execution_id) is active}
        timers = {active: due for active, due in current.items() if due is not None}
        self._timed = dict.fromkeys(timers)
        return timers

    def _deliver(self, request: ExecutionRequest) -> None:
        """Give a stored request to the execution that answers it, if this process may take it up."""
        active = self.active.get(request.execution_id)
        if active is None:
            taken = self._take_up(request)
            if taken is None:
                return
            active, given = taken
        else:
            given = self._input_of(active, request)
        if any(entry.number == request.number for entry in active.inbox):
            return
        active.inbox.append(WaitingInput(given, request))
        self._waiting[active] = None

    def _take_up(self, request: ExecutionRequest) -> tuple[Active, Input] | None:
        """Return who answers a request to an execution that is not in memory, and by what input.

        A process that has the store for itself leaves what it was not given, but for what its own executions request.
        """
        row = self.store.execution(request.execution_id)
        if row is None:
            return self._take_up_unborn(request)
        if row.ended is not None:
            self._drop(request, row)
        elif request.action == "start" and self._has(ChildRequest.of(request.data).parent):
            active = self.activate(row.execution_id) if self._is_shared else self._continue(row.execution_id)
            return active, self._input_of(active, request)
        elif self._is_shared or (request.action == "cancel" and request.data is not None):
            active = self.activate(row.execution_id)
            return active, self._input_of(active, request)
        return None

    def _take_up_unborn(self, request: ExecutionRequest) -> tuple[Active, Input] | None:
        """Create the child that a parent requests; if that cannot be, or it gives the child up, the parent answers."""
        id = request.execution_id
        if request.action == "start":
            return self._take_up_start(request, ChildRequest.of(request.data))
        if request.action != "cancel":
            return None
        if any(one.action == "start" for one in self.store.requests(id)):
            self._postponed[request.number] = request
            return None
        # In this order: another server may have created the child between the two, and acknowledged its start.
        if self.store.execution(id) is not None:
            return self._take_up(request)
        parent = self._parent(request, request.data)
        return None if parent is None else (parent, Continue())

    def _take_up_start(self, request: ExecutionRequest, wanted: ChildRequest) -> tuple[Active, Input] | None:
        root = self.store.execution(wanted.trace) if wanted.trace not in self.active else None
        if root is not None and root.ended is not None:
            # It would start children of its own, and those others, faster than requests to cancel them arrive (S62).
            for one in self.store.requests(request.execution_id):
                self._drop(one, root)
            return None
        if not self._has(wanted.parent):
            self._parent(request, wanted.parent)
            return None
        try:
            bundle, playbook, start = self._children.accepted(wanted, request.execution_id)
        except RefusedChildError as refused:
            parent = self._parent(request, wanted.parent)
            if parent is None:
                return None
            (run, iteration), key = parent.waiting_for(request.execution_id)
            return parent, ChildFinished(run, iteration, key, refused.outcome)
        return self._create(bundle.program, playbook, start), Continue()

    def _has(self, execution_id: str) -> bool:
        """Return whether this process answers for an execution."""
        return self._is_shared or execution_id in self.active

    def _parent(self, request: ExecutionRequest, execution_id: str) -> Active | None:
        """Return the parent that has sent a request, if it has not ended and this process answers for it."""
        row = self.store.execution(execution_id)
        if row is not None and row.ended is not None:
            self._drop(request, row)
        elif row is not None and self._has(execution_id):
            return self.activate(execution_id)
        return None

    def _drop(self, request: ExecutionRequest, row: Execution) -> None:
        """Acknowledge a request that nothing needs any more, on behalf of an execution that has ended."""
        self._obsolete.setdefault(row.execution_id, (row, []))[1].append(request.number)

    def _input_of(self, active: Active, request: ExecutionRequest) -> Input:
        if request.action != "child_finished":
            return CONTROLS.get(request.action, Continue())
        child, outcome = request.data
        (run, iteration), key = active.waiting_for(child)
        return ChildFinished(run, iteration, key, active.offload.readable(outcome))

    # ---- decide

    def decide_waiting(self) -> list[Active]:
        """Decide on the inputs that wait, until the turn is spent; return the executions that did."""
        self._reload_conflicted()
        waiting, self._waiting = list(self._waiting), {}
        if self._shuffle is not None:
            self._shuffle(waiting)
        if not self._unwritten:
            self._decided_at = self._now()
        for position, active in enumerate(waiting):
            if position and self._is_spent is not None and self._is_spent(0):
                self._waiting = dict.fromkeys(waiting[position:]) | self._waiting
                del waiting[position:]
                break
            self._decide_inbox(active)
            if active.has_news:
                self._unwritten[active] = None
            elif active not in self._unwritten:
                _confirm(active.done)
                active.forget()
        return waiting

    def has_inputs(self) -> bool:
        return bool(self._waiting or self._conflicted or self._arrived)

    @property
    def waiting_executions(self) -> int:
        """Number of executions with inputs that wait for a decision."""
        return len(self._waiting)

    def can_wait(self) -> bool:
        """Return whether all inputs that wait may be left waiting: decisions that were cut, and stored requests."""
        return all(_is_stored(entry) for active in self._waiting for entry in active.inbox)

    @property
    def has_unwritten(self) -> bool:
        return bool(self._unwritten)

    def _decide_inbox(self, active: Active) -> None:
        entries, active.inbox = active.inbox, []
        if self._shuffle is not None:
            entries = _shuffled(entries, self._shuffle)
        while entries:
            entry = entries.pop(0)
            accepted = _is_current(entry.input, active.state)
            decision = self._decide(
                active.playbook, active.state, entry.input, self._decided_at, active.offload, self._is_spent
            )
            active.decided.append(entry)
            active.events += decision.events
            active.due = None
            self._record_effects(active, decision.effects)
            if entry.request:
                active.acknowledged.append(entry.number)
            if entry.done is not None:
                active.done.append((entry.done, accepted))
            # A decision that was cut continues after what waits behind it: controls and timers come first.
            rest = list(map(WaitingInput, decision.rest))
            if rest or (entries and self._is_spent is not None and self._is_spent(0)):
                entries.sort(key=_is_report)  # a cancellation does not wait behind thousands of reports
                active.inbox = [*entries, *rest, *active.inbox]
                self._waiting[active] = None
                break
        if active.state.is_over:
            self._finish(active)

    def _finish(self, active: Active) -> None:
        """Send the ending of an execution to its parent."""
        if active.row.parent and active.events:
            data = [active.execution_id, outcome_of(active.ending())]
            active.sent.append(ExecutionRequest(active.row.parent, "child_finished", data))

    # ---- effects

    def _record_effects(self, active: Active, effects: list[Effect]) -> None:
        """Make rows of effects; those that a worker in this process performs wait for `take_effects`."""
        for effect in effects:
            if _EFFECTS[type(effect)](self, active, effect):
                active.effects.append(effect)

    def _open_work(self, active: Active, work: OpenWork) -> bool:
        active.open(work)
        return True

    def _close_work(self, active: Active, work: CloseWork | StopWork) -> bool:
        active.close(work)
        return type(work) is StopWork

    def _wake_at(self, active: Active, wake: WakeAt) -> bool:
        active.due = wake.at
        self._timed[active] = None
        return False

    def _request_child(self, active: Active, start: StartChild) -> bool:
        """Request a child, or its continuation if it was started before: who takes the request up looks which."""
        id = child_id(start.child.key)
        active.awaited[id] = (start.run, start.iteration), start.child.key
        active.sent.append(ExecutionRequest(id, "start", ChildRequest.by(active, start.child).to_data()))
        return False

    def _cancel_child(self, active: Active, cancel: CancelChild) -> bool:
        id = child_id(cancel.key)
        active.awaited.pop(id, None)
        active.sent.append(ExecutionRequest(id, "cancel", active.execution_id))
        return False

    def take_effects(self, active: Active) -> list[Effect]:
        """Return the effects of written decisions that are performed in this process."""
        effects, active.effects = active.effects, []
        if self._shuffle is not None:
            self._shuffle(effects)
        return effects

    # ---- write

    def write(self) -> None:
        """Make durable what was decided, and notify observers."""
        batch = self.take_batch()
        if batch:
            self.finish_write(batch, self.write_batch(batch))

    def take_batch(self) -> WriteBatch:
        """Return what waits for a write. Nothing may be decided before `finish_write`."""
        self._batch_bundles = dict(self._new_bundles)
        return {active.execution_id: (active, self._append(active)) for active in self._unwritten}

    def write_batch(self, batch: WriteBatch) -> set[str]:
        """Make a batch durable, in any thread; return the executions that lost a race."""
        for store, blobs in self._new_results:
            store.put(blobs)
        return self.store.write([append for _, append in batch.values()], self._batch_bundles)

    def finish_write(self, batch: WriteBatch, conflicts: set[str]) -> None:
        """Update the executions of a durable batch, notify observers, and read what the store shows now."""
        self.settle(batch, conflicts)
        self.catch_up()

    def settle(self, batch: WriteBatch, conflicts: set[str]) -> None:
        """Update the executions of a durable batch, and notify observers. It does not use the store."""
        self._unwritten, self._new_results = {}, []
        for bundle in self._batch_bundles:
            self._new_bundles.pop(bundle, None)
        done: list[tuple[Callable[[bool], None], bool]] = []
        for id, (active, append) in batch.items():
            if id in conflicts:
                self._conflicted[active] = None
                continue
            active.row = append.execution
            self._has_sent = self._has_sent or bool(append.sent)
            done += active.done
            for observe in self._observers:
                observe(append.execution, append.events[len(active.shared) :])
            active.forget()
            if active.state.is_over:
                self._close(active)
        _confirm(done)

    @property
    def is_behind(self) -> bool:
        """Return whether `catch_up` has something to read."""
        return bool(self._conflicted or self._arrived or self._has_sent or self._postponed)

    def catch_up(self) -> None:
        """Read what a write has shown to be there: executions that lost a race, and requests."""
        self._reload_conflicted()
        if self._has_sent or self._postponed:
            self._has_sent = False
            self.collect_requests()

    def _append(self, active: Active) -> Append:
        now = self._decided_at
        blobs = active.offload.take_blobs()
        if blobs:
            self._new_results.append((store_for(self.results, active.playbook.executor), blobs))
        known = active.row.seq
        ids = self._ids(now, len(active.events))
        first = known + len(active.shared) + 1
        fields = zip(count(first), ids, repeat(now), active.events, strict=False)
        recorded = [*active.shared, *map(_new_recorded, fields)]
        if active.state.is_over:
            active.due = None
        opened, closed = active.commands(self._assign, now)
        return Append(
            active.project(now),
            known,
            recorded,
            opened,
            closed,
            active.acknowledged,
            active.sent,
            self._snapshot(active),
            "" if known else active.start_key,
        )

    def _snapshot(self, active: Active) -> Snapshot | None:
        state = active.state
        if state.is_over or not wants_snapshot(state.seq, active.snapshot_seq, self._snapshot_events):
            return None
        active.snapshot_seq = state.seq
        return Snapshot(state.bundle, state.seq, state.to_data())

    def is_ahead(self, active: Active) -> bool:
        """Return whether an execution has decided what is not written: it may lose a race, and decide otherwise."""
        return active in self._unwritten or active in self._conflicted

    def refresh(self, active: Active) -> None:
        """Read an execution again if another server has moved it on and nothing of it waits here."""
        row = self.store.execution(active.execution_id)
        waits = active.inbox or active in self._waiting or self.is_ahead(active)
        if row is not None and row.seq != active.row.seq and not waits:
            self._read_again(active, row)

    def _reload_conflicted(self) -> None:
        """Read executions again that lost a race; if the store fails, before the next decision."""
        while self._conflicted:
            active = next(iter(self._conflicted))
            self._reload(active)
            del self._conflicted[active]
        self._deliver_arrived()

    def _reload(self, active: Active) -> None:
        """Read an execution again that another server has moved on, and decide on its inputs again."""
        row = self.store.execution(active.execution_id)
        entries = [*active.decided, *active.inbox]
        if row is None:  # another execution has its start key
            del self.active[active.execution_id]
            active.effects = []
            for entry in entries:
                if entry.done is not None:
                    entry.done(False)
            return
        # If it exists, it has begun: at another server that took up the same request, or here by a write whose answer
        # was lost.
        starts = [entry for entry in entries if type(entry.input) in _CREATING]
        _confirm([(entry.done, True) for entry in starts if entry.done is not None])
        # What a request means depends on the state: it is read again too.
        requests = self.store.requests(row.execution_id)
        self._read_again(active, row)
        active.inbox, active.decided = [entry for entry in entries if entry not in starts and not entry.request], []
        foreign = [
            entry.request for entry in entries if entry.request and entry.request.execution_id != row.execution_id
        ]
        self._arrived |= {request.number: request for request in (*requests, *foreign)}
        if active.inbox:
            self._waiting[active] = None

    def _read_again(self, active: Active, row: Execution) -> None:
        # Up to the row: another server may have written more since it was read.
        active.state = recovered(self.store, row.execution_id, row.bundle, row.seq)
        active.row = row
        active.forget()
        active.effects, active.awaited = [], {}
        if active.state.is_over and not active.inbox:
            self._close(active)

    # ---- executions

    def ending(self, execution_id: str) -> Ending:
        """Return the ending of an execution, or its current status."""
        found = self.endings.get(execution_id)
        return found or self.active[execution_id].ending()

    def _create(
        self,
        program: LoadedProgram,
        playbook: LoadedPlaybook,
        request: Request,
        start_key: str = "",
        done: Callable[[bool], None] | None = None,
    ) -> Active:
        refused = None
        try:
            credentials = self._resolve(playbook.keychain)
        except UnresolvedError as problem:
            credentials, refused = Credentials(), failure("keychain", str(problem))
        row = Execution(
            request.execution_id,
            request.bundle,
            playbook.name,
            playbook.path,
            "running",
            self._now(),
            parent=request.parent,
            trace=request.trace,
        )
        active = self._enlist(row, program, playbook, State(), credentials)
        active.start_key = start_key
        self.submit(active, Refuse(request, refused) if refused else Start(request), done)
        return active

    def _enlist(
        self, row: Execution, program: LoadedProgram, playbook: LoadedPlaybook, state: State, credentials: Credentials
    ) -> Active:
        fetch = self.results.get
        limit = playbook.limits.max_payload_bytes
        offload = Offload(limit, lambda reference: fetch(reference.key), redact=credentials.redact)
        credentials.protect(offload)
        active = self.active[row.execution_id] = Active(row, program, playbook, state, credentials, offload)
        active.snapshot_seq = state.seq
        active.used = self._now()
        return active

    def _close(self, active: Active) -> None:
        if self.active.get(active.execution_id) is active:  # a request to one that has ended is only acknowledged
            del self.active[active.execution_id]
        if active.execution_id in self._wanted:
            self.endings[active.execution_id] = active.ending()

    def _use(self, bundle: Bundle) -> None:
        """Take a bundle that executions of this process run; the next write stores it."""
        if bundle.id not in self.bundles:
            self._new_bundles[bundle.id] = bundle.data
        self.bundles.put(bundle)

    def _bundle(self, id: str) -> Bundle:
        found = self.bundles.get(id)
        if found is None:
            raise NotFoundError(f"the store has no bundle {id}")
        return found


_new_recorded = partial(tuple.__new__, Recorded)
"""Makes a record of its fields; every event comes here, and `Recorded(…)` takes three times as long."""


def _confirm(done: list[tuple[Callable[[bool], None], bool]]) -> None:
    for call, accepted in done:
        call(accepted)


def _shuffled(entries: list[WaitingInput], shuffle: Callable[[list[Any]], None]) -> list[WaitingInput]:
    """Return inputs in another order that could have been that of their arrival: reports of a thread stay in order."""
    if len(entries) < 2 or type(entries[0].input) in _CREATING:
        return entries
    reports = [(one.input.run, one.input.iteration) if type(one.input) is WorkerReport else None for one in entries]
    queues = {key: iter([one for one, of in zip(entries, reports, strict=True) if of == key]) for key in reports}
    shuffle(reports)
    return [next(queues[key]) for key in reports]


def _is_stored(entry: WaitingInput) -> bool:
    """Return whether an input is delivered again when the execution, or the parent that needs it, is resumed."""
    given = entry.input
    return bool(entry.request) or type(given) is Continue or (type(given) is Start and bool(given.request.parent))


def _is_report(entry: WaitingInput) -> bool:
    return type(entry.input) in (WorkerReport, ChildFinished)


def _is_current(given: Input, state: State) -> bool:
    """Return whether a report comes from the holder of its thread."""
    if type(given) is not WorkerReport:
        return True
    thread = state.thread(given.run, given.iteration)
    return thread is not None and thread.lease == given.lease


_CREATING = (Start, Refuse, Retry)
"""Inputs that create an execution."""

CONTROLS: dict[str, Input] = {"cancel": Cancel(), "pause": Pause(), "resume": Resume()}
"""Controls by the action of a request."""

_EFFECTS: dict[type, Callable[[Server, Active, Any], bool]] = {
    OpenWork: Server._open_work,
    CloseWork: Server._close_work,
    StopWork: Server._close_work,
    StartChild: Server._request_child,
    CancelChild: Server._cancel_child,
    WakeAt: Server._wake_at,
}
"""Handler of each effect; it returns True if a worker in this process performs the effect too."""
