"""An event as the machine emits it, as the log stores it, and the full envelope that readers see.

The machine knows neither clock nor identifiers: it counts step runs, iterations and task runs, and every identifier of
the envelope is made of those counts. Only `event_id` and `timestamp` come from the recorder.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from noetlvm.language.events import EVENTS, Entity, EventName, Status


class Event(NamedTuple):
    """What happened."""

    name: EventName
    data: dict[str, Any]
    """Plain data, and small: what is large is there by reference."""
    run: int = 0
    """Number of the step run in this execution, from 1; 0: the event belongs to none."""
    iteration: str = ""
    """Indices of the loop iterations it happened in, outermost first, as `3` or `3.1`; empty outside a loop."""
    task: int = 0
    """Number of the task run within its step run or iteration, from 1; 0: the event is not about one."""
    label: str = ""
    attempt: int = 0


class Recorded(NamedTuple):
    """An event in the log."""

    seq: int
    event_id: str
    timestamp: float
    event: Event


def counted_ids(first: str, wanted: int) -> list[str]:
    """Return identifiers that count up from the first, in its last twelve digits; the first alone if it has none."""
    if wanted == 1:
        return [first]
    try:
        number = int(first[-12:], 16)
    except ValueError:
        return [first]
    head = first[:-12]
    return [f"{head}{number:012x}" for number in range(number, number + wanted)]


def step_run_id(execution_id: str, run: int) -> str:
    return f"{execution_id}/{run}"


def iteration_id(execution_id: str, run: int, iteration: str) -> str:
    """Return the identifier of a loop iteration."""
    return f"{execution_id}/{run}/{iteration}"


def task_run_id(execution_id: str, run: int, iteration: str, task: int) -> str:
    """Return the identifier of a task run: the same when the task runs again after a crash, so tools may rely on it."""
    within = f"/{iteration}" if iteration else ""
    return f"{execution_id}/{run}{within}#{task}"


@lru_cache(1)  # all events of a write have one time
def moment(timestamp: float) -> str:
    """Return a time as readers of events see it."""
    return datetime.fromtimestamp(timestamp, UTC).isoformat(timespec="milliseconds")


def envelope(execution_id: str, trace_id: str, recorded: Recorded) -> dict[str, Any]:
    """Return an event with every field of formal §10.1, and the trace of its request.

    The trace is the same in every event of an execution and of its children, so it is not stored with each.
    """
    event = recorded.event
    kind = EVENTS[event.name]
    made: dict[str, Any] = {
        "event_id": recorded.event_id,
        "execution_id": execution_id,
        "trace_id": trace_id,
        "seq": recorded.seq,
        "timestamp": moment(recorded.timestamp),
        "source": kind.plane.value,
        "name": event.name,
        "entity": kind.entity.value,
        "entity_id": _entity_id(execution_id, event, kind.entity),
        "status": status(event).value,
        "data": _traced(event.data, trace_id),
    }
    return made | _identifiers(execution_id, event)


def _traced(data: dict[str, Any], trace_id: str) -> dict[str, Any]:
    """Return data whose outcome has `meta.trace_id`, as templates see it (formal §5)."""
    outcome = data.get("outcome")
    if not outcome or "meta" not in outcome:
        return data
    return data | {"outcome": outcome | {"meta": outcome["meta"] | {"trace_id": trace_id}}}


def status(event: Event) -> Status:
    """Return the status of an event's entity after the event: the catalogue's, or derived from its data."""
    kind = EVENTS[event.name]
    if kind.status is not None:
        return kind.status
    return Status.ERROR if _is_failure(event.data) else Status.SUCCESS


def _is_failure(data: dict[str, Any]) -> bool:
    if data.get("error"):
        return True
    outcome = data.get("outcome")
    said = outcome.get("status") if outcome else data.get("status")
    return said in ("error", "failed", "cancelled")


def _entity_id(execution_id: str, event: Event, entity: Entity) -> str:
    if event.name.startswith("token."):
        return f"{execution_id}/token/{event.data['token']}"
    if entity is Entity.TASK:
        return task_run_id(execution_id, event.run, event.iteration, event.task)
    if entity is Entity.WORKFLOW:
        return execution_id
    if event.iteration:
        return iteration_id(execution_id, event.run, event.iteration)
    return step_run_id(execution_id, event.run) if event.run else execution_id


def _identifiers(execution_id: str, event: Event) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if event.run:
        found["step_run_id"] = step_run_id(execution_id, event.run)
    if event.iteration:
        found["iteration_id"] = iteration_id(execution_id, event.run, event.iteration)
    if event.task:
        found["task_run_id"] = task_run_id(execution_id, event.run, event.iteration, event.task)
        found["task_label"] = event.label
        found["attempt"] = event.attempt
    return found
