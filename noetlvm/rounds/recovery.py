"""The state of an execution from the store: the last snapshot, if there is one, and the events after it."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from noetlvm.machine.fold import apply
from noetlvm.machine.loaded import Bundle
from noetlvm.machine.state import LAYOUT, State
from noetlvm.store.interface import CatalogueReader, Execution, StoreError, StoreReader

SNAPSHOT_EVENTS = 5_000
"""An execution of fewer events has no snapshot: folding them takes no time."""

_SNAPSHOT_SHARE = 4
_UNFIT = (AttributeError, LookupError, TypeError, ValueError)
"""Errors that folding a malformed event can raise."""


def recovered(reader: StoreReader, execution_id: str, bundle: str, until: int | None = None) -> State:
    """Return the state after the last event, or after the one of number `until`; every open thread is ready in it."""
    snapshot = reader.snapshot(execution_id, bundle, until)
    state = State.from_data(snapshot.data) if snapshot and snapshot.data.get("layout") == LAYOUT else State()
    fold(reader, execution_id, state, until)
    state.touched = {}
    return state


def folded(reader: StoreReader, execution_id: str, until: int | None = None) -> State:
    """Return the state that all events make, without a snapshot."""
    state = State()
    fold(reader, execution_id, state, until)
    state.touched = {}
    return state


def fold(reader: StoreReader, execution_id: str, state: State, until: int | None = None) -> None:
    """Apply the events that a state does not contain yet. Raises StoreError for one that cannot be applied."""
    for recorded in reader.events(execution_id, state.seq, until):
        try:
            apply(state, recorded.event, recorded.timestamp)
        except _UNFIT as problem:
            raise StoreError(
                f"event {recorded.seq} of {execution_id} cannot be folded ({type(problem).__name__}: {problem}): "
                "the log is damaged, or a later noetlvm wrote it"
            ) from problem


def is_orphan(reader: StoreReader, row: Execution) -> bool:
    """Return whether the parent of an execution has ended before it."""
    parent = reader.execution(row.parent) if row.parent else None
    return parent is not None and parent.ended is not None


def wants_snapshot(seq: int, last: int, least: int) -> bool:
    """Return whether one is due: the longer the log, the rarer; their total cost is proportional to it."""
    return seq - last >= max(least, last // _SNAPSHOT_SHARE)


BUNDLES_MAX = 100
"""Programs in memory besides those of running executions."""


class BundleCache:
    """A cache of a store's bundles, each read and verified once, with the least recent evicted. Thread-safe."""

    def __init__(self, reader: CatalogueReader, most: int = BUNDLES_MAX) -> None:
        self._reader = reader
        self._most = most
        self._bundles: OrderedDict[str, Bundle] = OrderedDict()
        self._lock = Lock()

    def __contains__(self, id: str) -> bool:
        return id in self._bundles

    def put(self, bundle: Bundle) -> None:
        with self._lock:
            self._bundles[bundle.id] = bundle
            self._bundles.move_to_end(bundle.id)
            while len(self._bundles) > self._most:
                self._bundles.popitem(last=False)

    def known(self, id: str) -> Bundle | None:
        """Return a bundle if it is in memory."""
        return self._bundles.get(id)

    def get(self, id: str) -> Bundle | None:
        """Return a bundle; nothing if the store has none. Raises BundleError."""
        with self._lock:
            found = self._bundles.get(id)
        if found is None:
            data = self._reader.bundle(id)
            found = None if data is None else Bundle.of(data)
        if found is not None:
            self.put(found)
        return found
