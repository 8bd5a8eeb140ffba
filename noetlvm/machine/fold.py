"""Folds the log: the only place that changes state, one handler per event.

It never decides. Every choice is recorded in the event; what follows from it without a choice, such as which iteration
of a loop opens next, is computed here, so that it needs no event of its own.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from typing import Any

from noetlvm.data.event import Event, moment, step_run_id, task_run_id
from noetlvm.language.events import BOUNDARY, EventName
from noetlvm.machine.payload import rough_bytes
from noetlvm.machine.state import FAILURES_LISTED, Attempt, Child, FrameState, LoopRun, Run, State, Thread, Token, View


def apply(state: State, event: Event, at: float) -> None:
    """Apply an event that was recorded at that time."""
    state.seq += 1
    state.now = at
    HANDLERS[event.name](state, event)


# ---- the execution


def _requested(state: State, event: Event) -> None:
    data = event.data
    state.execution_id, state.bundle, state.path = data["execution"], data["bundle"], data["path"]
    state.parent, state.depth = data.get("parent", ""), data.get("depth", 0)
    state.trace = data.get("trace") or state.parent or state.execution_id
    state.returns = data.get("returns", "")
    state.status = "requested"


def _retried(state: State, event: Event) -> None:
    """Reopen the state as that of another execution, without what the failed runs left in it."""
    data = event.data
    state.execution_id = state.trace = data["execution"]
    state.bundle, state.retried_from = data["bundle"], data["retried_from"]
    state.parent, state.depth = "", 0
    state.status, state.since, state.final_given = "running", state.now, False
    state.failures, state.failure_count = [], 0
    state.counts = [count - undone for count, undone in zip(state.counts, data["undone"], strict=True)]


def _evaluated(state: State, event: Event) -> None:
    error = event.data.get("error")
    if error:
        _fail(state, {"error": error})


def _started(state: State, event: Event) -> None:
    state.workload = event.data["workload"]
    state.since = state.now
    state.status = "running"


def _finished(state: State, _event: Event) -> None:
    """The last event has the ending; until then the execution is running."""
    for left in (state.runs, state.children):  # logs from before a cancellation recorded the end of every open run
        left.clear()


def _processed(state: State, event: Event) -> None:
    state.status = event.data["status"]
    state.paused = False


def _paused(state: State, _event: Event) -> None:
    state.paused = True


def _resumed(state: State, _event: Event) -> None:
    state.paused = False


def _cancelled(state: State, _event: Event) -> None:
    """Let nothing move any more; the runs that are open remain until their ends are recorded (S21)."""
    for number in state.ended:
        del state.runs[number]
    for waiting in (state.tokens, state.untested, state.unstarted, state.complete, state.ended):
        waiting.clear()
    state.status, state.paused = "cancelling", False


def _patched(state: State, event: Event) -> None:
    patch, before = event.data["patch"], state.view
    ctx = {**before.ctx, **patch}
    if _writes_earlier(state, event.run, patch):
        ctx = dict(sorted(ctx.items(), key=lambda item: state.writers[item[0]]))
    state.view = View(ctx, before.results)
    if state.ctx_size is not None:
        state.ctx_size.write(patch)
    thread = state.thread(event.run, event.iteration)
    if thread is not None:
        _overlay(thread, before, state.view, patch)
    _test_gates(state)


def _writes_earlier(state: State, number: int, patch: dict[str, Any]) -> bool:
    """Note the first writes of keys; return whether a key has to move in front of others.

    Keys stand in the order of the runs that first wrote them, whichever of concurrent runs came first (S65).
    """
    run = state.runs.get(number)
    if run is not None:
        run.patches += 1
    known, last = state.writers, next(reversed(state.ctx), None)
    writes = {key: [number, run.patches if run else 0, place] for place, key in enumerate(patch)}
    earlier = {key: write for key, write in writes.items() if key not in known or write < known[key]}
    if earlier:
        state.writers = {**known, **earlier}
    return bool(earlier) and last is not None and (last in earlier or min(earlier.values()) < known[last])


def _overlay(thread: Thread, before: View, after: View, patch: dict[str, Any]) -> None:
    """Let a thread see its own write, and no other that was made since it opened (S57)."""
    seen = thread.view
    ctx = after.ctx if seen.ctx is before.ctx else {**seen.ctx, **patch}
    thread.view = View(ctx, seen.results)


def _test_gates(state: State) -> None:
    """Have all waiting tokens tested again: `ctx` has changed or a step has ended (S30)."""
    if len(state.untested) < len(state.tokens):  # most often none was denied, and there may be very many
        state.untested = dict.fromkeys(state.tokens)


def _fail(state: State, failure: dict[str, Any]) -> None:
    state.failure_count += 1
    insort(state.failures, failure, key=_failure_position)
    del state.failures[FAILURES_LISTED:]


def _failure_position(failure: dict[str, Any]) -> tuple[int, tuple[int, ...]]:
    """Order failures by step run and iteration, so that the order is the same under every schedule (S65)."""
    return failure.get("run", 0), indices(failure.get("iteration") or "")


# ---- tokens


def _enqueued(state: State, event: Event) -> None:
    data = event.data
    is_final = data.get("final", False)
    sender = state.last_boundary if event.run else data.get("event")
    _put_token(state, data["token"], Token(data["step"], data["args"], sender, is_final))
    state.final_given = state.final_given or is_final


def _put_token(state: State, number: int, token: Token) -> None:
    state.last_token = number
    state.tokens[number] = token
    state.untested[number] = None


def _denied(state: State, event: Event) -> None:
    number = event.data["token"]
    state.tokens[number] = state.tokens[number]._replace(is_denied=True)
    state.untested.pop(number, None)


def _rejected(state: State, event: Event) -> None:
    del state.tokens[event.data["token"]]
    state.untested.pop(event.data["token"], None)
    state.counts[2] += 1
    error = event.data.get("error")
    if error:
        _fail(state, {"step": event.data["step"], "error": error})


def _scheduled(state: State, event: Event) -> None:
    data = event.data
    if "lease" in data:
        _replace_lease(state, event)
        return
    token = state.tokens.pop(data["token"])
    state.untested.pop(data["token"], None)
    run = state.runs[event.run] = Run(token.step, token.args, token.final, state.view)
    state.last_run = event.run
    form = data.get("form")
    if form is None:
        _open_thread(state, event.run, run, "", state.view)
    elif form == "loop":
        state.unstarted[event.run, ""] = None


def _routed(state: State, event: Event) -> None:
    run = state.runs.pop(event.run)
    del state.ended[event.run]
    boundary = state.last_boundary = run.boundary or {}
    for token in event.data.get("tokens", ()):  # logs from before every token had an event of its own
        _put_token(state, token["id"], Token(token["step"], token["args"], boundary, False))
    if boundary["status"] == "error":
        _take_failure(state, event, run)
    elif run.step == state.returns:
        state.result = boundary.get("result")
    elif not event.data["arcs"] and not state.returns:
        place = event.data.get("place", state.result_place)
        if place >= state.result_place:
            state.result, state.result_place = boundary.get("result"), place
    error = event.data.get("error")
    if error:
        _fail(state, {"step": run.step, "run": event.run, "error": error})


def _take_failure(state: State, event: Event, run: Run) -> None:
    if event.data.get("handled"):
        return
    boundary = run.boundary or {}
    failure = {"step": run.step, "run": event.run, "error": boundary["error"]}
    iteration = boundary["data"].get("failed_iteration")
    _fail(state, failure | ({"iteration": iteration} if iteration is not None else {}))


# ---- leases and threads


def _touch(state: State, number: int, path: str, thread: Thread | None) -> None:
    """Note what a thread needed before the change that follows."""
    state.touched.setdefault((number, path), thread.offer if thread else None)


def _open_thread(state: State, number: int, run: Run, path: str, view: View, opens: float = 0.0) -> None:
    _touch(state, number, path, None)
    lease = next((lease for unit, lease in run.leases.items() if covers(unit, path)), 1)
    run.threads[path] = Thread(view, lease, opens)


def _close_thread(state: State, number: int, run: Run, path: str) -> None:
    thread = run.threads.pop(path, None)
    if thread is not None:
        _touch(state, number, path, thread)
        state.children.pop((number, path), None)


def _replace_lease(state: State, event: Event) -> None:
    """Give all threads of a unit the next lease: their holder is gone."""
    run, unit, lease = state.runs[event.run], event.iteration, event.data["lease"]
    run.leases[unit] = lease
    for path, thread in run.threads.items():
        if covers(unit, path):
            _touch(state, event.run, path, thread)
            thread.lease = lease


def covers(unit: str, path: str) -> bool:
    """Return whether a unit, the part of a run that one lease covers, contains an iteration."""
    return not unit or path == unit or path.startswith(f"{unit}.")


def _step_started(state: State, event: Event) -> None:
    state.runs[event.run].since = state.now


def _iteration_started(state: State, event: Event) -> None:
    thread = state.thread(event.run, event.iteration)
    if thread is not None:  # an iteration that contains a loop has no thread
        thread.started = True


def _task_started(state: State, event: Event) -> None:
    thread = state.runs[event.run].threads[event.iteration]
    thread.reported = Attempt(event.task, event.attempt, False, event.label, state.now)
    child = event.data.get("child")
    if child:
        _leave(state, event, thread)
        thread.child, thread.answer = _child(state, event, child), None
        state.children[event.run, event.iteration] = None


def _leave(state: State, event: Event, thread: Thread) -> None:
    """End the lease of a worker that leaves its thread: what it might still report is stale."""
    _touch(state, event.run, event.iteration, thread)
    thread.lease += 1


def _child(state: State, event: Event, wanted: dict[str, Any]) -> Child:
    run_id = task_run_id(state.execution_id, event.run, event.iteration, event.task)
    timeout = wanted.get("timeout")
    due = None if timeout is None else state.now + timeout
    key, workload = f"{run_id}.{event.attempt}", wanted.get("workload") or {}
    returns = wanted.get("return_step", "")
    return Child(key, wanted["path"], wanted.get("version"), workload, due, returns)


def _child_finished(state: State, event: Event) -> None:
    thread = state.runs[event.run].threads[event.iteration]
    _touch(state, event.run, event.iteration, thread)
    duration = thread.reported.meta(state.now)["duration_ms"]
    thread.answer = event.data["outcome"] | {"meta": {"duration_ms": duration}}
    state.children.pop((event.run, event.iteration), None)


def _task_done(state: State, event: Event) -> None:
    run, data = state.runs[event.run], event.data
    thread = run.threads[event.iteration]
    if "cancelled" in data:  # it may wait for a child, which is cancelled too
        _touch(state, event.run, event.iteration, thread)
    thread.reported = Attempt(event.task, event.attempt, True, event.label, state.now)
    thread.child = thread.answer = None
    if data.get("again"):
        return  # the next worker needs its result, which is not recorded, and runs it again
    frame = thread.frame
    frame.pc, frame.task, frame.label, frame.attempt = data["pc"], event.task, event.label, event.attempt
    _resume_names(frame, data)
    outcome = data["outcome"]
    frame.waiting = None
    if data["do"] == "retry":
        frame.waiting = data.get("wait_s", 0)
    elif data["do"] in ("continue", "jump", "break"):
        frame.prev, frame.masked = outcome.get("result"), data.get("masked", False)
        if "bound" in data:
            frame.labels = {**frame.labels, event.label: [frame.prev, frame.masked]}
    if "iter" in data:
        frame.iter = {**frame.iter, **data["iter"]}
    if "rounds" in data:
        frame.rounds = data["rounds"]
    if "ctx" in data:
        _store_patch(run, event.iteration, data["ctx"])
        thread.view = View({**thread.view.ctx, **data["ctx"]}, thread.view.results)
    if data.get("suspended"):
        # By the time of the log: the clock of a worker may be another.
        _leave(state, event, thread)
        thread.opens, frame.waiting = state.now + data["wait_s"], 0


def _resume_names(frame: FrameState, data: dict[str, Any]) -> None:
    """After a wait between rounds, templates see the task before it."""
    before = data.get("resumes")
    frame.resumes = before if data["do"] == "retry" else None
    if before and data["do"] != "retry":
        frame.label, frame.attempt = before["task"], before["attempt"]
        frame.waits += 1


# ---- loops


def _loop_started(state: State, event: Event) -> None:
    run, path = state.runs[event.run], event.iteration
    state.unstarted.pop((event.run, path), None)
    loop = run.loops[path] = LoopRun(event.data)
    if loop.parallel and parallel_around(run, path) is None:
        loop.base = state.view if path else run.view
    _open_iterations(state, event.run, path)
    if not loop.total:
        state.complete[event.run, path] = None


def _open_iterations(state: State, number: int, path: str) -> None:
    """Open iterations up to the loop's width, in order; of a run that is to fail, those before the failed one only."""
    run = state.runs[number]
    loop = run.loops[path]
    while loop.next < loop.total and loop.next - loop.ended < loop.width:
        inner = f"{path}.{loop.next}" if path else str(loop.next)
        if not goes_on(run, inner):
            return
        loop.next += 1
        if loop.leaf:
            _open_thread(state, number, run, inner, visible(state, run, inner), _next_start(state, loop))
        else:
            state.unstarted[number, inner] = None


