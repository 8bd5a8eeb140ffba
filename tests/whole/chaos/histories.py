"""Checks what a run under faults left: logs, rows, and the lines that tasks wrote. It uses no code of the machine.

Every invariant has a name and a sentence in `INVARIANTS`; a violation names the invariant and the execution.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from noetlvm.data.event import Event, Recorded
from noetlvm.store.interface import Execution, StoreReader

INVARIANTS = {
    "ended": "Every execution that was started has ended, and its children too.",
    "same": "Status, ctx and result are those of the run without faults.",
    "dense": "Events are numbered from 1 without a gap, and the row has the number of the last.",
    "order": "A log begins with the request, and nothing follows the end.",
    "token_once": "A token is made once and consumed once.",
    "run_once": "A step run has one boundary event and is routed once.",
    "iteration_once": "An iteration ends once, and every iteration of a loop ends.",
    "attempt_once": "An attempt of a task ends once, and is started before it ends.",
    "leases_grow": "Leases of a part of a run only grow.",
    "effects": "A task leaves a line if it ended, and at most one for each start and each new lease.",
    "kept": "An event that a client once saw is in the log at the end.",
    "one_start": "Start requests with one key start one execution.",
}

_BOUNDARIES = {"step.done", "step.failed", "loop.done"}
_ITERATION_ENDS = {"loop.iteration.done", "loop.iteration.failed"}


class Violation(NamedTuple):
    """An invariant that does not hold."""

    invariant: str
    execution: str
    message: str


class Tracked(NamedTuple):
    """An execution that the load started."""

    id: str
    key: str
    effects: Path
    """File with a line for each effect of a task."""
    seen: list[tuple[int, str]]
    """Numbers and identifiers of events that a client saw meanwhile."""


class Ending(NamedTuple):
    """How an execution ends without faults."""

    status: str
    ctx: dict[str, Any]
    result: Any


def check(reader: StoreReader, tracked: Sequence[Tracked], expected: Ending, ending_of: Any) -> list[Violation]:
    """Return every violation. `ending_of` returns status, ctx and result of an execution."""
    found = [
        Violation("one_start", one.id, f"the key {one.key} has another execution")
        for one in tracked
        if reader.started(one.key) != one.id
    ]
    for one in tracked:
        row = reader.execution(one.id)
        if row is None or row.ended is None:
            found.append(Violation("ended", one.id, f"it is {row.status if row else 'missing'}"))
            continue
        if ending_of(one.id) != expected:
            found.append(Violation("same", one.id, f"{ending_of(one.id)} is not {expected}"))
        logs: list[list[Event]] = []
        for log_of in (row, *reader.executions(parent=one.id)):
            log = list(reader.events(log_of.execution_id))
            logs.append([recorded.event for recorded in log])
            problems = _log_problems(log_of, log)
            found += [Violation(name, log_of.execution_id, message) for name, message in problems]
            if log_of.ended is None:
                found.append(Violation("ended", log_of.execution_id, "a child is open"))
        log = list(reader.events(one.id))
        found += [Violation("effects", one.id, message) for message in _effect_problems(logs, one.effects)]
        known = {recorded.seq: recorded.event_id for recorded in log}
        lost = [seq for seq, id in one.seen if known.get(seq) != id]
        if lost:
            found.append(Violation("kept", one.id, f"event {lost[0]} is another one now"))
    return found


def _log_problems(row: Execution, log: list[Recorded]) -> Iterator[tuple[str, str]]:
    events = [recorded.event for recorded in log]
    names = [event.name for event in events]
    if [recorded.seq for recorded in log] != list(range(1, len(log) + 1)) or row.seq != len(log):
        yield "dense", f"there are {len(log)} events, and the row says {row.seq}"
    if names[0] != "playbook.execution.requested" or names[-1] != "playbook.processed":
        yield "order", f"it begins with {names[0]} and ends with {names[-1]}"
    if names.count("workflow.finished") != 1 or names.count("playbook.processed") != 1:
        yield "order", "it ends more than once"
    made = [event.data["token"] for event in events if event.name == "token.enqueued"]
    used = [event.data["token"] for event in events if event.name == "step.scheduled" and "token" in event.data]
    if _twice(made) or _twice(used) or set(used) - set(made):
        yield "token_once", f"made {made}, consumed {used}"
    bounds = [event.run for event in events if event.name in _BOUNDARIES]
    routed = [event.run for event in events if event.name == "next.evaluated"]
    if _twice(bounds) or _twice(routed) or set(bounds) != set(routed):
        yield "run_once", f"runs ended {bounds}, routed {routed}"
    ends = [(event.run, event.iteration) for event in events if event.name in _ITERATION_ENDS]
    totals = sum(event.data["total"] for event in events if event.name == "loop.started")
    if _twice(ends) or len(ends) != totals:
        yield "iteration_once", f"{len(ends)} ends of {totals} iterations"
    yield from _attempt_problems(events)
    yield from _lease_problems(events)


def _attempt_problems(events: list[Event]) -> Iterator[tuple[str, str]]:
    started: set[tuple[Any, ...]] = set()
    ended: set[tuple[Any, ...]] = set()
    for event in events:
        attempt = (event.run, event.iteration, event.task, event.attempt)
        if event.name == "task.started":
            started.add(attempt)
        elif event.name == "task.done":
            if attempt in ended or attempt not in started:
                yield "attempt_once", f"{event.label} {attempt}"
            ended.add(attempt)


def _lease_problems(events: list[Event]) -> Iterator[tuple[str, str]]:
    leases: dict[tuple[int, str], int] = {}
    for event in events:
        if event.name == "step.scheduled" and "lease" in event.data:
            part = (event.run, event.iteration)
            if event.data["lease"] <= leases.get(part, 0):
                yield "leases_grow", f"{part}: {event.data['lease']} after {leases[part]}"
            leases[part] = event.data["lease"]


def _effect_problems(logs: list[list[Event]], file: Path) -> Iterator[str]:
    """Compare lines `LABEL` or `LABEL ITERATION` with the starts and ends of tasks."""
    lines = Counter(file.read_text(encoding="utf-8").splitlines()) if file.exists() else Counter[str]()
    allowed: Counter[str] = Counter()
    ended: set[str] = set()
    for events in logs:
        scheduled = [event for event in events if event.name == "step.scheduled" and "lease" in event.data]
        leases = Counter((event.run, event.iteration) for event in scheduled)
        for event in events:
            if event.name == "task.started":
                allowed[_line(event)] += 1 + leases[event.run, event.iteration]
            elif event.name == "task.done":
                ended.add(_line(event))
    for line, count in lines.items():
        if count > allowed[line]:
            yield f"`{line}` is there {count} times, and may be {allowed[line]} times"
    for line in ended:
        if not lines[line] and line.split()[0] in EFFECTS:
            yield f"`{line}` ended without its effect"


EFFECTS = ("first", "item", "child", "last")
"""Labels of tasks that leave a line."""


def _line(event: Event) -> str:
    return f"{event.label} {event.iteration}".strip()


def _twice(values: list[Any]) -> bool:
    return len(values) != len(set(values))
