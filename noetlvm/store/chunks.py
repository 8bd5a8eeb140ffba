"""The log of an execution as rows: the events of one append are a chunk, those of a large append several.

A chunk is encoded once, holds once what its events share, and has one checksum, which continues that of the one before.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, repeat, starmap
from threading import Lock
from types import NoneType
from typing import Any, NamedTuple, TypeAlias
from zlib import crc32

from noetlvm.data.encoding import decode, encode, encode_listing_references
from noetlvm.data.event import Event, Recorded, counted_ids
from noetlvm.limits import EVENT_BYTES_MAX
from noetlvm.store.interface import DamagedError, Execution, StoreError

REMEDY = "`noetlvm fsck` checks everything"

CHUNK_EVENTS = 1_000
"""Events of a chunk at most. A reader decodes whole chunks."""

CHUNK_BYTES = EVENT_BYTES_MAX
"""Bytes of a chunk with more than one event. So an event that is too large is alone in its chunk."""

UNREADABLE = (ValueError, TypeError, AttributeError, LookupError)
"""Raised by what decodes rows when they do not hold what was written."""


class Chunk(NamedTuple):
    """Events that follow each other, encoded."""

    first: int
    """Number of its first event."""
    last: int
    data: bytes


ChunkRow: TypeAlias = tuple[int, int, bytes, int | None]
"""A chunk with its checksum; None: it has none."""


# ---- encoding


def encoded_chunks(events: Sequence[Recorded], known_seq: int, references: set[str]) -> list[Chunk]:
    """Return the chunks of events, and note the results that they refer to. Raises StoreError for a large event."""
    chunks: list[Chunk] = []
    for start in range(0, len(events), CHUNK_EVENTS):
        _encode(events[start : start + CHUNK_EVENTS], known_seq + start + 1, references, chunks)
    return chunks


def _encode(events: Sequence[Recorded], first: int, references: set[str], chunks: list[Chunk]) -> None:
    seqs, ids, times, said = zip(*events, strict=True)
    size = len(events)
    if seqs != tuple(range(first, first + size)):
        expected, found = next(pair for pair in zip(count(first), seqs, strict=False) if pair[0] != pair[1])
        raise ValueError(f"event {expected} must come next, not {found}")
    time = float(times[0]) if times.count(times[0]) == size else [*map(float, times)]
    id = ids[0] if counted_ids(ids[0], size) == [*ids] else ids
    data, found = encode_listing_references([time, [*id] if id is ids else id, [*map(list, said)]])
    if len(data) > CHUNK_BYTES:
        if size > 1:
            half = size // 2
            _encode(events[:half], first, references, chunks)
            _encode(events[half:], first + half, references, chunks)
            return
        _require_small(said[0])
    if found:
        references.update(found)
    chunks.append(Chunk(first, first + size - 1, data))


def _require_small(event: Event) -> None:
    size = len(encode(event.data))
    if size > EVENT_BYTES_MAX:
        allowed = f"{size:,} bytes, where {EVENT_BYTES_MAX:,} are allowed"
        raise StoreError(f"{event.name} holds {allowed}; store it as a result")


def decoded(first: int, data: bytes) -> list[Recorded]:
    """Return the events of a chunk."""
    time, ids, said = decode(data)
    times = repeat(time) if type(time) is float else time
    if type(ids) is str:
        ids = counted_ids(ids, len(said))
    return list(map(Recorded, count(first), ids, times, starmap(Event, said)))


# ---- checksums

CHECKSUMS_VARIABLE = "NOETLVM_CHECKSUMS"
_SUMS_CACHED = 10_000


def checksums_wanted() -> bool:
    """Return whether chunks get checksums: yes, unless the environment sets `off`. Raises StoreError."""
    given = os.environ.get(CHECKSUMS_VARIABLE) or "on"
    if given not in ("on", "off"):
        raise StoreError(f"{CHECKSUMS_VARIABLE} is `{given}`; give on or off")
    return given == "on"


def first_sum(execution_id: str) -> int:
    """Return the checksum that precedes the first chunk of an execution."""
    return crc32(execution_id.encode())


def summed(chunks: Iterable[Chunk], sum_before: int | None) -> list[ChunkRow]:
    """Return chunks with checksums that continue one; None: without."""
    rows: list[ChunkRow] = []
    for first, last, data in chunks:
        sum_before = None if sum_before is None else crc32(data, sum_before)
        rows.append((first, last, data, sum_before))
    return rows


class LastSums:
    """Checksums of the last chunks of executions at work: a cache, so that a write need not read them. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._sums: OrderedDict[str, tuple[int, int]] = OrderedDict()

    def of(self, execution_id: str, known_seq: int) -> int | None:
        """Return the checksum that the chunk after an event continues; None: it must be read from the store."""
        if not known_seq:
            return first_sum(execution_id)
        seq, known = self._sums.get(execution_id, (0, 0))
        return known if seq == known_seq else None

    def note(self, execution: Execution, last: int | None) -> None:
        """Note the checksum of what was written; one that ended is forgotten."""
        with self._lock:
            self._sums.pop(execution.execution_id, None)
            if last is not None and execution.ended is None:
                self._sums[execution.execution_id] = execution.seq, last
                if len(self._sums) > _SUMS_CACHED:
                    self._sums.popitem(last=False)


