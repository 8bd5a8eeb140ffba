"""Decides what an execution does: `decide(net, state, input, now, offload)` gives events and effects.

It is a pure function of its arguments, except that it folds the events into `state` as it makes them. It holds no
state of its own: a state folded from the log, or read from a snapshot, decides the same. One input is decided at a time
and settled before the next one (S51). Effects are the difference between what each thread needed before and
after; the caller performs them once the events are durable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any

from noetlvm.data.encoding import UnencodableError
from noetlvm.data.event import Event
from noetlvm.language.events import EventName
from noetlvm.limits import (
    ARGS_BYTES_MAX,
    CANCELLED_CHILDREN_LISTED,
    CHILD_DEPTH_MAX,
    DIAGNOSTICS_LISTED,
    EVENT_BYTES_MAX,
)
from noetlvm.machine.fold import Journal, covers, parallel_around
from noetlvm.machine.instructions import FAILED, failure, shortened
from noetlvm.machine.loaded import LoadedPlaybook
from noetlvm.machine.loops import deep_merge, iter_of, with_stored
from noetlvm.machine.messages import (
    Cancel,
    CancelChild,
    ChildFinished,
    CloseWork,
    Continue,
    Decision,
    Effect,
    Input,
    LeaseLost,
    OpenWork,
    Pause,
    Refuse,
    Released,
    Request,
    Resume,
    Retry,
    Start,
    StartChild,
    StopWork,
    TimerDue,
    WakeAt,
    Work,
    WorkerReport,
)
from noetlvm.machine.payload import Offload, TooLargeError, fits_event
from noetlvm.machine.reads import part
from noetlvm.machine.settling import IsSpent, Settling
from noetlvm.machine.state import Offer, Position, State, Thread
from noetlvm.machine.time_limits import next_due, overdue

TAKE_OVER_SECONDS = 5.0
"""How long a decision that was cut may wait for its continuation before another process provides it."""


def decide(
    net: LoadedPlaybook, state: State, given: Input, now: float, offload: Offload, is_spent: IsSpent | None = None
) -> Decision:
    """Return the events and effects of an input; the events are folded into the state.

    A decision that takes many moves is cut (S62), after a bounded number of them, or earlier where `is_spent`.
    Where it is cut does not matter to the log: the next decision continues with the same move.
    """
    decider = _Decider(net, Journal(state, now), offload, is_spent)
    state.touched = {}
    rest = _INPUTS[type(given)](decider, given)
    return Decision(decider.journal.events, decider.effects(given), rest or ((Continue(),) if decider.is_cut else ()))


def offers(net: LoadedPlaybook, state: State) -> list[Effect]:
    """Return the effects for all threads that are open: of an execution that is resumed, or read from its log."""
    if state.paused or state.status != "running":
        return []
    found: list[Effect] = []
    for number, run in state.runs.items():
        for path, thread in run.threads.items():
            found.append(_needed(net, state, (number, path), thread, again=True))
    return found


def work_for(net: LoadedPlaybook, state: State, run: int, iteration: str, offload: Offload) -> Work | None:
    """Return what a worker needs to run a thread; None if it is not open, or waits for a child."""
    thread = state.thread(run, iteration)
    if thread is None or thread.offer[1]:
        return None
    found = state.runs[run]
    step = net.steps[found.step]
    assert step.pipeline is not None  # a step without one has no threads (S33)
    reads = step.pipeline.reads
    return Work(
        state.execution_id,
        state.bundle,
        net.path,
        found.step,
        run,
        iteration,
        thread.lease,
        found.args,
        part(thread.view.ctx, reads.ctx),
        part(thread.view.results, reads.steps),
        part(state.workload, reads.workload),
        iter_of(found, step, iteration, offload),
        thread.frame,
        thread.answer,
        state.trace,
        tuple(entry.name for entry in net.keychain if reads.keychain is None or entry.name in reads.keychain),
    )


class _Decider(Settling):
    """Takes inputs, and settles what follows from each."""

    __slots__ = ("_cancelled",)

    def __init__(
        self, net: LoadedPlaybook, journal: Journal, offload: Offload, is_spent: IsSpent | None = None
    ) -> None:
        super().__init__(net, journal, offload, is_spent)
        self._cancelled: list[str] = []
        """Keys of children that a timer gave up; others follow from what their threads need."""

    # ---- inputs

    def start(self, given: Start) -> None:
        """Merge the workload and put the first token in front of its step (S4, S37)."""
        request = given.request
        self.journal.record(requested(request, self._net.path, self.offload))
        self.journal.emit("playbook.request.evaluated", {})
        workload = deep_merge(self._net.workload, request.payload)
        self.journal.emit("workflow.started", {"workload": self.offload.shrink(workload)})
        self.patch_ctx(self.offload.fit(request.ctx, ARGS_BYTES_MAX))
        self.enqueue(self._net.entry_step, {})
        self.settle()

    def refuse(self, given: Refuse) -> None:
        for event in refused(given.request, self._net.path, given.error):
            self.journal.record(event)

    def retry(self, given: Retry) -> None:
        """Open the log of a failed execution again, and put back the tokens that its failures took (S56)."""
        head = {"execution": given.execution_id, "bundle": given.bundle, "retried_from": given.retried_from}
        self.journal.emit("execution.retried", head | {"tokens": len(given.tokens), "undone": given.undone})
        for token in given.tokens:
            cause = {} if token.event is None else {"event": self.offload.shrink(token.event)}
            self.enqueue(token.step, token.args, **cause)
        self.settle()

    def report(self, given: WorkerReport) -> tuple[Input, ...]:
        """Accept events of the current lease's holder. Stale and repeated ones change nothing (S35)."""
        all_fit = fits_event([event.data for event in given.events])
        for number, event in enumerate(given.events):
            thread = self._state.thread(given.run, given.iteration)
            if thread is None or thread.lease != given.lease:
                break
            if self.is_cut:
                return Continue(), given._replace(events=given.events[number:])
            if event.run != given.run or event.iteration != given.iteration:
                event = event._replace(run=given.run, iteration=given.iteration)
            if is_news(event, thread):
                self._begin(event, thread)
                accept = _REPORTED[event.name] if all_fit or fits_event(event.data) else _Decider._reject_report
                accept(self, event)
                self.settle()
        return ()

    def child_finished(self, given: ChildFinished) -> None:
        if given.key and self._waits_for(given.run, given.iteration) == given.key:
            outcome = {**given.outcome, "result": self.offload.shrink(given.outcome.get("result"))}
            self._answer(given.run, given.iteration, outcome)

    def replace_lease(self, given: LeaseLost | Released) -> None:
        thread = self._state.thread(given.run, given.iteration)
        if thread is not None and thread.lease == given.lease:
            run = self._state.runs[given.run]
            unit = self._net.steps[run.step].unit(given.iteration)
            # Threads of a unit that waited for children or retries are ahead of the others, and no lease may shrink.
            latest = max(other.lease for path, other in run.threads.items() if covers(unit, path))
            self.journal.emit("step.scheduled", {"lease": latest + 1}, given.run, unit)

    def timer(self, given: TimerDue) -> tuple[Input, ...]:
        state, now = self._state, self.journal.now
        if state.paused or state.status != "running":
            self.settle()
            return ()
        if self.time_out(overdue(self._net, state, now)):
            return (given,)
        for run, iteration in sorted(state.children):
            child = state.runs[run].threads[iteration].child
            if child is not None and child.due is not None and child.due <= now:
                self._answer(run, iteration, _error_outcome("timeout", "the child took too long"))
                self._cancelled.append(child.key)
        self.settle()
        return ()

    def pause(self, _given: Pause) -> None:
        if self._state.status == "running" and not self._state.paused:
            self.journal.emit("execution.paused", {})

    def resume(self, _given: Resume) -> None:
        if self._state.paused:
            self.journal.emit("execution.resumed", {})
        self.settle()

    def cancel(self, _given: Cancel) -> None:
        if self._state.status == "running":
            keys = [self._waits_for(run, iteration) for run, iteration in sorted(self._state.children)]
            self.journal.emit("execution.cancelled", {"children": keys[:CANCELLED_CHILDREN_LISTED]})
            self.settle()

    def go_on(self, _given: Continue) -> None:
        self.settle()

    # ---- effects

    def effects(self, given: Input) -> list[Effect]:
        """Return what follows from the changes of this decision."""
        state = self._state
        withdrawn: list[Effect] = [CancelChild(key) for key in self._cancelled]
        needed: list[Effect] = []
        opens = not state.paused and state.status == "running"
        for position, before in state.touched.items():
            thread = state.thread(*position)
            obsolete = None if before is None else _withdrawn(position, before, thread, given)
            if obsolete is not None:
                withdrawn.append(obsolete)
            if opens and thread is not None and thread.offer != before:
                needed.append(_needed(self._net, state, position, thread))
        state.touched = {}
        if type(given) is Resume:
            needed = offers(self._net, state)
        # A timer is stored, so another process continues a decision that was cut if this one ends before.
        latest = self.journal.now + TAKE_OVER_SECONDS if self.is_cut else inf
        return [*withdrawn, *needed, *_wake(self._net, state, latest)]

    # ---- threads and children

    def _waits_for(self, run: int, iteration: str) -> str:
        thread = self._state.thread(run, iteration)
        return thread.offer[1] if thread else ""

    def _answer(self, run: int, iteration: str, outcome: dict[str, Any]) -> None:
        thread = self._state.runs[run].threads[iteration]
        assert thread.child is not None  # the caller has checked
        attempt, data = thread.reported, {"key": thread.child.key, "outcome": outcome}
        self.journal.record(Event("child.finished", data, run, iteration, attempt.task, attempt.label, attempt.number))

    # ---- requests and reports

    def _begin(self, event: Event, thread: Thread) -> None:
        """Record that a run or an iteration has started, with the first report about it."""
        if self._state.runs[event.run].since is None:
            self.journal.emit("step.started", {}, event.run)
        if event.iteration and not thread.started:
            self.journal.emit("loop.iteration.started", {}, event.run, event.iteration)

    def _task_started(self, event: Event) -> None:
        self.journal.record(event)
        if "child" in event.data and self._state.depth >= CHILD_DEPTH_MAX:
            message = f"executions may be nested {CHILD_DEPTH_MAX} deep; does this playbook run itself?"
            self._answer(event.run, event.iteration, _error_outcome("depth", message))

    def _task_done(self, event: Event) -> None:
        if not event.data.get("ctx"):
            self.journal.record(event)
            return
        # `ctx` of the execution is the server's to change; only a parallel iteration's writes stay with its task.
        data = dict(event.data)
        patch = data.pop("ctx")
        try:
            patch = self.offload.fit(patch, ARGS_BYTES_MAX)
        except (TooLargeError, UnencodableError) as error:
            self.journal.record(event._replace(data=data))
            self._fail_thread(event, failure("limit", f"the task writes too much to `ctx`: {error}"))
            return
        if parallel_around(self._state.runs[event.run], event.iteration):
            self.journal.record(event._replace(data=data | {"ctx": patch}))
            return
        self.journal.record(event._replace(data=data))
        problem = self.patch_ctx(patch, event)
        if problem:
            self._fail_thread(event, problem)

    def _reject_report(self, event: Event) -> None:
        """Fail a thread whose report no event can hold: as its task's outcome, if it is about one."""
        error = failure("limit", f"`{event.name}` would hold more than {EVENT_BYTES_MAX:,} bytes, or what is not data")
        if event.name == "task.done":
            attempt = self._state.runs[event.run].threads[event.iteration].reported
            meta = attempt.meta(self.journal.now) | {"attempt": event.attempt}
            outcome = {"status": "error", "result": None, "error": error, "meta": meta}
            self.journal.record(event._replace(data={"outcome": outcome, "do": "fail", "pc": FAILED}))
        self._fail_thread(event, error)

    def _fail_thread(self, event: Event, error: dict[str, Any]) -> None:
        name: EventName = "loop.iteration.failed" if event.iteration else "step.failed"
        self.journal.emit(name, {"error": error}, event.run, event.iteration)

    def _ended(self, event: Event) -> None:
        self.journal.record(event)

    def _iteration_done(self, event: Event) -> None:
        data = with_stored(self._state.runs[event.run], event.iteration, event.data, self.offload)
        self.journal.record(event._replace(data=data))

    def _started(self, _event: Event) -> None:
        """`_begin` has recorded it."""


