"""A store that forgets: for tests, and for runs that nobody needs to resume.

It keeps what SQLite keeps, encoded just the same, so that a run that works here works there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from noetlvm.data.encoding import decode
from noetlvm.data.event import Recorded
from noetlvm.store.buffered import BufferedStore, EventRow, Pending, recorded_event, required_execution
from noetlvm.store.interface import Action, ControlRequest, Dispatch, Durability, Execution, Snapshot


@dataclass(slots=True)
class _Hold:
    """A command of the outbox, and who holds it until when."""

    dispatch: Dispatch
    worker: str = ""
    until: float = 0.0


@dataclass(slots=True)
class _Kept:
    """Everything of one execution."""

    execution: Execution
    events: list[EventRow] = field(default_factory=list)
    snapshots: dict[tuple[str, int], bytes] = field(default_factory=dict)


class MemoryStore(BufferedStore):
    """A store in dictionaries. Like any other it shows only what is committed."""

    def __init__(self, durability: Durability = "full") -> None:
        super().__init__(durability)
        self._kept: dict[str, _Kept] = {}
        self._bundles: dict[str, bytes] = {}
        self._holds: dict[tuple[str, int, str], _Hold] = {}
        self._requests: dict[int, ControlRequest] = {}
        self._requested = 0

    # ---- reading

    def execution(self, execution_id: str) -> Execution | None:
        kept = self._kept.get(execution_id)
        return kept.execution if kept else None

    def executions(self, *, limit: int | None = None, parent: str | None = None) -> list[Execution]:
        latest = [kept.execution for kept in reversed(list(self._kept.values()))]
        return [execution for execution in latest if parent is None or execution.parent == parent][:limit]

    def unfinished(self) -> list[Execution]:
        return [kept.execution for kept in self._kept.values() if kept.execution.ended is None]

    def events(self, execution_id: str, after: int = 0, until: int | None = None) -> Iterator[Recorded]:
        kept = self._kept.get(execution_id)
        yield from map(recorded_event, kept.events[after:until] if kept else ())

    def bundle(self, bundle: str) -> bytes | None:
        return self._bundles.get(bundle)

    def snapshot(self, execution_id: str, bundle: str, until: int | None = None) -> Snapshot | None:
        kept = self._kept.get(execution_id)
        found = [
            (seq, data)
            for (made_with, seq), data in (kept.snapshots.items() if kept else ())
            if made_with == bundle and (until is None or seq <= until)
        ]
        if not found:
            return None
        seq, data = max(found)
        return Snapshot(bundle, seq, decode(data))

    def close(self) -> None:
        self._refusal = "the store is closed"

    # ---- writing

    def _committed_seq(self, execution_id: str) -> int:
        kept = self._kept.get(execution_id)
        return kept.execution.seq if kept else 0

    def _base(self, execution_id: str) -> int:
        return 0  # each has a list of its own

    def _write(self, pending: Pending) -> None:
        for bundle, data in pending.bundles.items():
            self._bundles.setdefault(bundle, data)
        for execution_id, execution in pending.executions.items():
            kept = self._kept.setdefault(execution_id, _Kept(execution))
            kept.execution = execution
            kept.events += pending.events[execution_id]
        for execution_id in pending.dropped:
            if execution_id in self._kept:
                self._kept[execution_id].snapshots.clear()
        for execution_id, bundle, seq, data in pending.snapshots:
            self._kept[execution_id].snapshots[bundle, seq] = data
        for is_opened, dispatch in pending.changes:
            self._change(dispatch, is_opened=is_opened)
        for number in pending.met:
            self._requests.pop(number, None)

    def _change(self, dispatch: Dispatch, *, is_opened: bool) -> None:
        part = dispatch[:3]
        hold = self._holds.get(part)
        if hold is not None:
            is_old = hold.dispatch.lease > dispatch.lease or (is_opened and hold.dispatch.lease == dispatch.lease)
            if is_old:
                return
            del self._holds[part]
        if is_opened:
            self._holds[part] = _Hold(dispatch)

    # ---- commands and their leases

    def claim(self, worker: str, until: float, limit: int = 1) -> list[Dispatch]:
        with self._writing:
            self._require_usable()
            free = [hold for hold in self._holds.values() if not hold.worker][:limit]
            for hold in free:
                hold.worker, hold.until = worker, until
            return [hold.dispatch for hold in free]

    def renew(self, worker: str, held: Sequence[Dispatch], until: float) -> list[Dispatch]:
        with self._writing:
            self._require_usable()
            return [dispatch for dispatch in held if self._renewed(worker, dispatch, until)]

    def _renewed(self, worker: str, dispatch: Dispatch, until: float) -> bool:
        hold = self._holds.get(dispatch[:3])
        if hold is None or hold.dispatch != dispatch or hold.worker != worker:
            return False
        hold.until = until
        return True

    def expired(self, now: float) -> list[Dispatch]:
        return [hold.dispatch for hold in self._holds.values() if hold.worker and hold.until <= now]

    # ---- requests from outside

    def request(self, execution_id: str, action: Action) -> None:
        with self._writing:
            self._require_usable()
            required_execution(self.execution(execution_id), execution_id, action)
            self._requested += 1
            self._requests[self._requested] = ControlRequest(self._requested, execution_id, action)

    def requests(self) -> list[ControlRequest]:
        return list(self._requests.values())
