"""The half of a store that every store shares: it checks what is to be written and holds it until the commit.

How and where it is written is the business of the other half: `_write`, which puts a whole `Pending` or nothing.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from noetlvm.data.encoding import decode, encode
from noetlvm.data.event import Event, Recorded
from noetlvm.limits import EVENT_BYTES_MAX
from noetlvm.store.interface import ConflictError, ControlRequest, Dispatch, Durability, Execution, Snapshot, StoreError

EventRow: TypeAlias = tuple[int, str, float, str, int, str, int, str, int, bytes]
"""An event as it is kept: place, event_id, timestamp, name, run, iteration, task, label, attempt, encoded data."""


def event_rows(events: Sequence[Recorded], base: int) -> list[EventRow]:
    """Return events as they are kept, each at the place of its number after `base`.

    Raises UnencodableError for what is no data, StoreError for what is too large.
    """
    rows = []
    for seq, event_id, timestamp, (name, data, run, iteration, task, label, attempt) in events:
        encoded = encode(data)
        if len(encoded) > EVENT_BYTES_MAX:
            size = f"{len(encoded):,} bytes, where {EVENT_BYTES_MAX:,} may be"
            raise StoreError(f"{name} holds {size}; store it as a result")
        rows.append((base + seq, event_id, timestamp, name, run, iteration, task, label, attempt, encoded))
    return rows


def recorded_event(row: Sequence[Any]) -> Recorded:
    """Return the event of a row."""
    seq, event_id, timestamp, name, run, iteration, task, label, attempt, data = row
    return Recorded(seq, event_id, timestamp, Event(name, decode(data), run, iteration, task, label, attempt))


class Pending:
    """Everything that waits for one commit."""

    __slots__ = ("bundles", "changes", "dropped", "events", "executions", "met", "snapshots")

    def __init__(self) -> None:
        self.bundles: dict[str, bytes] = {}
        self.executions: dict[str, Execution] = {}
        """How each stands after its last decision: what lies between needs no row."""
        self.events: dict[str, list[EventRow]] = {}
        self.changes: list[tuple[bool, Dispatch]] = []
        """Commands opened (True) and closed, in their order."""
        self.met: list[int] = []
        """Numbers of control requests."""
        self.dropped: list[str] = []
        """Executions whose snapshots go, before the new ones come."""
        self.snapshots: list[tuple[str, str, int, bytes]] = []

    @property
    def is_empty(self) -> bool:
        # Nothing reaches the other lists without an execution.
        return not (self.executions or self.bundles or self.snapshots or self.dropped)


class BufferedStore(ABC):
    """Checks and buffers. Appending and committing may happen in two threads."""

    def __init__(self, durability: Durability = "full") -> None:
        self.durability: Durability = durability
        self._pending = Pending()
        self._heads: dict[str, int] = {}
        """Numbers of the last events of executions at work, those that wait for their commit included."""
        self._buffering = threading.Lock()
        self._writing = threading.RLock()
        """Held from taking the buffer until it is written, so that commits come in the order of their appends."""
        self._refusal = ""

    # ---- the other half

    @abstractmethod
    def _committed_seq(self, execution_id: str) -> int:
        """Return the number of the last committed event; 0 for an unknown execution."""

    @abstractmethod
    def _base(self, execution_id: str) -> int:
        """Return the place before that of an execution's first event; an unknown one gets room of its own."""

    @abstractmethod
    def _write(self, pending: Pending) -> None:
        """Write everything in one transaction, or raise StoreError and write nothing."""

    # ---- what a decision changes

    def append(
        self,
        execution_id: str,
        expected_seq: int,
        events: Sequence[Recorded],
        execution: Execution,
        *,
        opened: Iterable[Dispatch] = (),
        closed: Iterable[Dispatch] = (),
        done: Iterable[ControlRequest] = (),
    ) -> None:
        self._require_usable()
        if execution.execution_id != execution_id:
            raise ValueError(f"events of {execution_id} come with how {execution.execution_id} stands")
        with self._buffering:
            last = self._checked(execution_id, expected_seq, events)
            rows = event_rows(events, self._base(execution_id))
            pending = self._pending
            if execution_id in pending.events:
                pending.events[execution_id] += rows
            else:
                pending.events[execution_id] = rows
            pending.executions[execution_id] = execution if execution.seq == last else execution._replace(seq=last)
            if closed or opened:
                pending.changes += [(False, dispatch) for dispatch in closed]
                pending.changes += [(True, dispatch) for dispatch in opened]
            if done:
                pending.met += [request.number for request in done]
            self._heads[execution_id] = last

    def put_bundle(self, bundle: str, data: bytes) -> None:
        self._require_usable()
        with self._buffering:
            self._pending.bundles[bundle] = data

    def put_snapshot(self, execution_id: str, snapshot: Snapshot) -> None:
        self._require_usable()
        data = encode(snapshot.data)
        with self._buffering:
            if not 0 < snapshot.seq <= self._head(execution_id):
                raise ConflictError(f"{execution_id} has no event {snapshot.seq} that a snapshot could follow")
            self._pending.snapshots.append((execution_id, snapshot.bundle, snapshot.seq, data))

    def drop_snapshots(self, execution_id: str) -> None:
        self._require_usable()
        with self._buffering:
            pending = self._pending
            pending.snapshots = [row for row in pending.snapshots if row[0] != execution_id]
            pending.dropped.append(execution_id)

    def commit(self) -> None:
        with self._writing:
            self._require_usable()
            if self._pending.is_empty:
                return
            with self._buffering:
                pending, self._pending = self._pending, Pending()
            try:
                self._write(pending)
            except (
                BaseException
            ) as error:  # whatever stopped it, the buffer is gone, and later events would leave a gap
                self._refusal = f"an earlier commit failed ({error!r}); open the store anew"
                raise
            self._forget_ended(pending)

    # ---- checks

    def _require_usable(self) -> None:
        if self._refusal:
            raise StoreError(self._refusal)

    def _head(self, execution_id: str) -> int:
        known = self._heads.get(execution_id)
        return self._committed_seq(execution_id) if known is None else known

    def _checked(self, execution_id: str, expected_seq: int, events: Sequence[Recorded]) -> int:
        """Return the number of the last event once these are added; raise ConflictError if they do not fit."""
        head = self._head(execution_id)
        if head != expected_seq:
            raise ConflictError(f"{execution_id} stands at event {head}, not at {expected_seq}")
        for seq, recorded in enumerate(events, head + 1):
            if recorded[0] != seq:
                raise ConflictError(f"{execution_id}: event {seq} must come next, not {recorded[0]}")
        return head + len(events)

    def _forget_ended(self, pending: Pending) -> None:
        """Keep no heads of executions that have ended: a process may run for long."""
        with self._buffering:
            for execution_id, execution in pending.executions.items():
                if execution.ended is not None and self._heads.get(execution_id) == execution.seq:
                    del self._heads[execution_id]


def required_execution(execution: Execution | None, execution_id: str, action: str) -> None:
    """Raise StoreError unless there is something to pause, resume or cancel."""
    if execution is None:
        raise StoreError(f"there is no execution {execution_id}; `noetlvm list` shows those there are")
    if execution.ended is not None:
        raise StoreError(f"execution {execution_id} has ended ({execution.status}): there is nothing to {action}")