def _withdrawn(position: Position, before: Offer, thread: Thread | None, given: Input) -> Effect | None:
    """Return the effect of what a thread no longer needs, if there is any."""
    lease, key = before
    if key:
        return CancelChild(key) if thread is None else None
    if thread is not None and not thread.offer[1]:
        return None
    by_itself = type(given) is WorkerReport and (given.run, given.iteration) == position
    return (CloseWork if by_itself else StopWork)(*position, lease)


def _needed(net: LoadedPlaybook, state: State, position: Position, thread: Thread, *, again: bool = False) -> Effect:
    """Return the effect of what a thread needs now."""
    run, iteration = position
    lease, key = thread.offer
    if key:
        assert thread.child is not None  # the key is its
        return StartChild(run, iteration, thread.child)
    step = net.steps[state.runs[run].step]
    return OpenWork(run, iteration, step.unit(iteration), lease, step.name, step.pool, thread.opens, again)


def _wake(net: LoadedPlaybook, state: State, latest: float = inf) -> Iterable[Effect]:
    is_limited = state.status == "running" and not state.paused
    due = min(next_due(net, state), latest) if is_limited else latest
    return (WakeAt(due),) if due < inf else ()


def is_news(event: Event, thread: Thread) -> bool:
    """Return whether a worker may report an event, and has not done so before."""
    if event.name in _TASK_EVENTS:
        return (event.task, event.attempt, event.name == "task.done") > thread.reported[:3]
    return event.name in (_IN_LOOP if event.iteration else _OUTSIDE_LOOP)


