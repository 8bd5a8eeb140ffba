"""Checks what a simulation left behind, by a model of its own that reads logs and playbooks and uses no machine code.

Every invariant has a name and a sentence in `INVARIANTS`; a violation names the invariant, the execution and the event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from noetlvm.data.encoding import encode
from noetlvm.data.event import Event, Recorded
from noetlvm.language.events import EventName
from noetlvm.limits import EVENT_BYTES_MAX
from noetlvm.sim.playbooks import FAILED, NEXT_ROUND, ROUNDS, SUCCEEDED, Document, inlined, tasks_in
from noetlvm.sim.ports import SECRET
from noetlvm.sim.world import History, Scenario, StoredLog

INVARIANTS = {
    "dense": "Events are numbered from 1 without a gap, and the execution's row has the number of the last.",
    "order": "A log begins with the request, and nothing follows the end.",
    "token_once": "A token is made once, consumed once, and by the step that it waited for.",
    "conserved": "At the end every token was consumed or rejected.",
    "gate": "A step with a gate consumes a token only when its gate holds, and drops one only when it does not.",
    "run_once": "A step run has one boundary event and is routed once, after it.",
    "arc_once": "Exactly the arcs fire whose guards hold; each makes one token, with the right args.",
    "finished": "An execution finishes if and only if nothing of it is live, with the status that its failures give.",
    "leases_grow": "Leases of a part of a run only grow, and only while the run is open.",
    "in_flight": "No loop has more iterations open than `max_in_flight` allows.",
    "iterations": "Every iteration of a loop ends once; counts and results add up, in index order.",
    "reduced": "A parallel loop writes to `ctx` what its reducers make of its iterations.",
    "attempts": "Attempts of a task count from 1 and never exceed what its policy allows; each ends at most once.",
    "pace": "The wait before an attempt is at least what the policy says, if no clock was wrong.",
    "rate": "No more iterations of a loop have begun than its `rate` allows since it started, if no clock was wrong.",
    "ctx": "`ctx` of an execution is the fold of its patches.",
    "paused": "A paused execution schedules nothing.",
    "sizes": "No event is larger than the limit.",
    "labels": "Every task event names a task of its step.",
    "secrets": "No secret is in an event, a stored result, a row or a log line.",
    "effects": "A tool runs only after its `task.started` is durable, and again only under a new lease.",
    "children": "Every child was requested by its parent, once; a parent continues with the child's own ending.",
    "requests": "Start requests with one key start one execution, and all get its identifier.",
    "snapshots": "The last snapshot and the events after it make the same state as all events.",
    "replay": "The log, decided again, gives the same log.",
    "alive": "No process ends by an error that its code does not expect.",
    "progress": "Once faults stop, everything ends: executions, commands, requests.",
}

_BOUNDARIES: dict[EventName, str] = {"step.done": "success", "loop.done": "success", "step.failed": "error"}
_CLOCK_FAULTS = frozenset({"clock_jump", "clock_drift", "stopped_worker"})
_LOOP_WIDTH = 32
_SECRET = SECRET.encode()


class Violation(NamedTuple):
    """An invariant that does not hold."""

    invariant: str
    execution: str
    seq: int
    message: str

    def __str__(self) -> str:
        where = f" (execution {self.execution}, event {self.seq})" if self.execution else ""
        return f"{self.invariant}: {self.message}{where}"


def check(scenario: Scenario, history: History) -> list[Violation]:
    """Return every violation, the earliest of each execution first."""
    documents = {document["metadata"]["path"]: document for document in scenario.playbooks}
    found: list[Violation] = []
    for id, log in history.logs.items():
        steady = not _CLOCK_FAULTS.intersection(history.happened)
        found += check_log(documents[log.row.path], log, history.ctx.get(id), is_steady=steady)
    found += _across(scenario, history)
    return found


def check_log(
    document: Document, log: StoredLog, ctx: dict[str, Any] | None = None, *, is_steady: bool = False
) -> list[Violation]:
    """Return what one log breaks; `ctx` is what it should come to, `is_steady`: no clock was wrong.

    Any log may be checked whose playbook has guards, gates and args of the forms that random playbooks have.
    """
    return _LogModel(inlined(document), log, ctx, is_steady=is_steady).violations()


class _Run:
    """A step run as the log shows it."""

    def __init__(self, step: Document, args: dict[str, Any], ctx: dict[str, Any], *, is_final: bool) -> None:
        self.step = step
        self.args = args
        self.ctx = ctx
        self.is_final = is_final
        self.boundary = ""
        self.leases: dict[str, int] = {}
        self.since = 0.0
        """When its outermost loop started."""
        self.loops: dict[str, dict[str, Any]] = {}
        """Headers by the iteration around them."""
        self.started: set[str] = set()
        self.ended: dict[str, Event] = {}
        """Iterations by path, and how each ended."""
        self.attempts: dict[tuple[str, int], tuple[int, bool]] = {}
        """Last attempt of each task run, and whether it has ended."""
        self.waits: dict[tuple[str, int], tuple[float, float]] = {}
        """When each task run may go on: time of its last outcome, and the wait after it."""
        self.patches: dict[str, dict[str, Any]] = {}


class _LogModel:
    def __init__(self, document: Document, log: StoredLog, ctx: dict[str, Any] | None, *, is_steady: bool) -> None:
        self._id = log.row.execution_id
        self._document = document
        self._log = log
        self._state_ctx = ctx
        self._is_steady = is_steady
        self._steps = {step["step"]: step for step in document["workflow"]}
        self._final = document.get("executor", {}).get("spec", {}).get("final_step")
        self._seq, self._now = 0, 0.0
        self._found: list[Violation] = []
        self._tokens: dict[int, tuple[str, dict[str, Any], bool]] = {}
        self._last_token = 0
        self._runs: dict[int, _Run] = {}
        self._last_run = 0
        self._ctx: dict[str, Any] = {}
        self._failures = 0
        self._status = "new"
        self._is_paused = False
        self._promised: list[tuple[str, dict[str, Any]]] = []
        """Tokens of arcs that fired: step and args of those that must come next."""
        self._children: Counter[tuple[int, str, int, int]] = Counter()

    def violations(self) -> list[Violation]:
        for expected, recorded in enumerate(self._log.events, 1):
            self._seq, self._now = recorded.seq, recorded.timestamp
            self._expect(recorded.seq == expected, "dense", f"event {expected} has the number {recorded.seq}")
            self._expect((expected == 1) == (recorded.event.name == _FIRST), "order", "a log begins with its request")
            self._expect(self._status not in _OVER, "order", f"{recorded.event.name} follows the end")
            self._content(recorded)
            if self._promised:
                self._expect(recorded.event.name == "token.enqueued", "arc_once", f"{self._promised} got no token")
            _HANDLERS[recorded.event.name](self, recorded.event)
        self._at_end()
        return self._found

    def _expect(self, holds: object, invariant: str, message: str) -> None:
        if not holds:
            self._found.append(Violation(invariant, self._id, self._seq, message))

    def _content(self, recorded: Recorded) -> None:
        data = encode(recorded.event.data)
        self._expect(len(data) <= EVENT_BYTES_MAX, "sizes", f"{recorded.event.name} has {len(data)} bytes")
        self._expect(_SECRET not in data, "secrets", f"{recorded.event.name} holds a secret")

    def _at_end(self) -> None:
        row = self._log.row
        self._expect(row.seq == len(self._log.events), "dense", f"the row says {row.seq}")
        is_over = self._status in _OVER
        self._expect(is_over == (row.ended is not None), "finished", f"the log ends as {self._status}")
        self._expect(not is_over or row.status == self._status, "finished", f"the row says {row.status}")
        if self._state_ctx is not None:
            self._expect(self._state_ctx == self._ctx, "ctx", f"ctx is {self._state_ctx}, its patches give {self._ctx}")

    # ---- the execution

    def _requested(self, event: Event) -> None:
        self._status = "requested"
        self._ctx = dict(event.data.get("ctx", {}))

    def _evaluated(self, event: Event) -> None:
        self._failures += "error" in event.data

    def _workflow_started(self, _event: Event) -> None:
        self._status = "running"

    def _patched(self, event: Event) -> None:
        self._ctx = {**self._ctx, **event.data["patch"]}
        run = self._runs.get(event.run)
        self._expect(not event.run or (run and not run.boundary), "run_once", "a run that has ended writes to ctx")
        if run is not None and not event.label and not event.iteration:
            self._reduced(run, event.data["patch"])

    def _paused(self, _event: Event) -> None:
        self._expect(not self._is_paused, "paused", "it is paused already")
        self._is_paused = True

    def _resumed(self, _event: Event) -> None:
        self._expect(self._is_paused, "paused", "it is not paused")
        self._is_paused = False

    def _cancelled(self, _event: Event) -> None:
        self._status, self._is_paused = "cancelled by request", False
        self._tokens.clear()
        self._runs.clear()

    def _workflow_finished(self, event: Event) -> None:
        self._expect(not self._tokens, "conserved", f"tokens {sorted(self._tokens)} are left")
        self._expect(not self._runs, "finished", f"runs {sorted(self._runs)} are open")
        by_failures = "failed" if self._failures else "success"
        expected = by_failures if self._status == "running" else "cancelled"
        self._expect(event.data["status"] == expected, "finished", f"{event.data['status']} instead of {expected}")
        self._status = "finished"

    def _processed(self, event: Event) -> None:
        self._expect(self._status in ("finished", "requested"), "order", f"it is processed while {self._status}")
        self._status = event.data["status"]

    # ---- tokens

    def _add_token(self, number: int, step: str, args: dict[str, Any], *, is_final: bool = False) -> None:
        self._expect(number == self._last_token + 1, "token_once", f"token {number} follows {self._last_token}")
        self._last_token = number
        self._tokens[number] = step, args, is_final

    def _enqueued(self, event: Event) -> None:
        data = event.data
        is_final = data.get("final", False)
        if self._promised:
            promised, made = self._promised.pop(0), (data["step"], data["args"])
            self._expect(made == promised, "arc_once", f"an arc makes the token {made} instead of {promised}")
            self._add_token(data["token"], data["step"], data["args"])
            return
        first = self._last_token == 0 and data["step"] == self._document["workflow"][0]["step"]
        last = is_final and data["step"] == self._final and not self._tokens and not self._runs
        self._expect(first or last, "token_once", "a token comes from nowhere")
        self._add_token(data["token"], data["step"], data["args"], is_final=is_final)

    def _take_token(self, number: int, step: str) -> tuple[dict[str, Any], bool]:
        found, args, is_final = self._tokens.pop(number, ("", {}, False))
        self._expect(found == step, "token_once", f"`{step}` takes token {number} of `{found or 'nothing'}`")
        return args, is_final

    def _rejected(self, event: Event) -> None:
        self._take_token(event.data["token"], event.data["step"])
        self._failures += "error" in event.data
        gate = self._gate(event.data["step"])
        if event.data["reason"] == "denied":
            drops = _policy(self._steps[event.data["step"]]).get("admit", {}).get("on_deny") == "drop"
            self._expect(drops and not gate, "gate", "a token is dropped that its gate would admit")
        elif event.data["reason"] == "at_rest":
            self._expect(not self._runs and not gate, "gate", "a token is rejected that could be admitted")

    def _denied(self, event: Event) -> None:
        waits = event.data["token"] in self._tokens and not self._gate(event.data["step"])
        self._expect(waits, "gate", "a token is denied that its gate would admit")

    def _gate(self, step: str) -> bool:
        """Return whether the gate of a step holds: it reads one flag of `ctx`, or there is none."""
        admit = _policy(self._steps[step]).get("admit")
        if admit is None:
            return True
        return bool(self._ctx.get(admit["rules"][0]["when"].removeprefix("{{ ctx.").removesuffix(" }}")))

    def _scheduled(self, event: Event) -> None:
        data = event.data
        if "lease" in data:
            run = self._open_run(event)
            if run is not None:
                known = run.leases.get(event.iteration, 0)
                self._expect(data["lease"] > known, "leases_grow", f"lease {data['lease']} follows {known}")
                run.leases[event.iteration] = data["lease"]
            return
        self._expect(not self._is_paused, "paused", "a step is scheduled while the execution is paused")
        self._expect(event.run == self._last_run + 1, "run_once", f"run {event.run} follows {self._last_run}")
        self._expect(self._gate(data["step"]), "gate", f"`{data['step']}` lets a token in though its gate is closed")
        args, is_final = self._take_token(data["token"], data["step"])
        self._last_run = event.run
        self._runs[event.run] = _Run(self._steps[data["step"]], args, self._ctx, is_final=is_final)

    # ---- runs

    def _open_run(self, event: Event) -> _Run | None:
        run = self._runs.get(event.run)
        invariant = "leases_grow" if "lease" in event.data else "run_once"
        self._expect(run is not None and not run.boundary, invariant, f"{event.name} of a run that is not open")
        return run

    def _boundary(self, event: Event) -> None:
        run = self._runs.get(event.run)
        self._expect(run is not None and not run.boundary, "run_once", "a second boundary event")
        if run is None:
            return
        run.boundary = _BOUNDARIES[event.name]
        self._expect(
            (event.name == "loop.done") <= ("loop" in run.step), "run_once", "a step without a loop ends as one"
        )
        if event.name == "loop.done":
            self._loop_ended(run, event)
        elif event.name == "step.done":
            self._expect("loop" not in run.step, "iterations", "a loop step ends without its loop")

    def _routed(self, event: Event) -> None:
        run = self._runs.pop(event.run, None)
        self._expect(run is not None and run.boundary, "run_once", "a run is routed that has not ended")
        data = event.data
        if run is None:
            return
        self._failures += "error" in data
        arcs = [] if run.is_final else run.step.get("next", {}).get("arcs", [])
        expected = [number for number, arc in enumerate(arcs) if _holds(arc, run)]
        if run.step.get("next", {}).get("spec", {}).get("mode") != "inclusive":
            expected = expected[:1]
        self._expect(data["arcs"] == expected, "arc_once", f"arcs {data['arcs']} fire instead of {expected}")
        self._promised = [
            (arcs[number]["step"], {**run.args, **_rendered(arcs[number].get("args", {}), run.args, self._id)})
            for number in expected
        ]
        handled = run.boundary == "error" and any(arcs[number].get("when") in _READ_EVENT for number in expected)
        self._expect(data.get("handled", False) == handled, "arc_once", "`handled` is wrong")
        self._failures += run.boundary == "error" and not handled

    # ---- tasks

    def _in_run(self, event: Event) -> None:
        self._open_run(event)

    def _task_started(self, event: Event) -> None:
        run = self._task_run(event)
        if run is None:
            return
        key = event.iteration, event.task
        attempt, _ = run.attempts.get(key, (0, True))
        self._expect(event.attempt == attempt + 1, "attempts", f"attempt {event.attempt} follows {attempt}")
        most = _attempts_of(run.step).get(event.label, 1)
        self._expect(event.attempt <= most, "attempts", f"attempt {event.attempt} of `{event.label}`, not {most}")
        run.attempts[key] = event.attempt, False
        if key in run.waits and self._is_steady and "ts" in event.data:
            ended, wait = run.waits[key]
            early = event.data["ts"] < ended + wait - 0.001
            self._expect(not early, "pace", f"it begins {ended + wait - event.data['ts']:.3f} s too early")
        if "child" in event.data:
            self._children[event.run, event.iteration, event.task, event.attempt] += 1

    def _task_done(self, event: Event) -> None:
        run = self._task_run(event)
        if run is None:
            return
        key = event.iteration, event.task
        attempt, has_ended = run.attempts.get(key, (0, True))
        once = attempt == event.attempt and not has_ended
        self._expect(once, "attempts", f"attempt {event.attempt} ends, the last is {attempt}")
        run.attempts[key] = event.attempt, True
        if event.data["do"] == "retry":
            run.waits[key] = event.data["outcome"].get("meta", {}).get("ts", 0.0), event.data.get("wait_s", 0)
        if "ctx" in event.data:
            top = event.iteration.partition(".")[0]
            run.patches[top] = {**run.patches.get(top, {}), **event.data["ctx"]}

    def _task_run(self, event: Event) -> _Run | None:
        run = self._open_run(event)
        if run is not None:
            known = [label for label, _ in tasks_in(run.step)]
            self._expect(event.label in known, "labels", f"`{event.label}` is not a task of `{run.step['step']}`")
            ended = event.iteration in run.ended
            self._expect(not ended, "iterations", f"{event.name} follows the end of iteration {event.iteration}")
        return run

    def _child_finished(self, event: Event) -> None:
        key = event.run, event.iteration, event.task, event.attempt
        self._expect(self._children.pop(key, 0) == 1, "children", "a child ends that nobody waits for")

    # ---- loops

    def _loop_started(self, event: Event) -> None:
        run = self._open_run(event)
        if run is None:
            return
        self._expect(event.iteration not in run.loops, "iterations", "a loop starts twice")
        run.loops[event.iteration] = event.data
        run.since = run.since or self._now
        level = run.step["loop"] if not event.iteration else run.step["loop"]["loop"]
        spec = level["spec"]
        width = spec.get("max_in_flight", _LOOP_WIDTH) if spec["mode"] == "parallel" else 1
        expected = width if "tool" in run.step else 0
        self._expect(event.data["width"] == expected, "in_flight", f"width {event.data['width']}, not {expected}")
        items = event.data["items"]
        size = len(items) if isinstance(items, (list, dict)) else event.data["total"]
        self._expect(event.data["total"] == size, "iterations", f"{event.data['total']} iterations of {size} items")

    def _iteration_started(self, event: Event) -> None:
        run = self._open_run(event)
        if run is None:
            return
        path = event.iteration
        self._expect(path not in run.started | run.ended.keys(), "iterations", f"iteration {path} starts twice")
        run.started.add(path)
        self._rate(run)
        around = path.rpartition(".")[0]
        for loop in (around, around.rpartition(".")[0]) if around else ("",):
            header = run.loops.get(loop)
            self._expect(header is not None, "iterations", f"iteration {path} of a loop that has not started")
            if header is not None:
                depth = loop.count(".") + 2 if loop else 1
                tops = {".".join(one.split(".")[:depth]) for one in run.started if _is_within(one, loop)}
                busy = [one for one in tops if one not in run.ended]
                width = header["width"]
                self._expect(len(busy) <= width, "in_flight", f"{len(busy)} iterations of `{loop}` instead of {width}")

    def _rate(self, run: _Run) -> None:
        """Check that an iteration begins no earlier than the rate of its loop lets as many begin."""
        rate = run.step["loop"].get("spec", {}).get("rate")
        if rate and self._is_steady:
            begun = len(run.started)
            early = run.since + (begun - 1) // rate["max"] * rate["per"] - self._now
            self._expect(early < 0.001, "rate", f"{begun} iterations have begun, the last {early:.3f} s early")

    def _iteration_ended(self, event: Event) -> None:
        run = self._open_run(event)
        if run is None:
            return
        path = event.iteration
        self._expect(path not in run.ended, "iterations", f"iteration {path} ends twice")
        self._expect(path.rpartition(".")[0] in run.loops, "iterations", f"iteration {path} of no loop")
        run.ended[path] = event

    def _loop_ended(self, run: _Run, event: Event) -> None:
        total = run.loops.get("", {"total": 0})["total"]
        result = event.data["result"]
        counts = event.data["loop"]
        if "tool" not in run.step:
            return
        ended = [run.ended.get(str(index)) for index in range(total)]
        self._expect(None not in ended, "iterations", f"{ended.count(None)} of {total} iterations have not ended")
        leaves = [one for path, one in run.ended.items() if path not in run.loops]
        # An iteration that holds a loop fails by itself if its collection or its merge fails.
        own = [one for path, one in run.ended.items() if path in run.loops and one.name == "loop.iteration.failed"]
        ok = sum(one.name == "loop.iteration.done" for one in leaves)
        failed = sum(one.name == "loop.iteration.failed" for one in leaves)
        if not own:
            expected = {"total": ok + failed, "ok": ok, "failed": failed}
            found = {name: counts[name] for name in expected}
            self._expect(found == expected, "iterations", f"the loop counts {found}, its iterations {expected}")
        if isinstance(result, list):
            results = [one.data.get("result") if one else None for one in ended]
            self._expect(result == results, "iterations", f"the loop gives {result}, its iterations {results}")

    def _reduced(self, run: _Run, patch: dict[str, Any]) -> None:
        """Check what a parallel loop of one level writes at its end."""
        loop = run.step.get("loop", {})
        if "loop" in loop or not loop.get("spec", {}).get("policy", {}).get("reducers"):
            return
        reducers = loop["spec"]["policy"]["reducers"]
        good = sorted(int(path) for path, one in run.ended.items() if one.name == "loop.iteration.done")
        writes: dict[str, list[Any]] = {}
        for index in good:
            for key, value in run.patches.get(str(index), {}).items():
                writes.setdefault(key, []).append(value)
        if any(key not in reducers for key in writes):
            return
        expected = {key: _reduce(reducers[key], run.ctx.get(key), values) for key, values in writes.items()}
        self._expect(patch == expected, "reduced", f"the loop writes {patch} instead of {expected}")


def _reduce(reducer: str, start: Any, values: list[Any]) -> Any:
    before = [] if start is None else [start]
    if reducer == "append":
        return [*(start or []), *values]
    if reducer == "count":
        return (start or 0) + len(values)
    return _REDUCERS[reducer]([*before, *values])


_REDUCERS: dict[str, Callable[[list[Any]], Any]] = {
    "sum": sum,
    "max": max,
    "min": min,
    "last": lambda values: values[-1],
    "first": lambda values: values[0],
}


def _is_within(path: str, loop: str) -> bool:
    return not loop or path.startswith(f"{loop}.")


def _policy(step: Document) -> dict[str, Any]:
    found: dict[str, Any] = step.get("spec", {}).get("policy", {})
    return found


def _holds(arc: Document, run: _Run) -> bool:
    guard = arc.get("when", "")
    if guard == ROUNDS:
        return bool(run.args.get("round", 0) < 2)
    return not guard or guard == {"success": SUCCEEDED, "error": FAILED}[run.boundary]


def _rendered(args: dict[str, Any], given: dict[str, Any], execution_id: str) -> dict[str, Any]:
    if args == NEXT_ROUND:
        return {"round": given.get("round", 0) + 1}
    return {name: execution_id if name == "from" else value for name, value in args.items()}


def _attempts_of(step: Document) -> dict[str, int]:
    """Return how many attempts each task of a step may have."""
    found = {}
    for label, task in tasks_in(step):
        rules = task.get("spec", {}).get("policy", {}).get("rules", [])
        given = [rule["then"]["attempts"] for rule in rules if rule.get("then", {}).get("do") == "retry"]
        found[label] = max(given, default=1)
    return found


_READ_EVENT = (SUCCEEDED, FAILED)
_FIRST: EventName = "playbook.execution.requested"
_OVER = ("success", "failed", "cancelled")

_HANDLERS: dict[EventName, Callable[[_LogModel, Event], None]] = {
    _FIRST: _LogModel._requested,
    "playbook.request.evaluated": _LogModel._evaluated,
    "workflow.started": _LogModel._workflow_started,
    "token.enqueued": _LogModel._enqueued,
    "token.denied": _LogModel._denied,
    "token.rejected": _LogModel._rejected,
    "step.scheduled": _LogModel._scheduled,
    "step.started": _LogModel._in_run,
    "task.started": _LogModel._task_started,
    "task.done": _LogModel._task_done,
    "child.finished": _LogModel._child_finished,
    "ctx.patched": _LogModel._patched,
    "step.done": _LogModel._boundary,
    "step.failed": _LogModel._boundary,
    "loop.started": _LogModel._loop_started,
    "loop.iteration.started": _LogModel._iteration_started,
    "loop.iteration.done": _LogModel._iteration_ended,
    "loop.iteration.failed": _LogModel._iteration_ended,
    "loop.done": _LogModel._boundary,
    "next.evaluated": _LogModel._routed,
    "workflow.finished": _LogModel._workflow_finished,
    "playbook.processed": _LogModel._processed,
    "execution.paused": _LogModel._paused,
    "execution.resumed": _LogModel._resumed,
    "execution.cancelled": _LogModel._cancelled,
}


# ---- across executions


def _across(scenario: Scenario, history: History) -> Iterator[Violation]:
    """Check what no single log shows."""
    yield from (Violation("progress", "", 0, text) for text in history.left)
    yield from (Violation("alive", "", 0, f"{name}: {error!r}") for name, error in history.failures)
    yield from (Violation("snapshots", id, 0, "its snapshot leads to another state") for id in history.unlike_snapshots)
    yield from (Violation("replay", id, seq, "it is decided differently") for id, seq in history.differences.items())
    roots = [id for id, log in history.logs.items() if not log.row.parent]
    if len(roots) != len(scenario.starts):
        yield Violation("requests", "", 0, f"{len(scenario.starts)} keys have started {len(roots)} executions")
    for number, ids in history.answers.items():
        if len(ids) > 1 or not ids.issubset(roots):
            yield Violation("requests", "", 0, f"start {number} got {sorted(ids)}")
    yield from _effects(history)
    yield from check_children(history.logs)
    texts = [*history.log_lines, *(repr(log.row) for log in history.logs.values())]
    if any(SECRET in text for text in texts) or any(_SECRET in blob for blob in history.blobs.values()):
        yield Violation("secrets", "", 0, "a stored result, a row or a log line holds a secret")


def _effects(history: History) -> Iterator[Violation]:
    """Check that every tool call follows its durable start, and is repeated only for a new lease."""
    starts: dict[tuple[str, int], int] = {}
    leases: Counter[str] = Counter()
    for id, log in history.logs.items():
        resumed = history.resumed[log.row.trace_id]
        for recorded in log.events:
            event = recorded.event
            run = f"{id}/{event.run}"
            if event.name == "task.started":
                within = f"/{event.iteration}" if event.iteration else ""
                starts[f"{run}{within}#{event.task}", event.attempt] = recorded.seq
                leases[run] = max(leases[run], resumed)
            elif event.name == "step.scheduled" and "lease" in event.data:
                leases[run] += 1
    calls: Counter[tuple[str, int]] = Counter()
    for call in history.calls:
        key = call.key, call.attempt
        id, _, rest = call.key.partition("/")
        run = f"{id}/{rest.partition('#')[0].partition('/')[0]}"
        calls[key] += 1
        if starts.get(key, call.seq + 1) > call.seq:
            yield Violation("effects", id, call.seq, f"`{call.key}` runs before its start is durable")
        if calls[key] > 1 + leases[run]:
            message = f"`{call.key}` runs {calls[key]} times under {1 + leases[run]} leases"
            yield Violation("effects", id, call.seq, message)


def check_children(logs: dict[str, StoredLog]) -> Iterator[Violation]:
    """Yield what the logs of parents and of their children do not agree on."""
    wanted: Counter[str] = Counter()
    for id, log in logs.items():
        wanted[id] = sum("child" in one.event.data for one in log.events if one.event.name == "task.started")
    have = Counter(log.row.parent for log in logs.values() if log.row.parent)
    for parent, number in have.items():
        if number > wanted[parent]:
            yield Violation("children", parent, 0, f"{number} children, {wanted[parent]} were requested")
    for id, log in logs.items():
        parent_log = logs.get(log.row.parent)
        if parent_log is None or log.row.ended is None:
            continue
        for recorded in parent_log.events:
            details = (recorded.event.data.get("outcome") or {}).get("error") or {}
            is_own = (
                recorded.event.name == "child.finished" and (details.get("details") or {}).get("execution_id") == id
            )
            if is_own and log.row.status == "success":
                yield Violation("children", log.row.parent, recorded.seq, "the parent takes a success for a failure")