def _next_start(state: State, loop: LoopRun) -> float:
    """Return when the next iteration of a loop may begin by its rate (S53); 0: at once. It follows from the log."""
    if loop.rate is None:
        return 0.0
    most, per = loop.rate
    starts = loop.starts
    starts.append(state.now if len(starts) < most else max(state.now, starts[-most] + per))
    del starts[:-most]
    return starts[-1]


def _iteration_done(state: State, event: Event) -> None:
    run, data = state.runs[event.run], event.data
    around, index = split(event.iteration)
    loop = run.loops[around]
    stored = data.get("stored")
    if stored:
        loop.stored.append([stored["at"], stored["results"], stored.get("patches")])
        for at in stored["at"]:
            loop.results[at] = None
            loop.patches.pop(at, None)
            loop.bytes -= loop.sizes.pop(at)
    loop.sizes[index] = size = held_bytes(loop, index, data)
    loop.bytes += size
    loop.results[index] = data.get("result")
    if "ctx" in data:
        _store_patch(run, event.iteration, data["ctx"])
    inner = run.loops.pop(event.iteration, None)
    loop.ok += inner.ok if inner else 1
    loop.failed += inner.failed if inner else 0
    _end_iteration(state, event, loop)
    _continue_loop(state, event.run, around)


def held_bytes(loop: LoopRun, index: int, data: dict[str, Any]) -> int:
    """Estimate the bytes that an ended iteration adds to the state of its loop."""
    return rough_bytes(data.get("result")) + rough_bytes(data.get("ctx") or loop.patches.get(index))