def _error_outcome(kind: str, message: str) -> dict[str, Any]:
    return {"status": "error", "result": None, "error": failure(kind, message)}


_TASK_EVENTS: frozenset[EventName] = frozenset({"task.started", "task.done"})
_OUTSIDE_LOOP: frozenset[EventName] = frozenset({"step.started", "step.done", "step.failed"})
_IN_LOOP: frozenset[EventName] = frozenset(
    {"step.started", "loop.iteration.started", "loop.iteration.done", "loop.iteration.failed"}
)

_REPORTED: dict[EventName, Callable[[_Decider, Event], None]] = {
    "step.started": _Decider._started,
    "loop.iteration.started": _Decider._started,
    "task.started": _Decider._task_started,
    "task.done": _Decider._task_done,
    "step.done": _Decider._ended,
    "step.failed": _Decider._ended,
    "loop.iteration.done": _Decider._iteration_done,
    "loop.iteration.failed": _Decider._ended,
}
"""What a worker may report."""

_INPUTS: dict[type, Callable[[_Decider, Any], tuple[Input, ...] | None]] = {
    Start: _Decider.start,
    Refuse: _Decider.refuse,
    Retry: _Decider.retry,
    WorkerReport: _Decider.report,
    ChildFinished: _Decider.child_finished,
    LeaseLost: _Decider.replace_lease,
    Released: _Decider.replace_lease,
    TimerDue: _Decider.timer,
    Pause: _Decider.pause,
    Resume: _Decider.resume,
    Cancel: _Decider.cancel,
    Continue: _Decider.go_on,
}


