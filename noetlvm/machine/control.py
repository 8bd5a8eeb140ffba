"""Decides what an execution does: the control plane, as a pure function of its state and its input.

It takes what comes from outside, one method for each kind of input, and returns the events that follow, already applied
to the state. Nothing is performed here: what has to be done once the events are durable is asked for afterwards, by
`take_ready` and its like. Whatever Control remembers besides the state can be thrown away; a new one made over the same
state decides the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any, NamedTuple

from noetlvm.data.encoding import UnencodableError
from noetlvm.data.event import Event
from noetlvm.limits import ARGS_BYTES_MAX, CANCELLED_CHILDREN_TOLD, CHILD_DEPTH_MAX, EVENT_BYTES_MAX
from noetlvm.machine.effects import FAILED, failure
from noetlvm.machine.fold import parallel_around
from noetlvm.machine.journal import Journal
from noetlvm.machine.loaded import LoadedPlaybook, LoadedStep
from noetlvm.machine.loops import visible_ctx
from noetlvm.machine.payload import Offload, TooLarge, fits_event
from noetlvm.machine.reducers import deep_merge
from noetlvm.machine.settling import Settling
from noetlvm.machine.state import Child, Command, FrameState, Run, State, Thread
from noetlvm.machine.time_limits import Deadlines


class Request(NamedTuple):
    """What a run was asked for with."""

    execution_id: str
    bundle: str
    payload: dict[str, Any]
    parent: str = ""
    """Execution that asks, for a child."""
    depth: int = 0
    """How many executions stand above a child."""
    trace: str = ""
    """The uppermost of them."""
    ctx: dict[str, Any] = {}
    """What `ctx` begins with."""


class Work(NamedTuple):
    """Everything that is needed to run a command's pipeline."""

    command: Command
    step: str
    args: dict[str, Any]
    ctx: dict[str, Any]
    iter: dict[str, Any] | None
    """The element, `index` and `parent`; what `set_iter` wrote is in `saved`. None outside a loop."""
    saved: FrameState
    """As the thread stands, not a copy: it changes with what is heard of the thread."""
    answer: dict[str, Any] | None
    """Outcome of the child execution that the pipeline waited for."""


