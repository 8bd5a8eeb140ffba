"""The state of an execution from the store: the last snapshot, if there is one, and the events after it."""

from __future__ import annotations

from noetlvm.machine.fold import apply
from noetlvm.machine.state import LAYOUT, State
from noetlvm.store.interface import Execution, StoreError, StoreReader

SNAPSHOT_EVENTS = 5_000
"""An execution of fewer events has no snapshot: folding them takes no time."""

_SNAPSHOT_SHARE = 4
_UNFIT = (AttributeError, LookupError, TypeError, ValueError)
"""What comes of an event that is not what its name says."""


def recovered(reader: StoreReader, execution_id: str, bundle: str, until: int | None = None) -> State:
    """Return the state after the last event, or after the one of number `until`; every open thread is ready in it."""
    snapshot = reader.snapshot(execution_id, bundle, until)
    state = State.from_data(snapshot.data) if snapshot and snapshot.data.get("layout") == LAYOUT else State()
    fold(reader, execution_id, state, until)
    state.touched = {}
    return state


def folded(reader: StoreReader, execution_id: str, until: int | None = None) -> State:
    """Return the state that all events make, whatever a snapshot says."""
    state = State()
    fold(reader, execution_id, state, until)
    state.touched = {}
    return state


def fold(reader: StoreReader, execution_id: str, state: State, until: int | None = None) -> None:
    """Apply the events that a state does not know yet. Raises StoreError at one that cannot be."""
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


def wants_snapshot(seq: int, last: int) -> bool:
    """Return whether one is due: the longer the log, the rarer; their total cost is proportional to it."""
    return seq - last >= max(SNAPSHOT_EVENTS, last // _SNAPSHOT_SHARE)
