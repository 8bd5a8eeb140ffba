"""A model of one execution: reads a log event by event, and says what it breaks.

It uses no code of the machine. What an event must be follows from the playbook and from the events before it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from noetlvm.data.encoding import encode
from noetlvm.data.event import Event, Recorded
from noetlvm.language.events import EventName
from noetlvm.limits import EVENT_BYTES_MAX
from noetlvm.sim.definition import (
    DefinedStep,
    chosen,
    fires,
    is_like,
    level_of,
    reduced,
    rendered,
    waiting_time,
    written,
)
from noetlvm.sim.playbooks import FAILED, SUCCEEDED, Document, inlined
from noetlvm.sim.ports import SECRET
from noetlvm.sim.world import StoredLog

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


def check_log(
    document: Document, log: StoredLog, ctx: dict[str, Any] | None = None, *, is_steady: bool = False
) -> list[Violation]:
    """Return what one log breaks; `ctx` is what it should come to, `is_steady`: no clock was wrong.

    Any log may be checked whose playbook has guards, gates and args of the forms that random playbooks have.
    """
    return _LogModel(inlined(document), log, ctx, is_steady=is_steady).violations()


class _Thread:
    """The pipeline of a run or of an iteration."""

    def __init__(self) -> None:
        self.last = (0, 0)
        """Number of the last task run, and its attempt."""
        self.is_open = False
        self.waits_for = ""
        """Key of the child that has not ended."""
        self.answer: dict[str, Any] | None = None
        """How the child ended."""
        self.label = ""
        self.do = "continue"
        self.prev: Any = None
        self.error: dict[str, Any] | None = None
        self.until = 0.0
        """When the next attempt may begin."""
        self.patch: dict[str, Any] = {}
        """What the last task wrote to `ctx`, until `ctx.patched` records it."""


class _Run:
    """A step run as the log shows it."""

    def __init__(self, step: DefinedStep, token: _Token, number: int, ctx: dict[str, Any]) -> None:
        self.step = step
        self.token = token
        self.number = number
        """Of its token."""
        self.ctx = ctx
        self.boundary = ""
        self.ended_at = 0
        """Number of its boundary event."""
        self.has_started = False
        self.leases: dict[str, int] = {}
        self.since = 0.0
        """When its outermost loop started."""
        self.loops: dict[str, dict[str, Any]] = {}
        """Headers by the iteration around them."""
        self.started: set[str] = set()
        self.ended: dict[str, Event] = {}
        """Iterations by path, and how each ended."""
        self.open: Counter[str] = Counter()
        """Iterations of each loop that have started and not ended."""
        self.threads: dict[str, _Thread] = {}
        self.patches: dict[str, dict[str, Any]] = {}
        """What iterations of parallel loops wrote to `ctx`."""
        self.merged: set[str] = set()
        """Loops whose writes have reached `ctx`."""


class _Token(NamedTuple):
    step: str
    args: dict[str, Any]
    is_final: bool = False
    cause: int = 0
    """Number of the boundary event that made it."""


class _LogModel:
    def __init__(self, document: Document, log: StoredLog, ctx: dict[str, Any] | None, *, is_steady: bool) -> None:
        spec = document.get("executor", {}).get("spec", {})
        guards_success = spec.get("unguarded_arcs") == "success"
        self._id = log.row.execution_id
        self._document = document
        self._log = log
        self._state_ctx = ctx
        self._is_steady = is_steady
        self._steps = {one["step"]: DefinedStep(one, guards_success=guards_success) for one in document["workflow"]}
        self._final = spec.get("final_step")
        self._needs_next = spec.get("no_next_is_error", False)
        self._seq, self._now = 0, 0.0
        self._found: list[Violation] = []
        self._execution = ""
        """Its identifier; before a retry, that of the failed execution."""
        self._origin = ("", "")
        """Path and parent; a retried execution has no parent."""
        self._workload: dict[str, Any] = {}
        self._tokens: dict[int, _Token] = {}
        self._last_token = 0
        self._denied_tokens: set[int] = set()
        self._runs: dict[int, _Run] = {}
        self._last_run = 0
        self._ctx: dict[str, Any] = {}
        self._failures = 0
        self._counts = Counter[str]()
        """Runs that succeeded and failed, tokens that were rejected."""
        self._lost: dict[int, tuple[_Token, str]] = {}
        """Tokens that a retry puts back, and what each counted as."""
        self._status = "new"
        self._is_paused = False
        self._is_final = False
        """The token of the final step has come."""
        self._promised: list[tuple[int, _Token]] = []
        """Tokens of arcs that fired: run, step and args of those that must come next."""
        self._stopped = 0
        """The run that a time limit or a cancellation stops: all that comes until its end is part of that."""

    def violations(self) -> list[Violation]:
        for expected, recorded in enumerate(self._log.events, 1):
            name = recorded.event.name
            self._seq, self._now = recorded.seq, recorded.timestamp
            self._expect(recorded.seq == expected, "dense", f"event {expected} has the number {recorded.seq}")
            self._expect((expected == 1) == (name == _FIRST), "order", "a log begins with its request")
            goes_on = self._status not in _OVER or name == "execution.retried"
            self._expect(goes_on, "order", f"{name} follows the end")
            self._content(recorded)
            if self._promised:
                self._expect(name == "token.enqueued", "arc_once", f"{self._promised} got no token")
            is_held = self._is_paused and name in _DECIDED and "lease" not in recorded.event.data
            self._expect(not is_held, "paused", f"{name} while the execution is paused")
            self._expect_stop(recorded.event)
            try:
                _HANDLERS[name](self, recorded.event)
            except (KeyError, IndexError, ValueError) as error:
                self._expect(False, "content", f"{name} does not say what it must: {error!r}")
        self._at_end()
        return self._found

    def _expect(self, holds: object, invariant: str, message: str) -> None:
        if not holds:
            self._found.append(Violation(invariant, self._id, self._seq, message))

    def _expect_status(self, event: Event, *expected: str) -> None:
        self._expect(self._status in expected, "order", f"{event.name} while it is {self._status}")

    def _expect_stop(self, event: Event) -> None:
        """Check that what is stopped ends without anything in between, and that a cancellation stops all there is."""
        is_stop = "cancelled" in event.data
        together = self._stopped in (0, event.run) and (is_stop or not self._stopped)
        self._expect(together, "stopped", f"{event.name} before the stopped run {self._stopped} has ended")
        if self._status == _CANCELLED:
            self._expect(
                is_stop or event.name == "workflow.finished", "stopped", f"{event.name} of a cancelled execution"
            )

    def _stop(self, run: _Run, event: Event) -> None:
        """Check the end of something that a time limit or a cancellation stops."""
        kind = "cancelled" if self._status == _CANCELLED else "timeout"
        error = event.data.get("error") or event.data["outcome"]["error"]
        self._expect(error["kind"] == kind, "stopped", f"{event.name} with {error} instead of {kind}")
        left = [path for path in _within(event, run) if path in run.started and path not in run.ended]
        self._expect(not left, "stopped", f"{event.name} before the iterations {left} within have ended")
        is_over = event.name == "step.failed"
        self._stopped = 0 if is_over else event.run

    def _content(self, recorded: Recorded) -> None:
        data = encode(recorded.event.data)
        self._expect(len(data) <= EVENT_BYTES_MAX, "sizes", f"{recorded.event.name} has {len(data)} bytes")
        self._expect(_SECRET not in data, "secrets", f"{recorded.event.name} holds a secret")

    def _at_end(self) -> None:
        row = self._log.row
        self._expect(row.seq == len(self._log.events), "dense", f"the row has the event {row.seq}")
        found, expected = (row.execution_id, row.path, row.parent), (self._execution, *self._origin)
        self._expect(found == expected, "content", f"the row is of {found}, its log of {expected}")
        counted = zip(("ok", "failed", "rejected"), (self._counts[kind] for kind in _COUNTS), strict=True)
        counts = {**dict(counted), "failures": self._failures}
        self._expect(row.counts == counts, "finished", f"the row counts {row.counts}, its log {counts}")
        is_over = self._status in _OVER
        self._expect(is_over == (row.ended is not None), "finished", f"the log ends as {self._status}")
        self._expect(not is_over or row.status == self._status, "finished", f"the row has the status {row.status}")
        if self._state_ctx is not None:
            self._expect(self._state_ctx == self._ctx, "ctx", f"ctx is {self._state_ctx}, its patches give {self._ctx}")

    # ---- the execution

    def _requested(self, event: Event) -> None:
        self._status, self._execution = "requested", event.data["execution"]
        self._origin = event.data["path"], event.data.get("parent", "")
        self._workload = {**self._document.get("workload", {}), **event.data["payload"]}

    def _evaluated(self, event: Event) -> None:
        self._expect_status(event, "requested")
        self._status = "refused" if "error" in event.data else "evaluated"
        self._failures += "error" in event.data

    def _workflow_started(self, event: Event) -> None:
        self._expect_status(event, "evaluated")
        workload = event.data["workload"]
        self._expect(workload == self._workload, "content", f"the workload is {workload} instead of {self._workload}")
        self._status = "running"

    def _retried(self, event: Event) -> None:
        self._expect_status(event, "failed")
        source = event.data["retried_from"]
        self._expect(source == self._execution, "content", f"it continues {source} instead of {self._execution}")
        self._status, self._execution, self._failures = "running", event.data["execution"], 0
        self._origin = self._origin[0], ""
        self._is_final = False
        kinds = [kind for _, kind in self._lost.values()]
        undone = [kinds.count(kind) for kind in _COUNTS]
        self._expect(event.data["undone"] == undone, "finished", f"it undoes {event.data['undone']}, not {undone}")
        self._counts.subtract(kinds)
        tokens = [self._lost[number][0] for number in sorted(self._lost)]
        self._promised = [(0, token) for token in tokens if not token.is_final]
        self._lost = {}
        number = event.data["tokens"]
        self._expect(number == len(self._promised), "token_once", f"{number} tokens instead of {len(self._promised)}")

    def _paused(self, event: Event) -> None:
        self._expect_status(event, "running")
        self._expect(not self._is_paused, "paused", "it is paused already")
        self._is_paused = True

    def _resumed(self, _event: Event) -> None:
        self._expect(self._is_paused, "paused", "it is not paused")
        self._is_paused = False

    def _cancelled(self, event: Event) -> None:
        self._expect_status(event, "running")
        threads = [(number, run.threads[path]) for number, run in self._runs.items() for path in run.threads]
        keys = {thread.waits_for for _, thread in threads if thread.waits_for}
        self._expect(set(event.data["children"]) == keys, "children", f"it stops {event.data['children']}, not {keys}")
        self._status, self._is_paused = _CANCELLED, False
        self._tokens.clear()
        self._runs = {number: run for number, run in self._runs.items() if not run.boundary}

    def _workflow_finished(self, event: Event) -> None:
        self._expect_status(event, "running", _CANCELLED)
        self._expect(not self._tokens, "conserved", f"tokens {sorted(self._tokens)} are left")
        self._expect(not self._runs, "finished", f"runs {sorted(self._runs)} are open")
        is_whole = self._is_final or not self._final or self._status != "running"
        self._expect(is_whole, "finished", "its final step has not run")
        by_failures = "failed" if self._failures else "success"
        expected = by_failures if self._status == "running" else "cancelled"
        self._expect(event.data["status"] == expected, "finished", f"{event.data['status']} instead of {expected}")
        self._status = f"finished: {event.data['status']}"

    def _processed(self, event: Event) -> None:
        status, failures = event.data["status"], event.data["failures"]
        expected = "refused" if self._failures and not self._last_token else f"finished: {status}"
        self._expect_status(event, expected)
        self._expect(failures == self._failures, "finished", f"{failures} failures instead of {self._failures}")
        self._status = status

    # ---- tokens

    def _enqueued(self, event: Event) -> None:
        data = event.data
        number = data["token"]
        cause = self._promised[0][1].cause if self._promised else 0
        if not event.run and isinstance(
            made_by := data.get("event", {}), dict
        ):  # else it is large, and stored elsewhere
            cause = made_by.get("seq", 0)
        token = _Token(data["step"], data["args"], data.get("final", False), cause)
        self._expect(number == self._last_token + 1, "token_once", f"token {number} follows {self._last_token}")
        self._tokens[number] = token
        if self._promised:
            promised, made = self._promised.pop(0), (event.run, token)
            self._expect(made == promised, "arc_once", f"an arc makes the token {made} instead of {promised}")
        elif token.is_final:
            is_last = data["step"] == self._final and len(self._tokens) == 1 and not self._runs and not self._is_final
            self._expect(is_last, "token_once", "the token of the final step comes before its time")
            expected = {**dict.fromkeys(_COUNTS, 0), **self._counts, "unhandled": self._failures}
            found = token.args.get("counts")
            self._expect(found == expected, "finished", f"the final step gets the counts {found}, not {expected}")
            self._is_final = True
        else:
            is_first = self._last_token == 0 and token == _Token(self._document["workflow"][0]["step"], {})
            self._expect(is_first and not event.run, "token_once", "a token comes from nowhere")
        self._last_token = number

    def _take_token(self, number: int, step: str) -> _Token:
        token = self._tokens.pop(number, _Token("", {}))
        found = token.step or "nothing"
        self._expect(token.step == step, "token_once", f"`{step}` takes token {number} of `{found}`")
        return token

    def _rejected(self, event: Event) -> None:
        data = event.data
        number, reason = data["token"], data["reason"]
        token = self._take_token(number, data["step"])
        self._failures += "error" in data
        self._counts["rejected"] += 1
        if reason == "at_rest" or "error" in data:
            self._lost[number] = token, "rejected"
        is_admitted = self._gate(data["step"])
        drops = (self._steps[data["step"]].admit or {}).get("on_deny") == "drop"
        if reason == "denied":
            self._expect(drops and not is_admitted, "gate", "a token is dropped that its gate would admit")
        else:
            waits = reason == "at_rest" and not self._runs and not is_admitted and number in self._denied_tokens
            self._expect(waits, "gate", f"a token that could be admitted, or was never denied, is rejected: {reason}")

    def _denied(self, event: Event) -> None:
        number, step = event.data["token"], event.data["step"]
        token = self._tokens.get(number)
        waits = token is not None and token.step == step and not self._gate(step)
        self._expect(waits, "gate", "a token is denied that its gate would admit")
        self._expect(number not in self._denied_tokens, "gate", f"token {number} is denied twice")
        self._denied_tokens.add(number)

    def _gate(self, step: str) -> bool:
        """Return whether the gate of a step holds: it reads one flag of `ctx`, or there is none."""
        admit = self._steps[step].admit
        if admit is None:
            return True
        return bool(self._ctx.get(admit["rules"][0]["when"].removeprefix("{{ ctx.").removesuffix(" }}")))

    def _scheduled(self, event: Event) -> None:
        data = event.data
        if "lease" in data:
            run = self._open_run(event)
            known = run.leases.get(event.iteration, 0)
            self._expect(data["lease"] > known, "leases_grow", f"lease {data['lease']} follows {known}")
            is_part = not event.iteration or (bool(run.loops) and event.iteration not in run.ended)
            self._expect(is_part, "leases_grow", f"iteration {event.iteration} is not open")
            run.leases[event.iteration] = data["lease"]
            return
        self._expect(event.run == self._last_run + 1, "run_once", f"run {event.run} follows {self._last_run}")
        self._expect(self._gate(data["step"]), "gate", f"`{data['step']}` lets a token in though its gate is closed")
        token = self._take_token(data["token"], data["step"])
        self._last_run = event.run
        step = self._steps[data["step"]]
        form = "loop" if step.loops else None if step.has_tool else "routing"
        self._expect(data.get("form") == form, "content", f"`{step.name}` is scheduled as {data.get('form')}")
        self._runs[event.run] = _Run(step, token, data["token"], self._ctx)

    # ---- runs

    def _open_run(self, event: Event) -> _Run:
        """Return the open run of an event. Raises KeyError if there is none."""
        run = self._runs[event.run]
        invariant = "leases_grow" if "lease" in event.data else "run_once"
        self._expect(not run.boundary, invariant, f"{event.name} of a run that has ended")
        return run

    def _step_started(self, event: Event) -> None:
        run = self._open_run(event)
        self._expect(run.step.has_tool and not run.has_started, "run_once", "a run starts twice, or without a tool")
        run.has_started = True

    def _boundary(self, event: Event) -> None:
        run = self._open_run(event)
        run.ended_at = self._seq
        is_loop = bool(run.step.loops)
        left = sorted(run.started - run.ended.keys())
        self._expect(not left, "iterations", f"{event.name} before the iterations {left} have ended")
        busy = sorted(path for path, thread in run.threads.items() if thread.is_open)
        self._expect(not busy, "attempts", f"{event.name} before the tasks of {busy} have ended")
        if event.name == "step.failed":
            run.boundary = "error"
            self._step_failed(run, event)
        else:
            run.boundary = "success"
            self._expect((event.name == "loop.done") == is_loop, "run_once", f"{event.name} of a run of another kind")
            if is_loop:
                self._loop_done(run, event)
            else:
                self._pipeline_done(run, event)
        self._counts[_ENDED_AS[run.boundary]] += 1
        if self._status == _CANCELLED:  # nothing is routed any more
            del self._runs[event.run]

    def _routed(self, event: Event) -> None:
        run, data = self._runs.pop(event.run), event.data
        self._expect(run.boundary, "run_once", "a run is routed that has not ended")
        arcs = [] if run.token.is_final else run.step.arcs
        expected = [number for number, arc in enumerate(arcs) if fires(run.step, arc, run.token.args, run.boundary)]
        if not run.step.is_inclusive:
            expected = expected[:1]
        self._expect(data["arcs"] == expected, "arc_once", f"arcs {data['arcs']} fire instead of {expected}")
        given = run.token.args
        for number in expected:
            args = {**given, **rendered(arcs[number].get("args", {}), given, self._execution)}
            self._promised.append((event.run, _Token(arcs[number]["step"], args, cause=run.ended_at)))
        failed = run.boundary == "error"
        handled = failed and any(arcs[number].get("when") in _READ_EVENT for number in expected)
        self._expect(data.get("handled", False) == handled, "arc_once", "`handled` is wrong")
        is_lost = bool(arcs) and not expected and not failed and self._needs_next
        self._expect(("error" in data) == is_lost, "arc_once", "a run without a next step is an error, or is none")
        self._failures += is_lost or (failed and not handled)
        if run.token.is_final or is_lost or (failed and not handled):
            self._lost[run.number] = run.token, _ENDED_AS[run.boundary]

    # ---- tasks

    def _task_run(self, event: Event) -> tuple[_Run, _Thread]:
        """Return run and thread of an event about a task. Raises KeyError if its run is not open."""
        run, path = self._open_run(event), event.iteration
        self._expect(event.label in run.step.tasks, "labels", f"`{event.label}` is not a task of `{run.step.name}`")
        is_leaf = level_of(path) == len(run.step.loops)
        is_open = is_leaf and (not path or (path in run.started and path not in run.ended))
        self._expect(is_open, "iterations", f"{event.name} outside of an open iteration: `{path}`")
        return run, run.threads.setdefault(path, _Thread())

    def _expect_settled(self) -> None:
        """Check that everything was decided which needed no further input."""
        if not self._is_paused:
            late = [number for number, run in self._runs.items() if run.boundary]
            self._expect(not late, "settled", f"the runs {late} have ended and are not routed")
            late = [number for number in self._tokens if number not in self._denied_tokens]
            self._expect(not late, "settled", f"the tokens {late} were neither admitted nor denied")

    def _task_started(self, event: Event) -> None:
        self._expect_settled()
        run, thread = self._task_run(event)
        self._expect(run.has_started, "run_once", "a task starts before its step")
        task, attempt = thread.last
        expected = (task, attempt + 1) if thread.do == "retry" else (task + 1, 1)
        found = event.task, event.attempt
        self._expect(found == expected, "attempts", f"task run and attempt {found} follow {thread.last}, {thread.do}")
        self._expect(not thread.is_open, "attempts", f"`{event.label}` starts before `{thread.label}` has ended")
        self._expect(thread.do not in _ENDS or not task, "attempts", f"`{event.label}` follows `do: {thread.do}`")
        self._expect(not thread.patch, "ctx", f"{thread.patch} has not reached ctx")
        if thread.do == "retry":
            self._expect(event.label == thread.label, "labels", f"`{event.label}` is an attempt of `{thread.label}`")
            early = thread.until - event.data["ts"]
            self._expect(early < 0.001 or not self._is_steady, "pace", f"it begins {early:.3f} s too early")
        is_child = run.step.tasks[event.label].get("kind") == "playbook"
        self._expect(("child" in event.data) == is_child, "children", "only a task of kind `playbook` has a child")
        thread.last, thread.label, thread.is_open = found, event.label, True
        thread.waits_for = child_key(self._execution, event) if is_child else ""

    def _child_finished(self, event: Event) -> None:
        _, thread = self._task_run(event)
        is_own = thread.is_open and (event.task, event.attempt, event.label) == (*thread.last, thread.label)
        self._expect(is_own and thread.waits_for, "children", "a child ends that nobody waits for")
        key = child_key(self._execution, event)
        self._expect(event.data["key"] == key, "children", f"{event.data['key']} ends instead of {key}")
        thread.waits_for, thread.answer = "", event.data["outcome"]

    def _task_done(self, event: Event) -> None:
        run, thread = self._task_run(event)
        data, path = event.data, event.iteration
        outcome, do = data["outcome"], data["do"]
        once = thread.is_open and (event.task, event.attempt, event.label) == (*thread.last, thread.label)
        self._expect(
            once, "attempts", f"task run {event.task}, attempt {event.attempt} ends, the last is {thread.last}"
        )
        self._expect_meta(outcome, event.attempt)
        if "cancelled" in data:
            self._task_stopped(run, thread, event)
            return
        self._expect(not thread.waits_for, "children", f"it continues before its child {thread.waits_for} has ended")
        self._expect(do in _DONE, "content", f"`do: {do}`")
        answer = thread.answer
        own = answer is None or (outcome["status"], outcome.get("result")) == (answer["status"], answer["result"])
        self._expect(own or "answered" in data, "children", f"its child ended with {answer}, not {outcome}")
        thread.is_open, thread.do, thread.answer = False, do, None
        thread.error = outcome.get("error") if do == "fail" else None
        if do in _PASSES_ON:
            thread.prev = outcome.get("result")
        then = chosen(run.step.tasks[event.label], data.get("answered", outcome), event.attempt)
        if then is not None and event.label in run.step.plain:
            self._expect(do == then["do"], "policy", f"`{event.label}` does {do} instead of {then['do']}")
            wait = waiting_time(then, event.attempt) if do == "retry" else 0
            self._expect(
                data.get("wait_s", 0) == wait, "policy", f"it waits {data.get('wait_s', 0)} s instead of {wait}"
            )
        thread.until = outcome["meta"]["ts"] + data.get("wait_s", 0)
        expected = written((then or {}).get("set_ctx", {}), path)
        around = run.step.parallel_around(path)
        if around:
            found = data.get("ctx", {})
            run.patches[around] = {**run.patches.get(around, {}), **found}
            self._expect(is_like(found, expected), "ctx", f"`{event.label}` writes {found} instead of {expected}")
        else:
            self._expect("ctx" not in data, "ctx", "a write outside of parallel iterations has no event of its own")
            thread.patch = expected

    def _task_stopped(self, run: _Run, thread: _Thread, event: Event) -> None:
        self._stop(run, event)
        found = event.data["outcome"]["status"], event.data["do"]
        self._expect(found == ("error", "fail"), "stopped", f"a task that is stopped ends as {found}")
        thread.is_open, thread.do, thread.waits_for = False, "fail", ""

    def _expect_meta(self, outcome: dict[str, Any], attempt: int) -> None:
        meta = outcome.get("meta", {})
        fits = meta.get("attempt") == attempt and meta.get("duration_ms", -1) >= 0 and meta.get("ts", -1) >= 0
        self._expect(fits, "outcomes", f"the outcome of attempt {attempt} has {meta}")

    def _pipeline_done(self, run: _Run, event: Event) -> None:
        """Check the end of a run or an iteration whose pipeline succeeded."""
        thread = run.threads.get(event.iteration, _Thread())
        is_done = not thread.is_open and thread.do not in ("fail", "retry") and not thread.patch
        self._expect(is_done, "attempts", f"{event.name} while `{thread.label}` is open, or after `do: {thread.do}`")
        found = event.data["result"]
        self._expect(found == thread.prev, "content", f"the result is {found}, that of its tasks {thread.prev}")

    def _pipeline_failed(self, run: _Run, event: Event) -> None:
        """Check the end of a run or an iteration whose pipeline failed."""
        thread, error = run.threads.get(event.iteration, _Thread()), event.data["error"]
        if error["kind"] not in _FROM_OUTSIDE:
            own = not thread.is_open and thread.do == "fail"
            if thread.error is not None:  # a message may say that it gave up, and after how many attempts
                own &= error["kind"] == thread.error["kind"] and error["message"].endswith(thread.error["message"])
            self._expect(own, "attempts", f"{event.name} with {error}; its last task has {thread.error}")

    def _patched(self, event: Event) -> None:
        patch, path = event.data["patch"], event.iteration
        run = self._open_run(event)
        if event.label:
            thread = run.threads[path]
            is_own = (event.task, event.attempt, event.label) == (*thread.last, thread.label) and not thread.is_open
            fits = is_own and is_like(patch, thread.patch)
            self._expect(fits, "ctx", f"`{event.label}` writes {patch} instead of {thread.patch}")
            thread.patch = {}
        else:
            expected = self._merged(run, path)
            self._expect(path not in run.merged, "reduced", "a loop writes twice")
            self._expect(patch == expected, "reduced", f"the loop writes {patch} instead of {expected}")
            run.merged.add(path)
        self._ctx = {**self._ctx, **patch}

    # ---- loops

    def _loop_started(self, event: Event) -> None:
        run, path, data = self._open_run(event), event.iteration, event.data
        self._expect(path not in run.loops, "iterations", "a loop starts twice")
        self._expect(not path or path in run.started, "iterations", f"a loop starts within {path}, which has not")
        run.loops[path] = data
        run.since = run.since or self._now
        level = run.step.loops[level_of(path)]
        spec = level["spec"]
        is_parallel = spec["mode"] == "parallel"
        width = (spec.get("max_in_flight", _LOOP_WIDTH) if is_parallel else 1) if run.step.has_tool else 0
        self._expect(data["width"] == width, "in_flight", f"width {data['width']}, not {width}")
        expected: dict[str, Any] = {
            "parallel": is_parallel,
            "leaf": "loop" not in level,
            "best_effort": run.step.is_tolerant,
        }
        if "rate" in spec:
            expected["rate"] = [spec["rate"]["max"], spec["rate"]["per"]]
        found = {name: data[name] for name in data if name not in ("items", "total", "width")}
        self._expect(found == expected, "content", f"the loop is {found} instead of {expected}")
        items = self._workload[re.findall(r"\w+", level["in"])[1]] if isinstance(level["in"], str) else level["in"]
        self._expect(data["items"] == items, "iterations", f"the loop goes over {data['items']} instead of {items}")
        self._expect(data["total"] == len(items), "iterations", f"{data['total']} iterations of {len(items)} items")

    def _iteration_started(self, event: Event) -> None:
        run, path = self._open_run(event), event.iteration
        self._expect(path not in run.started | run.ended.keys(), "iterations", f"iteration {path} starts twice")
        run.started.add(path)
        self._rate(run)
        header = self._header(run, path)
        around = path.rpartition(".")[0]
        run.open[around] += 1
        busy, width = run.open[around], header["width"]
        self._expect(busy <= width, "in_flight", f"{busy} iterations of `{around}` instead of {width}")

    def _header(self, run: _Run, path: str) -> dict[str, Any]:
        """Return the header of the loop that an iteration belongs to. Raises KeyError if there is none."""
        around, _, index = path.rpartition(".")
        header = run.loops[around]
        self._expect(int(index) < header["total"], "iterations", f"iteration {path} of {header['total']}")
        is_open = not around or (around in run.started and around not in run.ended)
        self._expect(is_open, "iterations", f"iteration {path} outside of an open one")
        return header

    def _rate(self, run: _Run) -> None:
        """Check that an iteration begins no earlier than the rate of its loop lets as many begin."""
        rate = run.step.loops[0]["spec"].get("rate")
        if rate and self._is_steady:
            begun = len(run.started)
            early = run.since + (begun - 1) // rate["max"] * rate["per"] - self._now
            self._expect(early < 0.001, "rate", f"{begun} iterations have begun, the last {early:.3f} s early")

    def _iteration_ended(self, event: Event) -> None:
        run, path = self._open_run(event), event.iteration
        self._expect(path not in run.ended, "iterations", f"iteration {path} ends twice")
        self._header(run, path)
        is_cancelled = event.data.get("cancelled", False)
        if is_cancelled and (event.data["error"]["kind"] == "timeout" or self._status == _CANCELLED):
            self._stop(run, event)
            fits = path in run.started
        else:
            fits = (path in run.started) != is_cancelled or path in run.loops
        self._expect(fits, "iterations", f"iteration {path} was never started, or is cancelled after its start")
        busy = path in run.threads and run.threads[path].is_open
        self._expect(not busy, "attempts", f"iteration {path} ends before its task has")
        if path in run.started:
            run.open[path.rpartition(".")[0]] -= 1
        run.ended[path] = event
        if event.name == "loop.iteration.failed":
            self._pipeline_failed(run, event)
        elif level_of(path) == len(run.step.loops):
            self._pipeline_done(run, event)
        else:
            self._loop_result(run, path, event.data)
            self._inner_done(run, path, event.data)

    def _inner_done(self, run: _Run, path: str, data: dict[str, Any]) -> None:
        """Check what a loop within an iteration wrote to `ctx`, or leaves to the parallel iteration around it."""
        around, merged = run.step.parallel_around(path), self._merged(run, path)
        if around:
            found = data.get("ctx", {})
            self._expect(found == merged, "reduced", f"the loop of {path} writes {found} instead of {merged}")
            run.patches[around] = {**run.patches.get(around, {}), **found}
        else:
            self._expect((path in run.merged) == bool(merged), "reduced", f"{merged} of {path} did not reach ctx")

    def _loop_result(self, run: _Run, path: str, data: dict[str, Any]) -> None:
        """Check that the iterations of a loop have ended, and what it gives of them."""
        total, result = run.loops[path]["total"], data["result"]
        ended = [run.ended.get(_inner(path, index)) for index in range(total)]
        self._expect(None not in ended, "iterations", f"{ended.count(None)} of {total} iterations have not ended")
        if isinstance(result, list):
            results = [one.data.get("result") if one else None for one in ended]
            self._expect(result == results, "iterations", f"the loop gives {result}, its iterations {results}")

    def _loop_done(self, run: _Run, event: Event) -> None:
        counts = event.data["loop"]
        if not run.step.has_tool:
            total = run.loops[""]["total"]
            self._expect(
                event.data["result"] == [None] * total, "iterations", "iterations without tasks give something"
            )
            self._expect(
                counts == {"total": total, "ok": total, "failed": 0}, "iterations", f"the loop counts {counts}"
            )
            return
        self._loop_result(run, "", event.data)
        merged = self._merged(run, "")
        self._expect(("" in run.merged) == bool(merged), "reduced", f"{merged} did not reach ctx")
        self._loop_counts(run, counts)
        failed = {int(path): one.data["error"] for path, one in run.ended.items() if "." not in path and _failed(one)}
        listed = [{"index": index, "error": failed[index]} for index in sorted(failed)]
        found = counts.get("failures", [])
        self._expect(found == listed or not isinstance(found, list), "iterations", f"it lists {found}, not {listed}")
        fatal = run.step.is_tolerant or not failed
        self._expect(fatal, "iterations", "a loop is done with a failed iteration, and is not `best_effort`")

    def _loop_counts(self, run: _Run, counts: dict[str, Any]) -> None:
        """Check how many iterations a loop counts: leaves, and those around a loop that failed by themselves."""
        ok = sum(one.name == "loop.iteration.done" for path, one in run.ended.items() if path not in run.loops)
        expected = {"ok": ok, "failed": sum(map(_failed, run.ended.values()))}
        found = {name: counts[name] for name in expected}
        self._expect(found == expected, "iterations", f"the loop counts {found}, its iterations {expected}")
        levels = len(run.step.loops)
        total = run.loops[""]["total"] if levels == 1 else ok + expected["failed"]
        self._expect(counts["total"] == total, "iterations", f"the loop counts {counts['total']} of {total}")

    def _step_failed(self, run: _Run, event: Event) -> None:
        data = event.data
        error = data["error"]
        if "cancelled" in data:
            self._stop(run, event)
        if not run.step.loops:
            self._pipeline_failed(run, event)
        elif "failed_iteration" in data:
            cause = run.ended[data["failed_iteration"]]
            is_fatal = not run.step.is_tolerant or error["kind"] in _FROM_OUTSIDE
            self._expect(is_fatal, "iterations", "a failed iteration ends a loop that is `best_effort`")
            self._expect(cause.data.get("error") == error, "iterations", f"{error} is not that of its iteration")
            self._loop_counts(run, data["loop"])
        else:
            self._expect(error["kind"] in _FROM_OUTSIDE, "iterations", f"{error} comes from no iteration")
            if run.loops:
                self._loop_counts(run, data["loop"])

    def _merged(self, run: _Run, path: str) -> dict[str, Any]:
        """Return what a parallel loop writes to `ctx`: the writes of its iterations in their order, reduced."""
        if not run.step.is_parallel(path):
            return {}
        reducers = run.step.loops[level_of(path)]["spec"].get("policy", {}).get("reducers", {})
        start = {} if run.step.parallel_around(path) else self._ctx if path else run.ctx
        writes: dict[str, list[Any]] = {}
        for index in range(run.loops[path]["total"]):
            inner = _inner(path, index)
            one = run.ended.get(inner)
            if one is not None and one.name == "loop.iteration.done":
                for key, value in run.patches.get(inner, {}).items():
                    writes.setdefault(key, []).append(value)
        return {key: reduced(reducers.get(key, ""), start.get(key), values) for key, values in writes.items()}


def _inner(path: str, index: int) -> str:
    return f"{path}.{index}" if path else str(index)


def _within(event: Event, run: _Run) -> list[str]:
    """Return the iterations within what an event is about, in order."""
    prefix = f"{event.iteration}." if event.iteration else ""
    return sorted(path for path in run.started if path.startswith(prefix))


def _failed(event: Event) -> bool:
    return event.name == "loop.iteration.failed" and not event.data.get("cancelled")


def child_key(execution: str, event: Event) -> str:
    """Return the key of the child that a task of an execution starts."""
    within = f"/{event.iteration}" if event.iteration else ""
    return f"{execution}/{event.run}{within}#{event.task}.{event.attempt}"


_CANCELLED = "cancelled by request"
_READ_EVENT = (SUCCEEDED, FAILED)
_FIRST: EventName = "playbook.execution.requested"
_OVER = ("success", "failed", "cancelled")
_COUNTS = ("succeeded", "failed", "rejected")
_ENDED_AS = {"success": "succeeded", "error": "failed"}
_ENDS = ("fail", "break")
_DONE = ("continue", "jump", "break", "skip", "retry", "fail")
_PASSES_ON = ("continue", "jump", "break")
_FROM_OUTSIDE = ("timeout", "deadline", "cancelled", "ctx_conflict", "fuel")
"""Kinds of errors that no task has: limits of time, other iterations, loops around."""
_DECIDED: frozenset[EventName] = frozenset(
    {"token.enqueued", "token.denied", "token.rejected", "step.scheduled", "loop.started", "loop.done",
     "next.evaluated", "workflow.finished"}
)  # fmt: skip
"""What follows without a report, so that a pause holds it back."""

_HANDLERS: dict[EventName, Callable[[_LogModel, Event], None]] = {
    _FIRST: _LogModel._requested,
    "playbook.request.evaluated": _LogModel._evaluated,
    "workflow.started": _LogModel._workflow_started,
    "token.enqueued": _LogModel._enqueued,
    "token.denied": _LogModel._denied,
    "token.rejected": _LogModel._rejected,
    "step.scheduled": _LogModel._scheduled,
    "step.started": _LogModel._step_started,
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
    "execution.retried": _LogModel._retried,
}