class Control:
    """The control plane of one execution."""

    def __init__(self, net: LoadedPlaybook, state: State, offload: Offload, journal: Journal | None = None) -> None:
        self.net = net
        self.state = state
        self.offload = offload
        self.journal = journal or Journal(state)
        self._settling = Settling(net, self.journal, offload)
        self._answers: dict[str, dict[str, Any]] = {}
        """Outcomes of child executions by key, until the pipeline has told what it made of them."""
        self._parents = {
            (number, path): None
            for number, run in state.runs.items()
            for path, thread in run.threads.items()
            if thread.child
        }
        """Threads that wait for a child, and perhaps some that did."""
        self._asking = dict(self._parents)
        """Those whose child is to be started."""
        self._abandoned: list[str] = []
        """Keys of children to cancel."""
        self._deadlines = Deadlines(net, state)
        self._stopped: list[tuple[int, str]] = []
        """Threads that ended before whoever works on them knows."""

    # ---- input

    def set_time(self, now: float) -> None:
        """Say what time it is: what is decided from now on is recorded with it."""
        self.journal.now = now

    def start(self, request: Request) -> list[Event]:
        """Begin the execution: the workload is merged and the first token waits for its step (S4, S37)."""
        self._request(request)
        self.journal.emit("playbook.request.evaluated", {})
        workload = deep_merge(self.net.workload, request.payload)
        self.journal.emit("workflow.started", {"workload": self.offload.shrink(workload)})
        self._settling.patch_ctx(self.offload.fit(request.ctx, ARGS_BYTES_MAX))
        self._settling.enqueue(self.net.entry_step, {})
        return self.journal.take()

    def refuse(self, request: Request, error: dict[str, Any]) -> list[Event]:
        """Record that a request cannot be run, for instance for want of a credential (S44)."""
        self._request(request)
        self.journal.emit("playbook.request.evaluated", {"error": error})
        self.journal.emit("playbook.processed", {"status": "failed", "failures": self.state.failure_count})
        return self.journal.take()

    def report(self, run: int, iteration: str, lease: int, events: Sequence[Event]) -> list[Event]:
        """Take what a worker tells of its thread. A report under an old lease, and what was told before, is nothing.

        It may tell of tasks, and last of the thread's end: `step.done` or `step.failed`, in a loop
        `loop.iteration.done` or `loop.iteration.failed`.
        """
        if self._held(run, iteration, lease) is None:
            return []
        found = self.state.runs[run]
        ends_now = bool(events) and events[-1].name in _ENDINGS
        for event in events:
            thread = found.threads.get(iteration)
            if thread is None:
                break  # an event of this report has ended it
            is_of_another = event.run != run or event.iteration != iteration
            told = event._replace(run=run, iteration=iteration) if is_of_another else event
            if _is_news(told, thread):
                self._begin(told, found, thread, ends_now)
                take = _REPORTED[event.name] if fits_event(told.data) else Control._refuse
                take(self, told)
        return self.journal.take()

    def is_in_vain(self, run: int, iteration: str) -> bool:
        """Tell whether a thread that nothing was heard of yet belongs to a loop that is to fail (S27)."""
        thread = self._thread(run, iteration)
        return thread is not None and not thread.started and self.state.runs[run].failure is not None

    def give_back(self, run: int, iteration: str, lease: int) -> list[Event]:
        """Take a thread back that its holder has not begun: it is ready again, or cancelled if its loop fails."""
        thread = self._held(run, iteration, lease)
        if thread is not None and not thread.started:
            self.state.opened[run, iteration] = None
        return self.journal.take()

    def child_finished(self, run: int, iteration: str, key: str, outcome: dict[str, Any]) -> list[Event]:
        """Take the outcome of a child execution: the thread that waits for it is ready again."""
        thread = self._thread(run, iteration)
        if thread is not None and thread.child is not None and thread.child.key == key:
            self._answer(run, iteration, key, outcome)
        return self.journal.take()

    def expire(self, run: int, iteration: str, lease: int) -> list[Event]:
        """Replace the lease of a holder that is gone: its threads are ready again, and its reports come too late."""
        if self._held(run, iteration, lease) is not None:
            self.journal.emit("step.scheduled", {"lease": lease + 1}, run, self._step(run).unit(iteration))
        return self.journal.take()

    def timer(self) -> list[Event]:
        """Let time have passed: a step run that is overdue fails, and nobody waits too long for a child."""
        now = self.journal.now
        if self.state.paused or self.state.status != "running":
            return []
        for run in self._deadlines.passed(now):
            self._abandoned += [child.key for parent, _, child in self._children() if parent == run]
            self._stopped += [(run, iteration) for iteration in self.state.runs[run].threads]
            self._settling.time_out(run)
        for run, iteration, child in self._children():
            if child.due is not None and child.due <= now:
                self._answer(run, iteration, child.key, _error_outcome("timeout", "the child took too long"))
                self._abandoned.append(child.key)
        return self.journal.take()

    def pause(self) -> list[Event]:
        """Give out nothing new (S36)."""
        if self.state.status == "running" and not self.state.paused:
            self.journal.emit("execution.paused", {})
        return self.journal.take()

    def resume(self) -> list[Event]:
        """Give out work again."""
        if self.state.paused:
            self.journal.emit("execution.resumed", {})
        return self.journal.take()

    def cancel(self) -> list[Event]:
        """Stop: nothing is given out or taken any more, and children stop too (S36, S43)."""
        if self.state.status == "running":
            keys = [child.key for _, _, child in self._children()]
            self.journal.emit("execution.cancelled", {"children": keys[:CANCELLED_CHILDREN_TOLD]})
            self._abandoned += keys
        return self.journal.take()

    def settle(self) -> list[Event]:
        """Let everything happen that needs no more input. To be called after input, once for as much as there is."""
        self._settling.settle()
        return self.journal.take()

    # ---- effects, to be performed when the events are durable

    def take_ready(self, limit: int | None = None) -> list[Command]:
        """Return threads that became ready since the last time, with their leases; none while paused.

        What was taken and not begun when its loop fails is to be given back (S27).
        """
        state = self.state
        if state.paused or state.status != "running":
            return []
        ready: list[Command] = []
        while state.opened and (limit is None or len(ready) < limit):
            run, iteration = next(iter(state.opened))
            del state.opened[run, iteration]
            if self._is_ready(run, iteration):
                unit = self._step(run).unit(iteration)
                ready.append(Command(run, iteration, state.runs[run].leases.get(unit, 1), unit))
        return ready

    def work(self, command: Command) -> Work:
        """Return what is needed to run a command. It must be of this moment: an old one may be of no thread."""
        run = self.state.runs[command.run]
        thread = run.threads[command.iteration]
        return Work(
            command,
            run.step,
            run.args,
            visible_ctx(self.state, run, command.iteration),
            self._settling.elements.iter(command.run, run, self.net.steps[run.step], command.iteration),
            thread.frame,
            self._answers.get(thread.child.key) if thread.child else None,
        )

    def take_children(self) -> list[tuple[int, str, Child]]:
        """Return child executions to start. One that was started already must not be started again: go by its key."""
        if self.state.paused or not self._asking:
            return []
        asking, self._asking = self._asking, {}
        found = [(run, iteration, child) for run, iteration, child in self._children() if (run, iteration) in asking]
        if self.state.depth < CHILD_DEPTH_MAX:
            return found
        for run, iteration, child in found:
            message = f"executions may stand {CHILD_DEPTH_MAX} deep; does this playbook run itself?"
            self._answer(run, iteration, child.key, _error_outcome("depth", message))
        return []

    def take_cancelled(self) -> list[str]:
        """Return the keys of children to cancel."""
        abandoned, self._abandoned = self._abandoned, []
        return abandoned

    def take_stopped(self) -> list[tuple[int, str]]:
        """Return the threads whose work is to be left off: nothing that it tells counts any more."""
        stopped, self._stopped = self._stopped, []
        return stopped

    def next_timer(self) -> float | None:
        """Return when `timer` has something to do next; not while paused, for then it does nothing."""
        if self.state.paused or not (self._parents or self._deadlines):
            return None
        due = [child.due for _, _, child in self._children() if child.due is not None]
        first = min([*due, self._deadlines.next()])
        return first if first < inf else None

    # ---- threads

    def _step(self, run: int) -> LoadedStep:
        return self.net.steps[self.state.runs[run].step]

    def _thread(self, run: int, iteration: str) -> Thread | None:
        found = self.state.runs.get(run)
        return found.threads.get(iteration) if found else None

    def _held(self, run: int, iteration: str, lease: int) -> Thread | None:
        """Return the thread that a lease covers, if it is the current one."""
        thread = self._thread(run, iteration)
        if thread is None:
            return None
        unit = self._step(run).unit(iteration)
        return thread if self.state.runs[run].leases.get(unit, 1) == lease else None

    def _is_ready(self, run: int, iteration: str) -> bool:
        thread = self._thread(run, iteration)
        return thread is not None and (thread.child is None or thread.child.key in self._answers)

    # ---- children

    def _children(self) -> list[tuple[int, str, Child]]:
        """Return the children that are waited for."""
        found = []
        for run, iteration in list(self._parents):
            thread = self._thread(run, iteration)
            if thread is None or thread.child is None:
                del self._parents[run, iteration]
            elif thread.child.key not in self._answers:
                found.append((run, iteration, thread.child))
        return found

    def _answer(self, run: int, iteration: str, key: str, outcome: dict[str, Any]) -> None:
        self._answers[key] = outcome
        self.state.opened[run, iteration] = None

    # ---- requests and reports

    def _request(self, request: Request) -> None:
        data: dict[str, Any] = {
            "execution": request.execution_id,
            "bundle": request.bundle,
            "path": self.net.path,
            "payload": self.offload.shrink(request.payload),
        }
        if request.ctx:
            data["ctx"] = self.offload.shrink(request.ctx)
        if request.parent:
            data |= {"parent": request.parent, "depth": request.depth, "trace": request.trace}
        self.journal.emit("playbook.execution.requested", data)

    def _begin(self, event: Event, run: Run, thread: Thread, ends_now: bool) -> None:
        """Tell that a run or an iteration has begun, with the first that is heard of it."""
        if run.since is None:
            self.journal.emit("step.started", {}, event.run)
        if event.iteration and not thread.started and not ends_now:
            self.journal.emit("loop.iteration.started", {}, event.run, event.iteration)

    def _take_task_started(self, event: Event) -> None:
        self.journal.tell(event)
        if "child" in event.data:
            self._parents[event.run, event.iteration] = None
            self._asking[event.run, event.iteration] = None

    def _take_task_done(self, event: Event) -> None:
        run = self.state.runs[event.run]
        child = run.threads[event.iteration].child
        if child:
            self._answers.pop(child.key, None)
        if not event.data.get("ctx"):
            self.journal.tell(event)
            return
        # `ctx` of the execution is the server's to change; only a parallel iteration's writes stay with its task.
        data = dict(event.data)
        patch = data.pop("ctx")
        try:
            patch = self.offload.fit(patch, ARGS_BYTES_MAX)
        except (TooLarge, UnencodableError) as error:
            self.journal.tell(event._replace(data=data))
            self._fail_thread(event, failure("limit", f"the task writes too much to `ctx`: {error}"))
            return
        if parallel_around(run, event.iteration):
            self.journal.tell(event._replace(data=data | {"ctx": patch}))
            return
        self.journal.tell(event._replace(data=data))
        problem = self._settling.patch_ctx(patch)
        if problem:
            self._fail_thread(event, problem)

    def _refuse(self, event: Event) -> None:
        """Fail a thread that tells what no event can hold: as its task's outcome, where it tells of one."""
        error = failure("limit", f"`{event.name}` would hold more than {EVENT_BYTES_MAX:,} bytes, or what is no data")
        if event.name == "task.done":
            outcome = {"status": "error", "result": None, "error": error}
            self.journal.tell(event._replace(data={"outcome": outcome, "do": "fail", "pc": FAILED}))
        self._fail_thread(event, error)

    def _fail_thread(self, event: Event, error: dict[str, Any]) -> None:
        name = "loop.iteration.failed" if event.iteration else "step.failed"
        self.journal.emit(name, {"error": error}, event.run, event.iteration)

    def _take_ending(self, event: Event) -> None:
        self.journal.tell(event)

    def _take_iteration_done(self, event: Event) -> None:
        run = self.state.runs[event.run]
        data = self._settling.results.take(event.run, run, event.iteration, event.data)
        self.journal.tell(event._replace(data=data))

    def _take_beginning(self, _event: Event) -> None:
        """`_begin` has told it."""


