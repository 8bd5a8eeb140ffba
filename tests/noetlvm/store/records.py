"""Small executions, events and appends for the tests of stores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from noetlvm.data.event import Event, Recorded
from noetlvm.store.interface import Append, Execution, Store


def execution(execution_id: str = "x", **known: Any) -> Execution:
    values: dict[str, Any] = {
        "bundle": "sha256:b",
        "name": "hello",
        "path": "examples/hello",
        "status": "running",
        "started": 1_700_000_000.25,
    }
    return Execution(execution_id, **(values | known))


def event(seq: int, **data: Any) -> Recorded:
    made = Event("task.done", data, run=3, iteration="2.1", task=7, label="fetch", attempt=2)
    return Recorded(seq, f"event-{seq}", 1_700_000_000.5 + seq, made)


def events(numbers: Iterable[int]) -> list[Recorded]:
    return [event(seq, number=seq) for seq in numbers]


def append(row: Execution, known_seq: int, recorded: Sequence[Recorded] = (), **more: Any) -> Append:
    return Append(row._replace(seq=known_seq + len(recorded)), known_seq, recorded, **more)


def add(store: Store, row: Execution, known_seq: int, count: int = 1, **more: Any) -> set[str]:
    """Write `count` events of one execution after the known one, and return the conflicts."""
    return store.write([append(row, known_seq, events(range(known_seq + 1, known_seq + count + 1)), **more)])
