"""Checks what a run under faults left: logs and rows by the simulator's checker, and the lines that tasks wrote.

It uses no code of the machine. Every invariant that only real processes show has a name and a sentence in
`INVARIANTS`; those of logs are the simulator's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from noetlvm.data.event import Event
from noetlvm.sim.checker import check_children
from noetlvm.sim.log_model import Violation, check_log
from noetlvm.sim.playbooks import Document
from noetlvm.sim.world import StoredLog
from noetlvm.store.interface import StoreReader

INVARIANTS = {
    "ended": "Every execution that was started has ended, and its children too.",
    "same": "Status, ctx and result are those of the run without faults.",
    "effects": "A task leaves a line if it ended, and at most one for each start and each new lease.",
    "kept": "An event that a client once saw is in the log at the end.",
    "one_start": "Start requests with one key start one execution.",
}


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


def check(
    reader: StoreReader,
    documents: dict[str, Document],
    tracked: Sequence[Tracked],
    expected: Ending,
    ending_of: Callable[[str], Ending],
) -> list[Violation]:
    """Return every violation. `documents` are the playbooks by path; `ending_of` says how an execution ended."""
    found = [
        Violation("one_start", one.id, 0, f"the key {one.key} has another execution")
        for one in tracked
        if reader.started(one.key) != one.id
    ]
    for one in tracked:
        row = reader.execution(one.id)
        if row is None or row.ended is None:
            found.append(Violation("ended", one.id, 0, f"it is {row.status if row else 'missing'}"))
            continue
        ending = ending_of(one.id)
        if ending != expected:
            found.append(Violation("same", one.id, 0, f"{ending} is not {expected}"))
        family = (row, *reader.executions(parent=one.id))
        logs = {each.execution_id: StoredLog(each, list(reader.events(each.execution_id))) for each in family}
        for id, log in logs.items():
            found += check_log(documents[log.row.path], log, ending.ctx if id == one.id else None)
            if log.row.ended is None:
                found.append(Violation("ended", id, 0, "a child is open"))
        found += check_children(logs)
        found += [Violation("effects", one.id, 0, message) for message in _effect_problems(logs.values(), one.effects)]
        known = {recorded.seq: recorded.event_id for recorded in logs[one.id].events}
        lost = [seq for seq, id in one.seen if known.get(seq) != id]
        if lost:
            found.append(Violation("kept", one.id, lost[0], "it is another event now"))
    return found


def _effect_problems(logs: Iterable[StoredLog], file: Path) -> Iterator[str]:
    """Compare lines `LABEL` or `LABEL ITERATION` with the starts and ends of tasks."""
    lines = Counter(file.read_text(encoding="utf-8").splitlines()) if file.exists() else Counter[str]()
    allowed: Counter[str] = Counter()
    ended: set[str] = set()
    for log in logs:
        events = [recorded.event for recorded in log.events]
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