# ---- reading what may be damaged

_ROW_TYPES = (int, int, bytes, (int, NoneType))
_EVENT_TYPES = [str, dict, int, str, int, str, int]


class ChunkError(Exception):
    """A chunk is not what was written. The message gives the reason."""


def checked(row: Sequence[Any], sum_before: int | None) -> list[Recorded]:
    """Return the events of a row. Raises ChunkError. Where the checksum before is unknown, none is compared."""
    if not has_types(row, _ROW_TYPES):
        raise ChunkError("a column has another type")
    first, last, data, found = row
    if found is not None and sum_before is not None and crc32(data, sum_before) != found:
        raise ChunkError("its checksum differs")
    try:
        events = decoded(first, data)
    except UNREADABLE as problem:
        raise ChunkError(f"its data cannot be decoded ({problem})") from problem
    if len(events) != last - first + 1 or not all(map(_is_event, events)):
        raise ChunkError("its data are not those events")
    return events


def _is_event(one: Recorded) -> bool:
    is_timed = type(one.timestamp) in (float, int) and is_time(one.timestamp)
    return is_timed and type(one.event_id) is str and [*map(type, one.event)] == _EVENT_TYPES


_TIME_END = 253_402_128_000
"""Two days before the year 10,000, in which no calendar of Python has a date, in any time zone."""


def is_time(seconds: float) -> bool:
    """Return whether a number can be a time at which something was written."""
    return 0 <= seconds < _TIME_END


def has_types(row: Sequence[Any], types: Sequence[Any]) -> bool:
    """Return whether the columns of a row have the types that were written."""
    return all(isinstance(value, expected) for value, expected in zip(row, types, strict=True))


def known_sum(found: Any) -> int | None:
    """Return the checksum of a stored chunk; None: it has none, or what it has is none."""
    return found if isinstance(found, int) else None


def span(first: int, last: int) -> str:
    """Return the events of a chunk as messages name them."""
    return f"event {first}" if first == last else f"events {first} to {last}"


def read_events(
    execution_id: str, where: str, rows: Iterable[Sequence[Any]], after: int, last: int
) -> Iterator[Recorded]:
    """Yield the events of rows, up to `last`. Raises DamagedError at the first chunk that is missing or damaged.

    The rows begin early enough for the checksum before the first wanted event: two chunks that begin before it.
    """
    if after >= last:
        return
    expected = 1
    sum_before: int | None = first_sum(execution_id)
    for row in rows:
        begin, end = row[0], row[1]
        if begin <= after and begin != expected:  # reading begins here, or what is missing is not wanted
            expected, sum_before = begin, None
        if begin != expected:
            break
        if type(end) is not int or end > after:
            try:
                events = checked(row, sum_before)
            except ChunkError as problem:
                what = span(begin, end if type(end) is int else begin)
                raise DamagedError(f"{where}: {what} of {execution_id} is damaged: {problem}; {REMEDY}") from problem
            yield from events[max(after + 1 - begin, 0) : last + 1 - begin]
        expected, sum_before = end + 1, known_sum(row[3])
    if expected <= last:
        raise DamagedError(f"{where}: event {expected} of {last} of {execution_id} is missing; {REMEDY}")