def _iteration_failed(state: State, event: Event) -> None:
    run = state.runs[event.run]
    around, _ = split(event.iteration)
    loop = run.loops[around]
    if event.data.get("cancelled"):
        _cancel_iteration(state, event, loop)  # its run is about to fail, so no other opens in its place
        return
    loop.failed += 1
    _, index = split(event.iteration)
    loop.failures[index] = event.data["error"]
    if loop.parallel:
        loop.patches.pop(index, None)  # what a failed iteration wrote does not count (S60)
    is_fatal = not loop.tolerant or event.data.get("fatal")
    if is_fatal and goes_on(run, event.iteration):
        run.failure = [event.iteration, event.data["error"]]
        _drop_pending(state, event.run, run)
        state.complete[event.run, ""] = None
    _end_iteration(state, event, loop)
    _continue_loop(state, event.run, around)


def _cancel_iteration(state: State, event: Event, loop: LoopRun) -> None:
    inner = state.runs[event.run].loops.pop(event.iteration, None)
    if inner is not None:
        loop.ok += inner.ok
        loop.failed += inner.failed
    _end_iteration(state, event, loop)


def _end_iteration(state: State, event: Event, loop: LoopRun) -> None:
    run, key = state.runs[event.run], (event.run, event.iteration)
    _close_thread(state, event.run, run, event.iteration)
    for pending in (state.unstarted, state.complete):
        pending.pop(key, None)
    loop.ended += 1