def _is_news(event: Event, thread: Thread) -> bool:
    """Tell whether a worker may say this, and has not said it before."""
    if event.name in _TASK_EVENTS:
        return (event.task, event.attempt, event.name == "task.done") > thread.heard
    return event.name in (_IN_LOOP if event.iteration else _OUTSIDE_LOOP)


def _error_outcome(kind: str, message: str) -> dict[str, Any]:
    return {"status": "error", "error": failure(kind, message)}


_TASK_EVENTS = frozenset({"task.started", "task.done"})
_ENDINGS = frozenset({"step.done", "step.failed", "loop.iteration.done", "loop.iteration.failed"})
_OUTSIDE_LOOP = frozenset({"step.started", "step.done", "step.failed"})
_IN_LOOP = frozenset({"step.started", "loop.iteration.started", "loop.iteration.done", "loop.iteration.failed"})

_REPORTED: dict[str, Callable[[Control, Event], None]] = {
    "step.started": Control._take_beginning,
    "loop.iteration.started": Control._take_beginning,
    "task.started": Control._take_task_started,
    "task.done": Control._take_task_done,
    "step.done": Control._take_ending,
    "step.failed": Control._take_ending,
    "loop.iteration.done": Control._take_iteration_done,
    "loop.iteration.failed": Control._take_ending,
}
"""What a worker may tell."""
