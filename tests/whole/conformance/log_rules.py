"""What every log of every mode obeys, read from its envelopes: fields, identifiers, and that what begins also ends.

It knows the documents and the catalogue of events, nothing of the machine.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from noetlvm.data.event import Recorded, envelope
from noetlvm.language.events import BOUNDARY, EVENTS
from noetlvm.store.interface import Execution, StoreReader
from noetlvm.testing.result import shown

Envelope = dict[str, Any]

FIELDS = {
    *("event_id", "execution_id", "trace_id", "timestamp", "source", "name", "entity", "entity_id", "status", "data"),
}
"""The fields of formal §10.1, and the trace (S61)."""
SOURCES = {"server", "worker"}
ENTITIES = {"playbook", "workflow", "step", "task", "loop", "next"}
STATUSES = {"in_progress", "success", "error", "paused"}
OPENING = ["playbook.execution.requested", "playbook.request.evaluated"]
CLOSING = ["workflow.finished", "playbook.processed"]
TASK_EVENTS = {"task.started", "task.done", "child.finished"}


def envelopes(row: Execution, log: Iterable[Recorded]) -> list[Envelope]:
    """Return the events of an execution as readers see them."""
    return [envelope(row.execution_id, row.trace_id, recorded) for recorded in log]


def stored_logs(reader: StoreReader) -> dict[str, list[Envelope]]:
    """Return the envelopes of all executions in a store."""
    return {row.execution_id: envelopes(row, reader.events(row.execution_id)) for row in reader.executions()}


def problems(log: list[Envelope]) -> list[str]:
    """Return what is wrong with the log of one execution."""
    found = [f"event {event.get('seq')}, {event['name']}: {one}" for event in log for one in _of_one(event)]
    if [event["seq"] for event in log] != list(range(1, len(log) + 1)):
        found.append("seq is not dense")
    if len({event["event_id"] for event in log}) != len(log):
        found.append("an event_id is used twice")
    shared = {name: {event.get(name, "") for event in log} for name in ("execution_id", "trace_id")}
    found += [f"{name} changes, or is empty" for name, values in shared.items() if len(values) != 1 or "" in values]
    return found or [*_frame(log), *_Spans(log).problems()]


# ---- single events


def _of_one(event: Envelope) -> list[str]:
    if not set(event) >= FIELDS:
        return [f"lacks {sorted(FIELDS - set(event))}"]
    checks = {
        "event_id is empty": bool(event["event_id"]),
        "timestamp has no zone": datetime.fromisoformat(event["timestamp"]).tzinfo is not None,
        f"source {event['source']}": event["source"] in SOURCES,
        f"entity {event['entity']}": event["entity"] in ENTITIES,
        f"status {event['status']}": event["status"] in STATUSES,
        "not of a step": event["entity"] == "step" or not event["name"].startswith("token."),
        "is not in the catalogue": event["name"] in EVENTS,
        "entity_id is not of this execution": event["entity_id"].startswith(event["execution_id"]),
        "data is not JSON": bool(json.dumps(shown(event["data"]))),
    }
    found = [problem for problem, holds in checks.items() if not holds]
    return found or [*_ids(event), *_data(event), *_outcome(event)]


def _data(event: Envelope) -> Iterator[str]:
    """The catalogue names every field of `data`, and those that an event always has are there."""
    fields, given = EVENTS[event["name"]].payload, set(event["data"])
    unknown = given - {field.name for field in fields}
    absent = {field.name for field in fields if not field.optional} - given
    if unknown or absent:
        yield f"data has {sorted(unknown)}, lacks {sorted(absent)}"


def _ids(event: Envelope) -> Iterator[str]:
    """Events of steps, iterations and tasks carry the identifiers of what they are about, one within the other."""
    name = event["name"]
    wanted: tuple[str, ...] = ()
    if name.startswith(("step.", "loop.", "next.")):
        wanted = ("step_run_id",)
    if name.startswith("loop.iteration."):
        wanted += ("iteration_id",)
    if name in TASK_EVENTS:
        wanted = ("step_run_id", "task_run_id", "task_label", "attempt")
    yield from (f"lacks {field}" for field in wanted if not event.get(field))
    around = event["execution_id"]
    for field in ("step_run_id", "iteration_id", "task_run_id"):
        id = event.get(field, around)
        if id != around and not id.startswith((f"{around}/", f"{around}#")):
            yield f"{field} {id} is not within {around}"
        around = id
    if "task_run_id" in event and not (event.get("task_label") and event.get("attempt", 0) >= 1):
        yield "names a task without its label or attempt"


def _outcome(event: Envelope) -> Iterator[str]:
    """An outcome has a status, an error with its kind, and `meta`: attempt, duration, trace and time (formal §5)."""
    if event["name"] != "task.done":
        return
    outcome = event["data"]["outcome"]
    meta = outcome.get("meta", {})
    if outcome.get("status") not in ("ok", "error"):
        yield f"an outcome is {outcome.get('status')}"
    if (outcome.get("status") == "error") != bool((outcome.get("error") or {}).get("kind")):
        yield "an error has no kind, or a success has one"
    if (meta.get("attempt"), meta.get("trace_id")) != (event.get("attempt"), event["trace_id"]):
        yield f"meta is of another attempt or trace: {meta}"
    if not all(isinstance(meta.get(name), int | float) and meta[name] >= 0 for name in ("duration_ms", "ts")):
        yield f"meta has no duration or no time: {meta}"


def _frame(log: list[Envelope]) -> Iterator[str]:
    """A log begins with the request and its evaluation; an end is the last thing, unless a retry continues it."""
    names = [event["name"] for event in log]
    if names[:2] != OPENING:
        yield "the request is not recorded first"
    evaluated = log[1]["data"]
    if ("error" in evaluated) == ("workflow.started" in names):
        yield "a refused request starts, or one that is not refused does not"
    once = Counter(names)
    if any(once[name] > 1 for name in (*OPENING, "workflow.started")):
        yield "an execution is requested, evaluated or started twice"
    if once["workflow.finished"] > once["playbook.processed"]:
        yield "a workflow finishes twice, or its execution has not ended"
    for at, name in enumerate(names):
        if name == "playbook.processed" and names[at + 1 : at + 2] not in ([], ["execution.retried"]):
            yield "something follows the end"
        if name == "playbook.processed" and "error" not in evaluated and names[at - 1 : at + 1] != CLOSING:
            yield "the end has no workflow.finished"


# ---- what begins and ends


class _Spans:
    """What of a log has begun and not ended."""

    def __init__(self, log: list[Envelope]) -> None:
        self._log = log
        self._found: list[str] = []
        self._open: dict[tuple[str, Any], str] = {}
        """Runs, iterations and attempts, and within which run each is."""
        self._ended: Counter[tuple[str, Any]] = Counter()
        self._begun: set[str] = set()
        """Runs of which a worker has reported something."""
        self._tokens: set[int] = set()
        self._denied: set[int] = set()
        self._unrouted: set[str] = set()
        self._sends: Counter[str] = Counter()
        """Tokens that a run has still to send."""
        self._is_cancelled = self._is_paused = False
        self._loops: set[str] = set()
        """Runs and iterations whose loop has started."""
        self._waiting: set[tuple[str, Any]] = set()
        """Attempts that wait for a child."""
        self._last: Envelope = {}

    def problems(self) -> list[str]:
        for event in self._log:
            self._take_control(event)
            self._take_token(event)
            self._take_run(event)
            self._take_loop(event)
            self._take_iteration(event)
            self._take_task(event)
            self._take_patch(event)
            self._last = event
        if self._log[-1]["name"] == "playbook.processed":
            self._expect(not self._open, f"these have not ended: {sorted(map(str, self._open))}")
            self._expect(not self._tokens, f"the tokens {sorted(self._tokens)} were neither consumed nor rejected")
            self._expect(not self._sends.total(), f"tokens of arcs that fired are missing: {self._sends}")
            unrouted = set() if self._is_cancelled else self._unrouted
            self._expect(not unrouted, f"the runs {sorted(unrouted)} were not routed")
        return self._found

    def _expect(self, holds: object, message: str) -> None:
        if not holds:
            self._found.append(message)

    def _begin(self, key: tuple[str, Any], event: Envelope) -> None:
        self._expect(key not in self._open and not self._ended[key], f"{key} begins twice")
        self._open[key] = event["step_run_id"]

    def _end(self, key: tuple[str, Any], event: Envelope, *, begins: bool = True) -> None:
        self._ended[key] += 1
        self._expect(self._ended[key] == 1, f"{key} ends twice")
        run = self._open.pop(key, None)
        self._expect(run or not begins, f"{key} ends with event {event['seq']} and has not begun")

    def _take_control(self, event: Envelope) -> None:
        name = event["name"]
        if name in ("execution.paused", "execution.resumed"):
            self._expect(self._is_paused == (name == "execution.resumed"), f"{name} changes nothing")
            self._is_paused = not self._is_paused
        elif name == "execution.cancelled":
            self._expect(not self._is_cancelled, "it is cancelled twice")
            self._is_cancelled, self._is_paused = True, False
            self._tokens.clear()

    def _take_token(self, event: Envelope) -> None:
        name, token = event["name"], event["data"].get("token")
        if name == "token.enqueued":
            self._expect(token not in self._tokens, f"token {token} is made twice")
            self._tokens.add(token)
            if sender := event.get("step_run_id"):
                self._expect(self._sends[sender] > 0, f"{sender} sends token {token}, and no arc has fired for it")
                self._sends[sender] -= 1
        elif name == "token.denied":
            self._expect(token in self._tokens - self._denied, f"token {token} is denied twice, or does not wait")
            self._expect("rule" in event["data"], f"the denial of token {token} names no rule")
            self._denied.add(token)
        elif token is not None:
            self._expect(token in self._tokens, f"{name} of token {token}, which does not wait")
            waited = event["data"].get("reason") != "at_rest" or token in self._denied
            self._expect(waited, f"token {token} waited to the end and was not denied")
            self._tokens.discard(token)

    def _take_run(self, event: Envelope) -> None:
        name, run = event["name"], event.get("step_run_id", "")
        if name == "step.scheduled" and "step" in event["data"]:
            self._begin(("run", run), event)
        elif name == "step.started":
            self._expect(("run", run) in self._open and run not in self._begun, f"{run} starts twice, or is not open")
            self._begun.add(run)
        elif name in BOUNDARY:
            self._end(("run", run), event)
            self._expect(name != "loop.done" or run in self._loops, f"the loop of {run} is done and has not started")
            left = [key for key, within in self._open.items() if within == run]
            self._expect(not left, f"{run} ends before {left}")
            self._unrouted.add(run)
        elif name == "next.evaluated":
            self._expect(run in self._unrouted, f"{run} is routed twice, or has not ended")
            self._unrouted.discard(run)
            self._sends[run] = len(event["data"]["arcs"])

    def _take_loop(self, event: Envelope) -> None:
        if event["name"] == "loop.started":
            id = event.get("iteration_id", event["step_run_id"])
            self._expect(id not in self._loops, f"the loop of {id} starts twice")
            self._loops.add(id)

    def _take_iteration(self, event: Envelope) -> None:
        if not event["name"].startswith("loop.iteration."):
            return
        id, run = event["iteration_id"], event["step_run_id"]
        key = ("iteration", id)
        around = id.rpartition(".")[0]
        self._expect((around or run) in self._loops, f"{event['name']} of {id}, whose loop has not started")
        self._expect(("run", run) in self._open, f"{event['name']} of {id}, whose run is not open")
        self._expect(not around or ("iteration", around) in self._open, f"{event['name']} of {id} outside of {around}")
        if event["name"] == "loop.iteration.started":
            self._begin(key, event)
            return
        within = [one for kind, one in self._open if kind != "run" and str(one).startswith((f"{id}.", f"('{id}#"))]
        self._expect(not within, f"{id} ends before {within}")
        self._end(key, event, begins=not event["data"].get("cancelled"))

    def _take_task(self, event: Envelope) -> None:
        name = event["name"]
        if name not in TASK_EVENTS:
            return
        key = ("attempt", (event["task_run_id"], event["attempt"]))
        around = ("iteration", event["iteration_id"]) if "iteration_id" in event else ("run", event["step_run_id"])
        self._expect(around in self._open, f"{name} of {event['task_run_id']}, and {around} is not open")
        self._expect(event["step_run_id"] in self._begun, f"{event['step_run_id']} runs tasks without step.started")
        if name == "task.started":
            self._begin(key, event)
            if "child" in event["data"]:
                self._waiting.add(key)
            return
        if name == "task.done":
            self._end(key, event)
            is_early = key in self._waiting and "cancelled" not in event["data"]
            self._expect(not is_early, f"{key} ends before its child")
        else:
            self._expect(key in self._waiting, f"a child ends for which {key} does not wait")
        self._waiting.discard(key)

    def _take_patch(self, event: Envelope) -> None:
        """A write names the task that made it, directly after its end, or the loop; or it is the request's."""
        if event["name"] != "ctx.patched":
            return
        names = ("step_run_id", "iteration_id", "task_run_id", "task_label", "attempt")
        if "task_run_id" in event:
            is_own = self._last["name"] == "task.done" and all(event.get(one) == self._last.get(one) for one in names)
            self._expect(is_own, f"event {event['seq']} writes for a task that has not just ended")
        elif "step_run_id" in event:
            self._expect(("run", event["step_run_id"]) in self._open, f"event {event['seq']} writes for no open loop")
        else:
            self._expect(self._last["name"] == "workflow.started", f"event {event['seq']} does not name who wrote")