def _continue_loop(state: State, number: int, path: str) -> None:
    """Open the next iterations after one has ended; note that there are none."""
    _open_iterations(state, number, path)
    run = state.runs[number]
    loop = run.loops[path]
    if loop.ended == loop.total and goes_on(run, path):
        state.complete[number, path] = None


def goes_on(run: Run, path: str) -> bool:
    """Return whether an iteration may open, start and end: it comes before the one that fails the run, if one does.

    So the failure that is named at the end is the first in order, whatever failed first in time (S27, S65).
    """
    if run.failure is None:
        return True
    mine = indices(path)
    return mine < indices(run.failure[0])[: len(mine)]


def _store_patch(run: Run, path: str, patch: dict[str, Any]) -> None:
    """Store what an iteration wrote to `ctx` with the nearest parallel iteration around it."""
    place = parallel_around(run, path)
    assert place is not None  # elsewhere `ctx.patched` records what was written
    loop, index = place
    loop.patches[index] = {**loop.patches.get(index, {}), **patch}


def parallel_around(run: Run, path: str) -> tuple[LoopRun, int] | None:
    """Return the innermost parallel loop around an iteration, and which of its iterations that is."""
    while path:
        path, index = split(path)
        loop = run.loops[path]
        if loop.parallel:
            return loop, index
    return None


