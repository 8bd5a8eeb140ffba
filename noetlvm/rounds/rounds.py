"""Decides for the executions in memory, round by round.

`next` decides on the inputs that wait and gives a `Round`: what the store has to learn of it. Nothing it does reads the
store, or waits. After the write, `settle` gives what may happen now; `keep` returns a round that was not written, which
is part of the next. An execution that lost a race to another server gets its inputs back, and is read again before
it decides again; its neighbours are not affected.

Parents and children exchange requests (start, cancel, child_finished), which are rows of the same write: so they may
be on different servers, and a crash in between loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count, repeat
from typing import Any, NamedTuple, TypeAlias

from noetlvm.data.event import Recorded
from noetlvm.machine.decide import decide
from noetlvm.machine.loaded import Bundle
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
    Resume,
    Retry,
    Start,
    StartChild,
    StopWork,
    TimerDue,
    WakeAt,
    WorkerReport,
)
from noetlvm.machine.state import State
from noetlvm.rounds.active import Active, Assign
from noetlvm.rounds.children import ChildRequest, outcome_of
from noetlvm.rounds.identity import NewIds, child_id, new_ids
from noetlvm.rounds.pending import Done, Pending, WaitingInput
from noetlvm.rounds.recovery import SNAPSHOT_EVENTS
from noetlvm.store.interface import Append, Execution, ExecutionRequest

IsSpent: TypeAlias = Callable[[int], bool]
"""Whether a turn is over, and the others in the event loop have theirs."""


class Round:
    """What was decided and has to be written."""

    def __init__(
        self,
        executions: list[Active],
        bundles: Mapping[str, bytes],
        obsolete: Mapping[str, tuple[Execution, list[int]]],
        snapshot_events: int,
    ) -> None:
        self.executions = executions
        self.bundles = bundles
        self.obsolete = obsolete
        """Requests that nothing needs any more, and the executions that acknowledge them: those have ended."""
        self._snapshot_events = snapshot_events
        self.appends: list[Append] = []

    def batch(self, assign: Assign, now: float) -> list[Append]:
        """Return what to write. `assign` chooses workers for commands, which claim them in the same transaction."""
        written = [active for active in self.executions if active.pending.has_rows]
        self.appends = [active.append(assign, now, self._snapshot_events) for active in written]
        return [*self.appends, *(Append(row, row.seq, acknowledged=numbers) for row, numbers in self.obsolete.values())]

    def take_effects(self) -> list[tuple[Active, Effect]]:
        """Return effects to be performed before the write."""
        taken = [(active, effect) for active in self.executions for effect in active.pending.effects]
        for active in self.executions:
            active.pending.effects = []
        return taken


class News(NamedTuple):
    """What is durable now of one execution."""

    active: Active
    row: Execution
    recorded: Sequence[Recorded]


class Settled(NamedTuple):
    """What may happen after a write."""

    news: list[News]
    answers: list[tuple[Done, bool]]
    effects: list[tuple[Active, Effect]]
    has_sent: bool
    """Requests to other executions were written."""


class Rounds:
    """The executions in memory."""

    def __init__(self, ids: NewIds = new_ids, snapshot_events: int = SNAPSHOT_EVENTS) -> None:
        self.active: dict[str, Active] = {}
        self.lost: dict[Active, None] = {}
        """Executions that lost a race and are not read again yet."""
        self.waiting: dict[Active, None] = {}
        """Executions with inputs."""
        self._unwritten: dict[Active, None] = {}
        self._timed: dict[Active, None] = {}
        """Superset of the executions with a timer; pruned by `_timers`."""
        self._bundles: dict[str, bytes] = {}
        """New ones, for the next write."""
        self._obsolete: dict[str, tuple[Execution, list[int]]] = {}
        self._out: Round | None = None
        self.new_ids = ids
        self._snapshot_events = snapshot_events

    # ---- what comes in

    def enlist(self, active: Active) -> None:
        self.active[active.execution_id] = active
        active.credentials.protect(active.offload)

    def store_bundle(self, bundle: Bundle) -> None:
        """Store a bundle with the next write."""
        self._bundles[bundle.id] = bundle.data

    def submit(self, active: Active, given: Input, done: Done | None = None) -> None:
        """Let an execution decide on an input in the next round."""
        active.inbox.append(WaitingInput(given, None, done))
        self.waiting[active] = None

    def deliver(self, active: Active, given: Input, request: ExecutionRequest) -> None:
        """Let an execution answer a stored request."""
        if all(entry.number != request.number for entry in active.inbox):
            active.inbox.append(WaitingInput(given, request))
            self.waiting[active] = None

    def drop(self, number: int, row: Execution) -> None:
        """Acknowledge a request that nothing needs any more, on behalf of an execution that has ended."""
        self._obsolete.setdefault(row.execution_id, (row, []))[1].append(number)

    def reread(self, active: Active, row: Execution, state: State) -> None:
        """Continue an execution from what the store has of it."""
        active.row, active.state = row, state
        active.pending, active.awaited = Pending(), {}
        if state.is_over and not active.inbox:
            self._close(active)

    def forget(self, active: Active) -> None:
        """Drop an execution that does not exist, because another one has its start key."""
        del self.active[active.execution_id]
        for entry in active.inbox:
            if entry.done is not None:
                entry.done(False)
        active.inbox = []
        self.waiting.pop(active, None)

    def evict(self, before: float) -> list[str]:
        """Evict executions that got no input since a time: the next input reads them from the store again.

        Their timers are rows, which every server looks for. Only where the store is shared: else nothing does.
        """
        idle = [one for one in self.active.values() if one.used < before and one.is_idle and one not in self.lost]
        for active in idle:
            del self.active[active.execution_id]
        return [active.execution_id for active in idle]

    # ---- timers

    def collect_due(self, now: float) -> None:
        """Give `TimerDue` to the executions whose timer is due."""
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

    # ---- rounds

    @property
    def has_inputs(self) -> bool:
        return bool(self.waiting or self.lost)

    @property
    def has_unwritten(self) -> bool:
        return bool(self._unwritten or self._obsolete)

    def can_wait(self) -> bool:
        """Return whether all inputs that wait may be left waiting: decisions that were cut, and stored requests."""
        return not self.lost and all(_is_stored(entry) for active in self.waiting for entry in active.inbox)

    def is_ahead(self, active: Active) -> bool:
        """Return whether an execution has decided what is not written: it may lose a race, and decide otherwise."""
        return active in self._unwritten or active in self.lost

    def next(self, now: float, is_spent: IsSpent) -> Round | None:
        """Decide on what waits, until the turn is over; return what is to be written, if there is anything.

        Raises RuntimeError if the round before was neither settled nor returned by `keep`.
        """
        if self._out is not None:
            raise RuntimeError("a round is out")
        waiting, self.waiting = list(self.waiting), {}
        for position, active in enumerate(waiting):
            if position and is_spent(0):
                self.waiting = dict.fromkeys(waiting[position:]) | self.waiting
                break
            self._decide_inbox(active, now, is_spent)
            self._unwritten[active] = None
        if not self._unwritten and not self._obsolete:
            return None
        self._out = Round(list(self._unwritten), dict(self._bundles), dict(self._obsolete), self._snapshot_events)
        return self._out

    def keep(self, round: Round) -> None:
        """Let a round that was not written be part of the next."""
        assert round is self._out
        self._out = None

    def settle(self, round: Round, lost: set[str]) -> Settled:
        """Return what may happen now that a round is written, but for executions that lost a race."""
        self.keep(round)
        self._unwritten = {}
        for bundle in round.bundles:
            self._bundles.pop(bundle, None)
        for id in round.obsolete:
            del self._obsolete[id]
        settled = Settled([], [], [], any(append.sent for append in round.appends))
        appends = {append.execution.execution_id: append for append in round.appends}
        for active in round.executions:
            pending, active.pending = active.pending, Pending()
            active.offload.drop(pending.blobs)
            if active.execution_id in lost:
                active.inbox = [*pending.inputs, *active.inbox]
                self.lost[active] = None
                continue
            settled.answers.extend(pending.answers)
            settled.effects.extend((active, effect) for effect in pending.effects)
            append = appends.get(active.execution_id)
            if append is not None:
                active.row = append.execution
                active.snapshot_seq = append.snapshot.seq if append.snapshot else active.snapshot_seq
                settled.news.append(News(active, append.execution, pending.events[pending.shared :]))
            if active.state.is_over:
                self._close(active)
        return settled

    def _close(self, active: Active) -> None:
        if self.active.get(active.execution_id) is active:  # a request to one that has ended is only acknowledged
            del self.active[active.execution_id]

    # ---- decisions

    def _decide_inbox(self, active: Active, now: float, is_spent: IsSpent) -> None:
        entries, active.inbox = active.inbox, []
        active.used, was_over = now, active.state.is_over
        while entries:
            entry = entries.pop(0)
            accepted = _is_current(entry.input, active.state)
            decision = decide(active.playbook, active.state, entry.input, now, active.offload, is_spent)
            self._record(active, entry, decision, now)
            if entry.done is not None:
                active.pending.answers.append((entry.done, accepted))
            # A decision that was cut continues after what waits behind it: controls and timers come first.
            rest = list(map(WaitingInput, decision.rest))
            if rest or (entries and is_spent(0)):
                entries.sort(key=_is_report)  # a cancellation does not wait behind thousands of reports
                active.inbox = [*entries, *rest, *active.inbox]
                self.waiting[active] = None
                break
        active.pending.blobs = active.offload.blobs()
        if active.state.is_over and not was_over and active.row.parent:
            _send_ending(active)

    def _record(self, active: Active, entry: WaitingInput, decision: Decision, now: float) -> None:
        """Note what an input has led to: its events with their time and numbers, and its effects as rows."""
        pending, events = active.pending, decision.events
        pending.inputs.append(entry)
        if events:
            first = active.state.seq - len(events) + 1
            fields = zip(count(first), self.new_ids(now, len(events)), repeat(now), events, strict=False)
            pending.events += map(_new_recorded, fields)
        active.due = None
        for effect in decision.effects:
            if _ROWS[type(effect)](active, effect):
                pending.effects.append(effect)
            if type(effect) is WakeAt:
                self._timed[active] = None


_new_recorded = partial(tuple.__new__, Recorded)
"""Makes a record of its fields; every event comes here, and `Recorded(…)` takes three times as long."""


# ---- effects as rows: each returns whether something is left to be performed in this process


def _open_work(active: Active, work: OpenWork) -> bool:
    active.pending.open(work)
    return True


def _close_work(active: Active, work: CloseWork | StopWork) -> bool:
    active.pending.close(work)
    return type(work) is StopWork


def _wake_at(active: Active, wake: WakeAt) -> bool:
    active.due = wake.at
    return False


def _request_child(active: Active, start: StartChild) -> bool:
    """Request a child, or its continuation if it was started before: who takes the request up looks which."""
    id = child_id(start.child.key)
    active.awaited[id] = (start.run, start.iteration), start.child.key
    active.pending.sent.append(ExecutionRequest(id, "start", ChildRequest.by(active, start.child).to_data()))
    return False


def _cancel_child(active: Active, cancel: CancelChild) -> bool:
    id = child_id(cancel.key)
    active.awaited.pop(id, None)
    active.pending.sent.append(ExecutionRequest(id, "cancel", active.execution_id))
    return False


def _send_ending(active: Active) -> None:
    """Send the ending of an execution to its parent."""
    data = [active.execution_id, outcome_of(active.ending())]
    active.pending.sent.append(ExecutionRequest(active.row.parent, "child_finished", data))


_ROWS: dict[type, Callable[[Active, Any], bool]] = {
    OpenWork: _open_work,
    CloseWork: _close_work,
    StopWork: _close_work,
    StartChild: _request_child,
    CancelChild: _cancel_child,
    WakeAt: _wake_at,
}


# ---- inputs


def _is_stored(entry: WaitingInput) -> bool:
    """Return whether an input is delivered again when the execution, or the parent that needs it, is resumed."""
    given = entry.input
    is_of_child = type(given) is Start and bool(given.request.parent)
    return entry.request is not None or type(given) is Continue or is_of_child


def _is_report(entry: WaitingInput) -> bool:
    return type(entry.input) in (WorkerReport, ChildFinished)


def _is_current(given: Input, state: State) -> bool:
    """Return whether a report comes from the holder of its thread."""
    if type(given) is not WorkerReport:
        return True
    thread = state.thread(given.run, given.iteration)
    return thread is not None and thread.lease == given.lease


CREATING = (Start, Refuse, Retry)
"""Inputs that create an execution."""

CONTROLS: dict[str, Input] = {"cancel": Cancel(), "pause": Pause(), "resume": Resume()}
"""Controls by the action of a request."""