def requested(request: Request, path: str, offload: Offload) -> Event:
    """Return the event that an execution's log begins with."""
    data: dict[str, Any] = {
        "execution": request.execution_id,
        "bundle": request.bundle,
        "path": path,
        "payload": offload.shrink(request.payload),
    }
    if request.ctx:
        data["ctx"] = offload.shrink(request.ctx)
    if request.returns:
        data["returns"] = request.returns
    if request.parent:
        data |= {"parent": request.parent, "depth": request.depth, "trace": request.trace}
    return Event("playbook.execution.requested", data)


def refused(request: Request, path: str, error: dict[str, Any]) -> Iterator[Event]:
    """Yield the log of a request that is refused.

    Its payload is left out: as long as the keychain is not resolved, it is unknown which of its values are secret.
    """
    yield requested(request._replace(payload={}, ctx={}), path, Offload())
    yield Event("playbook.request.evaluated", {"error": error})
    yield Event("playbook.processed", {"status": "failed", "failures": 1})


def invalid_playbook(message: str, findings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the error of a request whose playbook does not compile, with its errors."""
    errors = [_short(finding) for finding in findings if finding["severity"] == "error"]
    if errors and not message:
        first = errors[0]
        message = f"{first['path']}:{first['line']}:{first['column']}: {first['code']}: {first['message']}"
        message += f" ({len(errors):,} errors)" if len(errors) > 1 else ""
    return failure("validation", message, findings=errors[:DIAGNOSTICS_LISTED], count=len(errors))


def _short(finding: Mapping[str, Any]) -> dict[str, Any]:
    wanted = ("code", "severity", "path", "line", "column", "message")
    return {name: shortened(value) if isinstance(value := finding[name], str) else value for name in wanted}
