"""How events and requests are stored, whichever store it is, and what each store checks before it writes."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from types import NoneType
from typing import Any, NamedTuple, TypeAlias
from zlib import crc32

from msgpack import Packer  # type: ignore[import-untyped]  # it ships no types

from noetlvm.data.encoding import decode, encode, encode_listing_references
from noetlvm.data.event import Event, Recorded
from noetlvm.limits import EVENT_BYTES_MAX
from noetlvm.store.interface import (
    Append,
    DamagedError,
    Execution,
    QueuedCommand,
    Snapshot,
    StoredToken,
    StoreError,
)

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
    rows = _event_rows(events, known_seq, references)
    if closed and opened:
        leases = {command.part: command.lease for command in closed}
        opened = [command for command in opened if leases.get(command.part, -1) < command.lease]
        replaced = {command.part for command in opened}  # opening removes the older lease by itself
        closed = [command for command in closed if command.part not in replaced]
    if snapshot is not None:
        if not 0 < snapshot.seq <= execution.seq:
            raise ValueError(f"{execution.execution_id} has no event {snapshot.seq} that a snapshot could follow")
        snapshot = snapshot._replace(data=encode(snapshot.data))
    messages = [(request.execution_id, request.action, encode(request.data)) for request in sent]
    return EncodedAppend(
        execution, known_seq, rows, references, opened, closed, acknowledged, messages, snapshot, start_key
    )


def _event_rows(events: Sequence[Recorded], known_seq: int, references: set[str]) -> list[EventRow]:
    """Return the rows of events, and note the results that they refer to. It is one function, because calls cost."""
    rows: list[EventRow] = []
    expected = known_seq
    for seq, event_id, timestamp, (name, data, run, iteration, task, label, attempt) in events:
        expected += 1
        if seq != expected:
            raise ValueError(f"event {expected} must come next, not {seq}")
        encoded, found = encode_listing_references(data)
        if len(encoded) > EVENT_BYTES_MAX:
            size = f"{len(encoded):,} bytes, where {EVENT_BYTES_MAX:,} are allowed"
            raise StoreError(f"{name} holds {size}; store it as a result")
        if found:
            references.update(found)
        rows.append((seq, event_id, float(timestamp), name, run, iteration, task, label, attempt, encoded))
    return rows


def recorded_event(row: Sequence[Any]) -> Recorded:
    """Return the event of a row."""
    seq, event_id, timestamp, name, run, iteration, task, label, attempt, data = row
    return Recorded(seq, event_id, timestamp, Event(name, decode(data), run, iteration, task, label, attempt))


# ---- checksums


class _Head(threading.local):
    """Encodes the columns of an event beside its data. One per thread: a Packer has state."""

    def __init__(self) -> None:
        self.pack = Packer().pack


_HEAD = _Head()


CHECKSUMS_VARIABLE = "NOETLVM_CHECKSUMS"


def checksums_wanted() -> bool:
    """Return whether events get checksums: yes, unless the environment says `off`. Raises StoreError."""
    given = os.environ.get(CHECKSUMS_VARIABLE) or "on"
    if given not in ("on", "off"):
        raise StoreError(f"{CHECKSUMS_VARIABLE} is `{given}`; give on or off")
    return given == "on"


def first_sum(execution_id: str) -> int:
    """Return the checksum that precedes the first event of an execution."""
    return crc32(execution_id.encode())


def next_sum(sum_before: int, row: Sequence[Any]) -> int:
    """Return the checksum of an event: of its row and, through the checksum before, of the whole log up to it."""
    return crc32(row[9], crc32(_HEAD.pack(row[:9]), sum_before))


def known_sum(found: Any) -> int | None:
    """Return the checksum of a stored event; None: it has none, or what it has is none."""
    return found if isinstance(found, int) else None


def read_bundle(where: str, bundle: str, found: Sequence[Sequence[Any]]) -> bytes | None:
    """Return the bytes of a bundle's row; None: there is none. Raises DamagedError."""
    if not found:
        return None
    data = found[0][0]
    if not isinstance(data, bytes):
        raise DamagedError(f"{where}: the bundle {bundle} is damaged: its data are no bytes; {REMEDY}")
    return data


