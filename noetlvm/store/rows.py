"""How events and requests are stored, whichever store it is, and what each store checks before it writes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any, NamedTuple

from noetlvm.data.encoding import decode, encode
from noetlvm.store.chunks import REMEDY, UNREADABLE, Chunk, encoded_chunks, has_types
from noetlvm.store.interface import (
    Append,
    DamagedError,
    Execution,
    QueuedCommand,
    Snapshot,
    StoredToken,
    StoreError,
)


class EncodedAppend(NamedTuple):
    """An append that was checked, with everything encoded: writing it can only fail for reasons of the medium."""

    execution: Execution
    known_seq: int
    chunks: list[Chunk]
    """Its events."""
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
            f"{execution.execution_id}: the row has event {execution.seq}, "
            f"but {len(events)} events after {known_seq} were given"
        )
    if not execution.seq:
        raise ValueError(f"{execution.execution_id}: an execution begins with an event")
    if start_key and known_seq:
        raise ValueError(f"{execution.execution_id} exists already, and gets no start key")
    references: set[str] = set()
    chunks = encoded_chunks(events, known_seq, references)
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
        execution, known_seq, chunks, references, opened, closed, acknowledged, messages, snapshot, start_key
    )


def counts_text(counts: Mapping[str, int]) -> str:
    """Return counts as JSON. Their names are plain words; each write does it, and `json` takes three times as long."""
    return "{" + ", ".join([f'"{name}": {count}' for name, count in counts.items()]) + "}"


def read_bundle(where: str, bundle: str, found: Sequence[Sequence[Any]]) -> bytes | None:
    """Return the bytes of a bundle's row; None: there is none. Raises DamagedError."""
    if not found:
        return None
    data = found[0][0]
    if not isinstance(data, bytes):
        raise DamagedError(f"{where}: the bundle {bundle} is damaged: its data is not binary; {REMEDY}")
    return data


# ---- reading what may be damaged

_NUMBER, _OPTIONAL_NUMBER = (float, int), (float, int, NoneType)
_EXECUTION_TYPES = (str, str, str, str, str, _NUMBER, _OPTIONAL_NUMBER, str, dict, int, _OPTIONAL_NUMBER, str)


def read_execution(where: str, row: Sequence[Any]) -> Execution:
    """Return the row of an execution, whose counts are JSON. Raises DamagedError."""
    try:
        execution = Execution._make((*row[:8], json.loads(row[8]), *row[9:]))
        if has_types(execution, _EXECUTION_TYPES):
            return execution
        problem = "a column has another type"
    except UNREADABLE as error:
        problem = f"its counts cannot be decoded ({error})"
    raise DamagedError(f"{where}: the row of execution {row[0]!r} is damaged: {problem}; {REMEDY}")


def read_data(where: str, what: str, data: Any) -> Any:
    """Return the decoded data of a row. Raises DamagedError."""
    try:
        return decode(data)
    except UNREADABLE as problem:
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
    id, digest, scopes, created, revoked = row
    return StoredToken(id, digest, tuple(scopes.split(",")), created, revoked)
