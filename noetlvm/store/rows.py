"""How events and requests are stored, whichever store it is, and what each store checks before it writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from noetlvm.data.encoding import decode, encode, encode_listing_references
from noetlvm.data.event import Event, Recorded
from noetlvm.limits import EVENT_BYTES_MAX
from noetlvm.store.interface import Append, Execution, QueuedCommand, Snapshot, StoreError

EventRow: TypeAlias = tuple[int, str, float, str, int, str, int, str, int, bytes]
"""seq, event_id, timestamp, name, run, iteration, task, label, attempt, encoded data."""


class EncodedAppend(NamedTuple):
    """An append that was checked, with everything encoded: writing it can only fail for reasons of the medium."""

    execution: Execution
    known_seq: int
    events: list[EventRow]
    references: set[str]
    """Keys of stored results that the events refer to."""
    opened: Sequence[QueuedCommand]
    closed: Sequence[QueuedCommand]
    acknowledged: Sequence[int]
    sent: list[tuple[str, str, bytes]]
    """Target, action and encoded data of requests."""
    snapshot: Snapshot | None
    """Its data are bytes."""
    start_key: str


def encoded_batch(batch: Sequence[Append]) -> list[EncodedAppend]:
    """Check and encode a batch. Raises ValueError, UnencodableError, or StoreError for an event that is too large."""
    encoded = [_encoded(append) for append in batch]
    if len(encoded) > 1 and len({append.execution.execution_id for append in encoded}) < len(encoded):
        raise ValueError("a batch holds at most one append per execution")
    return encoded


def _encoded(append: Append) -> EncodedAppend:
    execution, known_seq, events, opened, closed, acknowledged, sent, snapshot, start_key = append
    if execution.seq != known_seq + len(events):
        raise ValueError(
            f"{execution.execution_id}: the row says event {execution.seq}, "
            f"but {len(events)} events after {known_seq} were given"
        )
    if not execution.seq:
        raise ValueError(f"{execution.execution_id}: an execution begins with an event")
    if start_key and known_seq:
        raise ValueError(f"{execution.execution_id} exists already, and gets no start key")
    references: set[str] = set()
    rows = [_event_row(recorded, seq, references) for seq, recorded in enumerate(events, known_seq + 1)]
    if closed and opened:
        leases = {command[:3]: command.lease for command in closed}
        opened = [command for command in opened if leases.get(command[:3], -1) < command.lease]
    if snapshot is not None:
        if not 0 < snapshot.seq <= execution.seq:
            raise ValueError(f"{execution.execution_id} has no event {snapshot.seq} that a snapshot could follow")
        snapshot = snapshot._replace(data=encode(snapshot.data))
    messages = [(request.execution_id, request.action, encode(request.data)) for request in sent]
    return EncodedAppend(
        execution, known_seq, rows, references, opened, closed, acknowledged, messages, snapshot, start_key
    )


def _event_row(recorded: Recorded, expected_seq: int, references: set[str]) -> EventRow:
    seq, event_id, timestamp, (name, data, run, iteration, task, label, attempt) = recorded
    if seq != expected_seq:
        raise ValueError(f"event {expected_seq} must come next, not {seq}")
    encoded, found = encode_listing_references(data)
    if len(encoded) > EVENT_BYTES_MAX:
        size = f"{len(encoded):,} bytes, where {EVENT_BYTES_MAX:,} are allowed"
        raise StoreError(f"{name} holds {size}; store it as a result")
    if found:
        references.update(found)
    return seq, event_id, timestamp, name, run, iteration, task, label, attempt, encoded


def recorded_event(row: Sequence[Any]) -> Recorded:
    """Return the event of a row."""
    seq, event_id, timestamp, name, run, iteration, task, label, attempt, data = row
    return Recorded(seq, event_id, timestamp, Event(name, decode(data), run, iteration, task, label, attempt))


def require_open(execution: Execution | None, execution_id: str, action: str) -> None:
    """Raise StoreError unless there is something to pause, resume or cancel."""
    if execution is None:
        raise StoreError(f"there is no execution {execution_id}; `noetlvm list` shows all")
    if execution.ended is not None:
        raise StoreError(f"execution {execution_id} has ended ({execution.status}): there is nothing to {action}")


def cursor_gone(execution_id: str) -> StoreError:
    """Return the error for a page that continues after a deleted execution."""
    return StoreError(f"the execution {execution_id}, which ended the page before, was deleted; list from the start")