# ---- reading what may be damaged

REMEDY = "`noetlvm fsck` checks everything"

_NUMBER, _OPTIONAL_NUMBER = (float, int), (float, int, NoneType)
_EVENT_TYPES = (int, str, _NUMBER, str, int, str, int, str, int, bytes)
_EXECUTION_TYPES = (str, str, str, str, str, _NUMBER, _OPTIONAL_NUMBER, str, dict, int, _OPTIONAL_NUMBER, str)
_UNREADABLE = (ValueError, TypeError, AttributeError, LookupError)
"""Raised by what decodes rows when they do not hold what was written."""


def read_events(
    execution_id: str, where: str, rows: Iterable[Sequence[Any]], after: int, last: int
) -> Iterator[Recorded]:
    """Yield the events of rows with checksums. Raises DamagedError at the first that is missing or damaged.

    The rows begin with the event `after`, which is only needed for its checksum; 0: there is none.
    """
    expected, sum_before = after or 1, None if after else first_sum(execution_id)
    for row in rows:
        if row[0] != expected:
            break
        if expected > after:
            problem = event_problem(row, sum_before)
            if problem:
                raise DamagedError(f"{where}: event {expected} of {execution_id} is damaged: {problem}; {REMEDY}")
            yield recorded_event(row[:10])
        expected, sum_before = expected + 1, known_sum(row[10])
    if expected <= last:
        raise DamagedError(f"{where}: event {expected} of {last} of {execution_id} is missing; {REMEDY}")


def event_problem(row: Sequence[Any], sum_before: int | None) -> str:
    """Return why the row of an event is not what was written; empty: it is. An old event may have no checksum."""
    *stored, found = row
    if not _has_types(stored, _EVENT_TYPES) or not isinstance(found, int | None):
        return "a column has another type"
    if found is not None and sum_before is not None and next_sum(sum_before, stored) != found:
        return "its checksum differs"
    try:
        return "" if type(decode(stored[9])) is dict else "its data are no mapping"
    except _UNREADABLE as problem:
        return f"its data cannot be decoded ({problem})"


def _has_types(row: Sequence[Any], types: Sequence[Any]) -> bool:
    return all(isinstance(value, expected) for value, expected in zip(row, types, strict=True))


def read_execution(where: str, row: Sequence[Any]) -> Execution:
    """Return the row of an execution, whose counts are JSON. Raises DamagedError."""
    try:
        execution = Execution._make((*row[:8], json.loads(row[8]), *row[9:]))
        if _has_types(execution, _EXECUTION_TYPES):
            return execution
        problem = "a column has another type"
    except _UNREADABLE as error:
        problem = f"its counts cannot be decoded ({error})"
    raise DamagedError(f"{where}: the row of execution {row[0]!r} is damaged: {problem}; {REMEDY}")


def read_data(where: str, what: str, data: Any) -> Any:
    """Return the decoded data of a row. Raises DamagedError."""
    try:
        return decode(data)
    except _UNREADABLE as problem:
        raise DamagedError(f"{where}: {what} cannot be decoded ({problem}); {REMEDY}") from problem


# ---- errors of all stores


def require_open(execution: Execution | None, execution_id: str, action: str) -> None:
    """Raise StoreError unless there is something to pause, resume or cancel."""
    if execution is None:
        raise StoreError(f"there is no execution {execution_id}; `noetlvm list` shows all")
    if execution.ended is not None:
        raise StoreError(f"execution {execution_id} has ended ({execution.status}): there is nothing to {action}")


def cursor_gone(execution_id: str) -> StoreError:
    """Return the error for a page that continues after a deleted execution."""
    return StoreError(f"the execution {execution_id}, which ended the page before, was deleted; list from the start")


def read_token(row: Sequence[Any]) -> StoredToken:
    """Return the token of a row."""
    id, digest, scopes, created, revoked = row
    return StoredToken(id, digest, tuple(scopes.split(",")), created, revoked)