def visible(state: State, run: Run, path: str) -> View:
    """Return what an iteration that opens now sees: inside a parallel loop, the loop's start and its own writes."""
    seen, around = state.view if path else run.view, ""
    for index in indices(path):
        loop = run.loops[around]
        if loop.parallel:
            seen = loop.base if loop.base is not None else seen
            patch = loop.patches.get(index)
            seen = View({**seen.ctx, **patch}, seen.results) if patch else seen
        around = f"{around}.{index}" if around else str(index)
    return seen


def split(path: str) -> tuple[str, int]:
    """Return the iteration around an iteration, and the index within it."""
    around, _, index = path.rpartition(".")
    return around, int(index)


def indices(path: str) -> tuple[int, ...]:
    """Return the indices of an iteration, to compare in order."""
    return tuple(map(int, path.split("."))) if path else ()


# ---- boundary events


_VIEWS = {
    name: {"name": name, "status": str(kind.boundary), "source": str(kind.plane), "entity": str(kind.entity)}
    for name, kind in BOUNDARY.items()
}


def _boundary(state: State, event: Event) -> None:
    number, data = event.run, event.data
    run = state.runs[number]
    run_id = step_run_id(state.execution_id, number)
    run.boundary = view = {
        **_VIEWS[event.name],
        "step": run.step,
        "execution_id": state.execution_id,
        "step_run_id": run_id,
        "entity_id": run_id,
        "seq": state.seq,
        "timestamp": moment(state.now),
        "trace_id": state.trace,
        "data": data,
    }
    for name in ("result", "error", "loop"):
        if name in data:
            view[name] = data[name]
    if event.name == "step.failed":
        state.counts[1] += 1
    else:
        state.counts[0] += 1
        state.view = View(state.ctx, {**state.results, run.step: data.get("result")})
    _close(state, number, run)
    if state.status == "cancelling":
        del state.runs[number]  # nothing is routed any more
        return
    state.ended[number] = None
    _test_gates(state)


def _close(state: State, number: int, run: Run) -> None:
    """Drop everything of a run that was open."""
    for path in list(run.threads):
        _close_thread(state, number, run, path)
    if run.loops or state.unstarted:
        _drop_pending(state, number)
    run.loops, run.failure = {}, None


def _drop_pending(state: State, number: int, but_of: Run | None = None) -> None:
    """Start and end no loops of a run any more, except those that continue."""
    for pending in (state.unstarted, state.complete):
        for key in [key for key in pending if key[0] == number]:
            if but_of is None or not goes_on(but_of, key[1]):
                del pending[key]


HANDLERS: dict[EventName, Callable[[State, Event], None]] = {
    "playbook.execution.requested": _requested,
    "playbook.request.evaluated": _evaluated,
    "workflow.started": _started,
    "token.enqueued": _enqueued,
    "token.denied": _denied,
    "token.rejected": _rejected,
    "step.scheduled": _scheduled,
    "step.started": _step_started,
    "task.started": _task_started,
    "task.done": _task_done,
    "child.finished": _child_finished,
    "ctx.patched": _patched,
    "step.done": _boundary,
    "step.failed": _boundary,
    "loop.started": _loop_started,
    "loop.iteration.started": _iteration_started,
    "loop.iteration.done": _iteration_done,
    "loop.iteration.failed": _iteration_failed,
    "loop.done": _boundary,
    "next.evaluated": _routed,
    "workflow.finished": _finished,
    "playbook.processed": _processed,
    "execution.paused": _paused,
    "execution.resumed": _resumed,
    "execution.cancelled": _cancelled,
    "execution.retried": _retried,
}
"""One for each event of the catalogue, except those that are folded into another."""


class Journal:
    """Collects the events of one decision."""

    __slots__ = ("events", "now", "state")

    def __init__(self, state: State, now: float) -> None:
        self.state = state
        self.now = now
        """When they are recorded."""
        self.events: list[Event] = []

    def record(self, event: Event) -> None:
        apply(self.state, event, self.now)
        self.events.append(event)

    def emit(self, name: EventName, data: dict[str, Any], run: int = 0, iteration: str = "") -> None:
        """Record an event that is about no task."""
        self.record(Event(name, data, run, iteration))
