"""Logs of older schemas, which had one row per event, as chunks: for the migrations of both databases.

What was damaged stays damaged: an event whose checksum differed becomes a chunk whose checksum differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from zlib import crc32

from msgpack import packb  # type: ignore[import-untyped]  # it ships no types

from noetlvm.data.encoding import decode
from noetlvm.data.event import Event, Recorded
from noetlvm.store.chunks import (
    CHUNK_EVENTS,
    UNREADABLE,
    Chunk,
    ChunkRow,
    encoded_chunks,
    first_sum,
    has_types,
    known_sum,
    summed,
)

EVENT_ROW = "event_id, timestamp, name, run, iteration, task, label, attempt, data, sum"
"""Columns of an event, after its number."""

_TYPES = (int, str, (float, int), str, int, str, int, str, int, bytes)


class _Run(NamedTuple):
    """Rows that become chunks together: sound ones that follow each other, or a damaged one."""

    has_sums: bool
    sound: list[Recorded]
    damaged: Sequence[Any] = ()


def chunks_of_event_rows(execution_id: str, seq: int, rows: Iterable[Sequence[Any]]) -> Iterator[ChunkRow]:
    """Yield the chunks of an execution's rows, which begin with the event's number.

    `seq` is the last event that the execution's row counts: what comes after it is in chunks of its own.
    """
    last: int | None = first_sum(execution_id)
    for has_sums, sound, damaged in _runs(execution_id, seq, rows):
        start = None if not has_sums else first_sum(execution_id) if last is None else last
        if sound:
            chunks = encoded_chunks(sound, sound[0].seq - 1, set())
        else:
            data = damaged[9] if isinstance(damaged[9], bytes) else b""
            chunks = [Chunk(damaged[0], damaged[0], data)]
            start = None if start is None else start ^ 1
        for row in summed(chunks, start):
            yield row
            last = row[3]


def _runs(execution_id: str, seq: int, rows: Iterable[Sequence[Any]]) -> Iterator[_Run]:
    expected = 1
    sum_before: int | None = first_sum(execution_id)
    run = _Run(True, [])
    for row in rows:
        number, found = row[0], row[10]
        is_next = number == expected
        event = _event(row, sum_before if is_next else None)
        has_sums = found is not None
        goes_on = is_next and number != seq + 1 and has_sums == run.has_sums and len(run.sound) < CHUNK_EVENTS
        if run.sound and (event is None or not goes_on):
            yield run
            run = _Run(has_sums, [])
        if event is None:
            yield _Run(has_sums, [], row)
        elif run.sound:
            run.sound.append(event)
        else:
            run = _Run(has_sums, [event])
        expected, sum_before = number + 1, known_sum(found)
    if run.sound:
        yield run


def _event(row: Sequence[Any], sum_before: int | None) -> Recorded | None:
    """Return the event of a row; None: the row is not what was written."""
    *stored, found = row
    if not has_types(stored, _TYPES) or not isinstance(found, int | None):
        return None
    head, encoded = stored[:9], stored[9]
    if found is not None and sum_before is not None and crc32(encoded, crc32(packb(head), sum_before)) != found:
        return None
    seq, event_id, timestamp, name, run, iteration, task, label, attempt = head
    try:
        data = decode(encoded)
    except UNREADABLE:
        return None
    event = Event(name, data, run, iteration, task, label, attempt)
    return Recorded(seq, event_id, timestamp, event) if type(data) is dict else None
