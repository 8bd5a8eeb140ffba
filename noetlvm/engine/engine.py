"""The embedded engine: one event loop, executions as actors, and one commit for all that was decided in a tick.

A tick lets every actor decide on what has come in for it, writes large results, appends the events of all and commits
once. Only then does it do what they ask for: begin pipelines, start children, ring timers. The machine decides, tools
act; nothing here knows what a step is.

With relaxed durability ticks share a commit as long as nothing goes on in the event loop: then nobody but the machine
has acted, and a process that dies has only decisions to make again. Whatever enters the event loop finds everything
committed, and while it is there each tick commits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from itertools import count, repeat
from time import monotonic
from typing import Any, NamedTuple, cast

from noetlvm.data.event import Event, Recorded
from noetlvm.engine.actor import Actor, Ending
from noetlvm.engine.bundle import Bundle
from noetlvm.engine.children import came_too_late, objection_to, outcome_of, payload_of, refusal
from noetlvm.engine.clock import Clock, SystemClock
from noetlvm.engine.credentials import Credentials, Resolve, Unresolved, no_credentials
from noetlvm.engine.identity import NewIds, child_id, new_ids
from noetlvm.engine.recovery import is_orphan, recovered, wants_snapshot
from noetlvm.engine.worker import Surroundings, Worker
from noetlvm.machine.control import Control, Request
from noetlvm.machine.effects import failure
from noetlvm.machine.loaded import LoadedPlaybook, LoadedProgram
from noetlvm.machine.payload import Offload
from noetlvm.machine.state import Child, State
from noetlvm.results.interface import ResultStore
from noetlvm.store.interface import Action, Append, ConflictError, Execution, ExecutionRequest, Snapshot, Store
from noetlvm.tools.call import Tools, error

MAX_PARALLEL = 32
"""Tools that run at once, unless somebody says otherwise."""

LISTEN_SECONDS = 0.2
"""How often to look for what other processes ask for."""

HOLD_SECONDS = 0.005
"""How long a decision waits at most for others to be committed with, where durability is relaxed."""

_LONG_AGO = float("-inf")

_TICKS_IN_A_ROW = 16
"""Ticks before everybody else in the event loop gets a turn, where nobody is known to wait for one."""

Observer = Callable[[Execution, Sequence[Recorded]], None]
"""Hears of events once they are durable, and how their execution stands."""


class _Asked(NamedTuple):
    """Who waits for a child execution."""

    parent: Actor
    run: int
    iteration: str
    key: str


class NotFound(LookupError):  # noqa: N818 - it says what happened
    """The store has no such execution, or not what is needed to go on with it."""


class BadRequest(ValueError):  # noqa: N818 - it says what happened
    """What an execution was asked for with cannot be recorded."""


class Engine:
    """Runs executions over one store."""

    def __init__(
        self,
        store: Store,
        results: ResultStore,
        tools: Tools,
        *,
        resolve: Resolve = no_credentials,
        clock: Clock | None = None,
        ids: NewIds = new_ids,
        max_parallel: int = MAX_PARALLEL,
        observers: Sequence[Observer] = (),
    ) -> None:
        self.store = store
        self.results = results
        self.clock: Clock = clock or SystemClock()
        self.endings: dict[str, Ending] = {}
        """How the executions ended that nobody but the caller waits for."""
        self._resolve = resolve
        self._ids = ids
        self._observers = observers
        self._actors: dict[str, Actor] = {}
        self._bundles: dict[str, Bundle] = {}
        self._new_bundles: dict[str, bytes] = {}
        """Written together with the first execution that runs them."""
        self._moved: dict[Actor, None] = {}
        self._asked: dict[str, _Asked] = {}
        """Who waits for which child execution, by its identifier."""
        self._holds_back = store.durability == "relaxed"
        self._committed_at = _LONG_AGO
        self._undurable: dict[Actor, None] = {}
        """Who has decided something since the last commit."""
        self._now = 0.0
        """When that was decided: what is committed together happens at one moment."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()
        self._is_stopping = False
        self._failure: BaseException | None = None
        self._around = Surroundings(
            tools, self.clock, asyncio.Semaphore(max_parallel), self._spawn, self._touch, lambda: self._is_stopping
        )

    # ---- executions

    def start(
        self,
        bundle: Bundle,
        payload: dict[str, Any],
        execution_id: str | None = None,
        *,
        ctx: dict[str, Any] | None = None,
    ) -> str:
        """Let the main playbook of a bundle run, and return the identifier of the execution. Raises BadRequest."""
        ctx = ctx or {}
        self._bundles[bundle.id] = bundle
        self._new_bundles[bundle.id] = bundle.data
        objection = objection_to(bundle.program.main, payload, ctx)
        if objection:
            raise BadRequest(objection)
        request = Request(execution_id or self._ids(self.clock.now(), 1)[0], bundle.id, payload, ctx=ctx)
        self._open(bundle.program, bundle.program.main, request)
        return request.execution_id

    def resume(self, execution_id: str) -> str:
        """Go on with an execution that was left; one that has ended only has its ending told.

        A child whose parent has ended without it is cancelled: a crash came before that.
        """
        actor = self._restore(execution_id)
        if not actor.state.is_over:
            if is_orphan(self.store, actor.row):
                actor.inbox.append(actor.control.cancel)
            else:
                # What ran out of time while nobody ran it is not begun again.
                actor.inbox += [actor.control.resume, actor.control.timer]
            self._touch(actor)
            self._cancel_orphans(actor)
        return execution_id

    def ask(self, execution_id: str, action: Action) -> None:
        """Cancel, pause or resume an execution that runs here."""
        actor = self._actors.get(execution_id)
        if actor is not None:
            actor.inbox.append(partial(_ACTIONS[action], self, actor))
            self._touch(actor)

    def meet(self, execution_id: str, action: Action) -> None:
        """Do at once what is asked of an execution that nobody runs. Nothing else moves; the engine is used up."""
        self._is_stopping = True
        self._restore(execution_id)
        self.ask(execution_id, action)
        while self._moved:
            self._tick()
        self._commit()

    async def run(self, *, listens: bool = False) -> None:
        """Drive everything until it has ended, was stopped, or waits for somebody outside whom nobody listens to."""
        listener = asyncio.get_running_loop().create_task(self._listen()) if listens else None
        try:
            await self._drive(listener is not None)
        finally:
            self._is_stopping = True
            left = [*self._tasks, *([listener] if listener else [])]
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
            await self._around.tools.close()

    def stop(self, *, now: bool = False) -> None:
        """Leave off in good order: tools that run may end, nothing new begins. Or `now`, and those are cancelled."""
        self._is_stopping = True
        for actor in self._actors.values():
            for worker in list(actor.workers.values()):
                worker.stop(now=now)
        self._wake.set()

    @property
    def busy(self) -> int:
        """How many tools run."""
        return sum(worker.is_busy for actor in self._actors.values() for worker in actor.workers.values())

    def ending(self, execution_id: str) -> Ending:
        """Return how an execution ended, or stands."""
        found = self.endings.get(execution_id)
        return found or self._actors[execution_id].ending()

    # ---- the loop

    async def _drive(self, listens: bool) -> None:
        ticks = 0
        while self._failure is None:
            if self._moved:
                self._tick()
                ticks += 1
                if self._tasks or (listens and not ticks % _TICKS_IN_A_ROW):
                    self._commit()  # whoever gets a turn, be it to end the run, finds nothing that could be lost
                    await asyncio.sleep(0)
                continue
            self._commit()
            if self._has_nothing_to_wait_for(listens):
                return
            self._wake.clear()
            self.clock.rest(len(self._tasks))
            await self._wake.wait()
        raise self._failure

    def _has_nothing_to_wait_for(self, listens: bool) -> bool:
        if self._is_stopping:
            return not any(actor.workers for actor in self._actors.values())
        return not self._actors or not (self._tasks or listens)

    def _tick(self) -> None:
        moved, self._moved = self._moved, {}
        if not self._undurable:
            self._now = self.clock.now()
        for actor in moved:
            if actor.decide(self._now):
                self._undurable[actor] = None
        if not self._may_wait():
            self._commit()
        for actor in moved:
            self._follow_up(actor)

    def _may_wait(self) -> bool:
        """Tell whether what was decided may be committed together with what is decided next.

        A pipeline that has ended in the event loop leaves `_tasks` only after the tick that takes its last report.
        """
        return self._holds_back and not self._tasks and monotonic() - self._committed_at < HOLD_SECONDS

    def _commit(self) -> None:
        """Make durable whatever was decided, and tell of it."""
        decided, self._undurable = self._undurable, {}
        if not decided:
            return
        batch = [self._append(actor) for actor in decided]
        conflicts = self.store.write(batch, self._new_bundles)
        if conflicts:
            raise ConflictError(f"another process has written to {', '.join(sorted(conflicts))}")
        self._new_bundles.clear()
        if self._holds_back:
            self._committed_at = monotonic()
        for append in batch:
            for observe in self._observers:
                observe(append.execution, append.events)

    def _append(self, actor: Actor) -> Append:
        """Return what an actor has decided as the store takes it."""
        now = self._now
        events, actor.decided = actor.decided, []
        known = actor.state.seq - len(events)
        blobs = actor.control.offload.take_blobs()
        if blobs:
            self.results.put(blobs)
        ids = self._ids(now, len(events))
        recorded = list(map(Recorded, count(known + 1), ids, repeat(now), events))
        met, actor.met = actor.met, []
        acknowledged = [request.number for request in met]
        row, snapshot = actor.project(now), self._snapshot(actor)
        return Append(row, known, recorded, acknowledged=acknowledged, snapshot=snapshot)

    def _snapshot(self, actor: Actor) -> Snapshot | None:
        state = actor.state
        if state.is_over or not wants_snapshot(state.seq, actor.snapshot_seq):
            return None
        actor.snapshot_seq = state.seq
        return Snapshot(state.bundle, state.seq, state.to_data())

    def _follow_up(self, actor: Actor) -> None:
        """Do what an actor asks for, now that its events are committed, or will be before anybody else acts."""
        waiting, actor.waiting = actor.waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)
        control = actor.control
        for thread in control.take_stopped():
            if thread in actor.workers:
                actor.workers[thread].stop(now=True)
        for key in control.take_cancelled():
            self._cancel_child(child_id(key))
        if actor.state.is_over:
            self._close(actor)
            return
        if self._is_stopping:
            return
        # Children first: one that stands too deep is answered at once, and its parent is ready.
        for run, iteration, child in control.take_children():
            self._start_child(_Asked(actor, run, iteration, child.key), child)
        for command in control.take_ready():
            Worker(actor, control.work(command), self._around).begin()
        self._set_timer(actor)

    # ---- opening and closing

    def _open(self, program: LoadedProgram, playbook: LoadedPlaybook, request: Request) -> None:
        refused = None
        try:
            credentials = self._resolve(playbook.keychain)
        except Unresolved as problem:
            credentials, refused = Credentials(), failure("keychain", str(problem))
        row = Execution(
            request.execution_id,
            request.bundle,
            playbook.name,
            playbook.path,
            "running",
            self.clock.now(),
            parent=request.parent,
        )
        actor = self._enlist(program, playbook, State(), credentials, row)
        begin = actor.control.start
        actor.inbox.append(partial(actor.control.refuse, request, refused) if refused else partial(begin, request))
        self._touch(actor)

    def _enlist(
        self, program: LoadedProgram, playbook: LoadedPlaybook, state: State, credentials: Credentials, row: Execution
    ) -> Actor:
        fetch = self.results.get
        offload = Offload(
            playbook.limits.max_payload_bytes, lambda reference: fetch(reference.key), redact=credentials.redact
        )
        credentials.protect(offload)
        actor = Actor(Control(playbook, state, offload), program, credentials, row)
        self._actors[row.execution_id] = actor
        return actor

    def _restore(self, execution_id: str) -> Actor:
        """Return an execution as the store knows it."""
        if execution_id in self._actors:
            return self._actors[execution_id]
        self._commit()  # the store shows nothing of what waits for that
        row = self.store.execution(execution_id)
        if row is None:
            raise NotFound(f"there is no execution {execution_id}")
        program = self._bundle(row.bundle).program
        playbook = program.playbooks[row.path]
        state = recovered(self.store, execution_id, row.bundle)
        # What has ended needs no secrets any more.
        credentials = Credentials() if state.is_over else self._resolve(playbook.keychain)
        actor = self._enlist(program, playbook, state, credentials, row)
        if state.is_over:
            self._close(actor)
        return actor

    def _bundle(self, id: str) -> Bundle:
        if id not in self._bundles:
            data = self.store.bundle(id)
            if data is None:
                raise NotFound(f"the store has no bundle {id}")
            self._bundles[id] = Bundle.of(data)
        return self._bundles[id]

    def _close(self, actor: Actor) -> None:
        for worker in list(actor.workers.values()):
            worker.stop(now=True)
        if actor.timer is not None:
            actor.timer.cancel()
        if self._actors.pop(actor.execution_id, None) is None:
            return
        asked = self._asked.pop(actor.execution_id, None)
        if asked is None:
            self.endings[actor.execution_id] = actor.ending()
        else:
            self._answer(asked, outcome_of(actor.ending()))

    # ---- children

    def _start_child(self, asked: _Asked, child: Child) -> None:
        """Start the child that a task asks for; or go on with it, if it was started before a crash."""
        id = child_id(asked.key)
        self._commit()  # the parent's wish comes first, and the store shows nothing that waits
        before = self.store.execution(id)
        if before is not None and came_too_late(child, before.ended):
            return
        self._asked[id] = asked
        if before is not None:
            self.resume(id)
            return
        parent = asked.parent
        playbook = parent.program.playbooks.get(child.path)
        refused = refusal(child, playbook, parent.program)
        if playbook is None or refused:
            self._answer(self._asked.pop(id), refused)
            return
        payload = payload_of(child, parent.control.offload)
        objection = objection_to(playbook, payload, {})
        if objection:
            self._answer(self._asked.pop(id), error("input", objection))
            return
        state = parent.state
        request = Request(id, parent.row.bundle, payload, parent.execution_id, state.depth + 1, state.trace)
        self._open(parent.program, playbook, request)

    def _cancel_child(self, id: str) -> None:
        self._asked.pop(id, None)
        self._commit()
        if id in self._actors or self.store.execution(id) is not None:
            self._restore(id)
            self.ask(id, "cancel")

    def _cancel_orphans(self, actor: Actor) -> None:
        """Cancel the children that nobody waits for: a crash may come between giving them up and cancelling them."""
        runs = actor.state.runs.values()
        threads = [thread for run in runs for thread in run.threads.values()]
        awaited = {child_id(thread.child.key) for thread in threads if thread.child}
        for row in self.store.executions(parent=actor.execution_id):
            if row.ended is None and row.execution_id not in awaited:
                self._cancel_child(row.execution_id)

    def _answer(self, asked: _Asked, outcome: dict[str, Any]) -> None:
        parent = asked.parent
        readable = {**outcome, "result": parent.control.offload.readable(outcome["result"])}
        told = partial(parent.control.child_finished, asked.run, asked.iteration, asked.key, readable)
        parent.inbox.append(told)
        self._touch(parent)

    # ---- time, and the world outside

    def _set_timer(self, actor: Actor) -> None:
        due = actor.control.next_timer()
        if due == actor.due:
            return
        if actor.timer is not None:
            actor.timer.cancel()
        actor.due, actor.timer = due, None if due is None else self._spawn(self._ring(actor, due))

    async def _ring(self, actor: Actor, due: float) -> None:
        await self.clock.sleep(due - self.clock.now())
        actor.due = actor.timer = None
        actor.inbox.append(actor.control.timer)
        self._touch(actor)

    async def _listen(self) -> None:
        """Look for what other processes ask for. It is asked in real time, whatever the clock says."""
        seen = 0
        while True:
            for request in self.store.requests(after=seen):
                seen = request.number
                self._hear(request)
            await asyncio.sleep(LISTEN_SECONDS)

    def _hear(self, request: ExecutionRequest) -> None:
        actor = self._actors.get(request.execution_id)
        if actor is not None:
            actor.met.append(request)
            self.ask(request.execution_id, cast("Action", request.action))

    def _touch(self, actor: Actor) -> None:
        self._moved[actor] = None
        self._wake.set()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        self._commit()  # what goes on in the event loop may be seen by the world
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._failure = task.exception()
        self._wake.set()

    def _cancel(self, actor: Actor) -> list[Event]:
        return actor.control.cancel()

    def _pause(self, actor: Actor) -> list[Event]:
        return actor.control.pause()

    def _resume(self, actor: Actor) -> list[Event]:
        return actor.control.resume()


_ACTIONS: dict[Action, Callable[[Engine, Actor], list[Event]]] = {
    "cancel": Engine._cancel,
    "pause": Engine._pause,
    "resume": Engine._resume,
}
