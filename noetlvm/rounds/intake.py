"""What a round needs of the store, read before its decisions: executions, requests to them, and what requests name.

`Intake` collects what is wanted. `take_in` reads all of it in one call, which a process with a remote store makes in a
thread, and then lets the executions have it. If a read fails, nothing has changed, and everything is still wanted.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from noetlvm.machine.loaded import Bundle, LoadedPlaybook
from noetlvm.machine.messages import ChildFinished, Continue, Input, Request, Resume, TimerDue
from noetlvm.machine.state import State
from noetlvm.rounds.active import Active
from noetlvm.rounds.admission import Admission
from noetlvm.rounds.children import ChildRequest, RefusedChildError
from noetlvm.rounds.credentials import Credentials, UnresolvedError
from noetlvm.rounds.library import Library, Loaded, NotFoundError
from noetlvm.rounds.loop import StoreCall
from noetlvm.rounds.rounds import CONTROLS, CREATING, Rounds
from noetlvm.store.interface import Execution, ExecutionRequest
from noetlvm.tools.call import Outcome

REQUESTS_AT_ONCE = 200
"""Requests that a process takes up before what they cause is decided."""

_LOG = logging.getLogger("noetlvm.server")


class Delivery(NamedTuple):
    """A stored request, and who answers it."""

    request: ExecutionRequest
    to: str
    """The execution itself, or its parent: if it is not created, or was given up before."""
    refused: Outcome | None = None
    """Why a child is not created, for its parent."""
    created: tuple[Bundle, LoadedPlaybook, Request] | None = None


class Wanted(NamedTuple):
    """What is to be read."""

    lost: list[str]
    loaded: list[str]
    """Executions that are not in memory, or of which another server may know more."""
    arrived: list[ExecutionRequest]
    """Requests that were read before."""
    after: int | None
    """Number of the last request that was read; None: no others are wanted."""
    first: list[str]
    """Executions whose requests do not wait behind all others."""


class ReadRows:
    """What was read."""

    def __init__(self) -> None:
        self.lost: dict[str, tuple[Execution, State] | None] = {}
        self.loaded: dict[str, Loaded | Exception] = {}
        self.deliveries: list[Delivery] = []
        self.dropped: list[tuple[int, Execution]] = []
        self.postponed: list[ExecutionRequest] = []
        """Those that wait until another request to the same execution is answered."""
        self.continued: list[str] = []
        """Executions that this process continues alone, after a crash perhaps."""
        self.last: int | None = None
        self.has_more = False


class StoreReading:
    """One reading of the store. It changes nothing in memory, so any thread may make it."""

    def __init__(self, library: Library, active: Mapping[str, Active]) -> None:
        self._library = library
        self._store = library.store
        self._active = active
        self._created: set[str] = set()
        self._ended: dict[str, Execution | None] = {}
        """Executions that were looked at, if they have ended."""
        self._found = ReadRows()

    def read(self, wanted: Wanted) -> ReadRows:
        found = self._found
        for id in wanted.lost:
            row = self._store.execution(id)
            found.lost[id] = None if row is None else (row, self._library.state(row))
        for id in wanted.loaded:
            self._load(id)
        requests = {request.number: request for request in wanted.arrived}
        for id in wanted.lost:  # what a request means depends on the state
            requests |= {request.number: request for request in self._store.requests(id)}
        if wanted.after is not None:
            requests |= {request.number: request for request in self._new_requests(wanted)}
        for request in requests.values():
            self._deliver(request)
        return found

    def _new_requests(self, wanted: Wanted) -> Iterable[ExecutionRequest]:
        found, limit = self._found, None if self._library.is_shared else REQUESTS_AT_ONCE
        requests = self._store.requests(after=wanted.after or 0, limit=limit)
        found.last = requests[-1].number if requests else wanted.after
        found.has_more = len(requests) == limit
        if found.has_more:
            for id in wanted.first:
                requests += self._store.requests(id)
        return requests

    def _load(self, id: str) -> bool:
        """Read an execution, unless that was done; return whether it can continue here."""
        if id not in self._found.loaded:
            try:
                self._found.loaded[id] = self._library.load(id)
            except NotFoundError as problem:
                self._found.loaded[id] = problem
        return isinstance(self._found.loaded[id], Loaded)

    # ---- requests

    def _deliver(self, request: ExecutionRequest) -> None:
        """Find out who answers a request.

        A process that has the store for itself leaves what it was not given, but for what its own executions request.
        """
        id = request.execution_id
        if id in self._active or id in self._created:
            self._found.deliveries.append(Delivery(request, id))
            return
        row = self._store.execution(id)
        if row is None:
            self._deliver_unborn(request)
        elif row.ended is not None:
            self._found.dropped.append((request.number, row))
        elif request.action == "start" and self._has(ChildRequest.of(request.data).parent):
            if not self._library.is_shared:
                self._found.continued.append(id)
                for other in self._store.requests(id):
                    self._give(other, id)
            self._give(request, id)
        elif self._library.is_shared or id in self._found.loaded or _is_of_parent(request):
            self._give(request, id)

    def _give(self, request: ExecutionRequest, id: str, refused: Outcome | None = None) -> None:
        if id in self._active or self._load(id):
            self._found.deliveries.append(Delivery(request, id, refused))

    def _deliver_unborn(self, request: ExecutionRequest) -> None:
        """Create the child that a parent requests; if that cannot be, or it gives the child up, the parent answers."""
        id = request.execution_id
        if request.action == "start":
            self._start(request, ChildRequest.of(request.data))
        elif not _is_of_parent(request):
            return
        elif root := self._ended_root(request.data):
            self._found.dropped.append((request.number, root))  # what would start the child is dropped too
        elif any(one.action == "start" for one in self._store.requests(id)):
            self._found.postponed.append(request)
        # In this order: another server may have created the child between the two, and acknowledged its start.
        elif self._store.execution(id) is not None:
            self._deliver(request)
        else:
            self._give_to_parent(request, request.data)

    def _start(self, request: ExecutionRequest, wanted: ChildRequest) -> None:
        root = self._ended_one(wanted.trace)
        if root is not None:
            # It would start children of its own, and those others, faster than requests to cancel them arrive (S62).
            self._found.dropped.append((request.number, root))
        elif not self._has(wanted.parent):
            self._give_to_parent(request, wanted.parent)
        else:
            try:
                created = self._library.children.accepted(wanted, request.execution_id)
            except RefusedChildError as refused:
                self._give_to_parent(request, wanted.parent, refused.outcome)
                return
            self._created.add(request.execution_id)
            self._found.deliveries.append(Delivery(request, request.execution_id, None, created))

    def _ended_root(self, execution_id: str) -> Execution | None:
        """Return the execution at the root of another one, if it has ended."""
        row = self._store.execution(execution_id)
        return None if row is None else self._ended_one(row.trace_id)

    def _ended_one(self, execution_id: str) -> Execution | None:
        if execution_id in self._active:
            return None
        if execution_id not in self._ended:
            row = self._store.execution(execution_id)
            self._ended[execution_id] = row if row is not None and row.ended is not None else None
        return self._ended[execution_id]

    def _has(self, execution_id: str) -> bool:
        """Return whether this process answers for an execution."""
        return self._library.is_shared or execution_id in self._active or execution_id in self._found.loaded

    def _give_to_parent(self, request: ExecutionRequest, parent: str, refused: Outcome | None = None) -> None:
        row = self._store.execution(parent)
        if row is not None and row.ended is not None:
            self._found.dropped.append((request.number, row))
        elif row is not None and self._has(parent):
            self._give(request, parent, refused)


def _is_of_parent(request: ExecutionRequest) -> bool:
    """Return whether a parent cancels its child."""
    return request.action == "cancel" and request.data is not None


class Intake:
    """What is wanted of the store before the next decisions."""

    def __init__(self, rounds: Rounds, library: Library, admission: Admission, call: StoreCall | None = None) -> None:
        self.roots: set[str] = set()
        """Executions whose requests do not wait behind those of their children."""
        self._rounds = rounds
        self._library = library
        self._admission = admission
        self._call = call
        self._missing: set[str] = set()
        """Executions to be read."""
        self._arrived: dict[int, ExecutionRequest] = {}
        self._postponed: dict[int, ExecutionRequest] = {}
        self._last = 0
        self.looks = False
        """Requests may have come since the last time."""

    # ---- what is wanted

    async def activate(self, execution_ids: Iterable[str]) -> None:
        """Read executions that are not in memory; one that cannot continue here stays out of it. Raises StoreError."""
        self._missing |= set(execution_ids) - self._rounds.active.keys()
        await self.take_in()

    async def refresh(self, execution_id: str) -> None:
        """Read an execution again, if another server has moved it on and nothing of it waits here."""
        self._missing.add(execution_id)
        await self.take_in()

    @property
    def is_wanted(self) -> bool:
        """Return whether anything is to be read."""
        return self.looks or self.is_needed

    @property
    def is_needed(self) -> bool:
        """Return whether something waits for what is to be read."""
        return bool(self._missing or self._arrived or self._rounds.lost)

    # ---- reading

    async def take_in(self) -> None:
        """Read what is wanted, and let the executions have it. Raises StoreError."""
        if self._call is None:
            self.take_in_now()
        elif self.is_wanted:
            wanted, reading = self._wanted(), StoreReading(self._library, self._rounds.active)
            self.looks = False
            try:
                found = await self._call(lambda: reading.read(wanted))
            except BaseException:
                self.looks = self.looks or wanted.after is not None
                raise
            self._apply(wanted, found)

    def take_in_now(self) -> None:
        """Do the same where nothing else waits."""
        if self.is_wanted:
            wanted = self._wanted()
            found = StoreReading(self._library, self._rounds.active).read(wanted)
            self.looks = False
            self._apply(wanted, found)

    @property
    def has_postponed(self) -> bool:
        """Return whether requests wait until others are answered."""
        return bool(self._postponed)

    def resume(self, execution_id: str) -> Active:
        """Continue an execution that no process has; one that has ended is only returned.

        Raises NotFoundError, UnresolvedError.
        """
        self.roots.add(execution_id)
        active = self.load(execution_id)
        if not active.state.is_over:
            self._continue(active)
            for request in self._library.store.requests(execution_id):
                self._arrived[request.number] = request
            self.looks = True
            self.take_in_now()
        return active

    def load(self, execution_id: str) -> Active:
        """Return an execution, read at once if it is not in memory. Raises NotFoundError, UnresolvedError."""
        found = self._rounds.active.get(execution_id)
        return found or self._enlist(self._library.load(execution_id))

    def evict(self, before: float) -> None:
        """Forget executions that got no input since a time."""
        for id in self._rounds.evict(before):
            self._library.children.forget(id)

    def _wanted(self) -> Wanted:
        active = self._rounds.active
        return Wanted(
            [one.execution_id for one in self._rounds.lost],
            sorted(self._missing),
            list((self._postponed | self._arrived).values()) if self.looks else list(self._arrived.values()),
            self._last if self.looks else None,
            [id for id in self.roots if id in active],
        )

    # ---- afterwards

    def _apply(self, wanted: Wanted, found: ReadRows) -> None:
        for request in wanted.arrived:
            self._arrived.pop(request.number, None)
            self._postponed.pop(request.number, None)
        self._postponed |= {request.number: request for request in found.postponed}
        self._missing.difference_update(wanted.loaded)
        if found.last is not None:
            self._last, self.looks = found.last, self.looks or found.has_more
        for number, row in found.dropped:
            self._rounds.drop(number, row)
        for id, read in found.lost.items():
            self._reread(id, read)
        for id, loaded in found.loaded.items():
            self._take(id, loaded)
        for id in found.continued:
            if id in self._rounds.active:
                self._continue(self._rounds.active[id])
        for delivery in found.deliveries:
            self._deliver(delivery)

    def _take(self, id: str, loaded: Loaded | Exception) -> None:
        """Take an execution in that was read, or what another server has made of it."""
        known = self._rounds.active.get(id)
        try:
            if isinstance(loaded, Exception):
                raise loaded
            if known is None:
                self._enlist(loaded)
            elif loaded.row.seq != known.row.seq and known.is_idle and not self._rounds.is_ahead(known):
                self._rounds.reread(known, loaded.row, loaded.state)
        except (NotFoundError, UnresolvedError) as problem:
            _LOG.error("execution %s cannot continue here: %s", id, problem)

    def _enlist(self, loaded: Loaded) -> Active:
        row, program, playbook, state = loaded
        # What has ended needs no secrets any more.
        credentials = Credentials() if state.is_over else self._admission.resolve(playbook.keychain)
        active = self._admission.made(row, program, playbook, state, credentials)
        if not state.is_over:
            self._rounds.enlist(active)
        return active

    def _continue(self, active: Active) -> None:
        # What ran out of time meanwhile is not started again.
        self._rounds.submit(active, TimerDue())
        self._rounds.submit(active, Resume())

    def _reread(self, id: str, read: tuple[Execution, State] | None) -> None:
        """Read an execution again that another server has moved on, and decide on its inputs again."""
        active = self._rounds.active.get(id)
        assert active is not None  # one that lost a race stays in memory
        del self._rounds.lost[active]
        if read is None:  # another execution has its start key
            self._rounds.forget(active)
            return
        # If it exists, it has begun: at another server that took up the same request, or here by a write whose answer
        # was lost.
        starts = [entry for entry in active.inbox if type(entry.input) in CREATING]
        # What a request means depends on the state: those to this execution were read again too.
        foreign = [entry.request for entry in active.inbox if entry.request and entry.request.execution_id != id]
        self._arrived |= {request.number: request for request in foreign}
        active.inbox = [entry for entry in active.inbox if entry not in starts and not entry.request]
        if active.inbox:
            self._rounds.waiting[active] = None
        self._rounds.reread(active, *read)
        for entry in starts:
            if entry.done is not None:
                entry.done(True)

    def _deliver(self, delivery: Delivery) -> None:
        request, to, _, created = delivery
        if created is not None and to not in self._rounds.active:
            self._admission.create(*created)
        active = self._rounds.active.get(to)
        if active is not None:
            self._rounds.deliver(active, _input(active, delivery), request)


def _input(active: Active, delivery: Delivery) -> Input:
    request, to, refused, _ = delivery
    if refused is not None:
        (run, iteration), key = active.waiting_for(request.execution_id)
        return ChildFinished(run, iteration, key, refused)
    if to == request.execution_id and request.action == "child_finished":
        child, outcome = request.data
        (run, iteration), key = active.waiting_for(child)
        return ChildFinished(run, iteration, key, active.offload.readable(outcome))
    return CONTROLS.get(request.action, Continue()) if to == request.execution_id else Continue()
