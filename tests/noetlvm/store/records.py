"""Small executions and events for the tests of stores."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from noetlvm.data.event import Event, Recorded
from noetlvm.store.interface import Execution


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
    told = Event("task.done", data, run=3, iteration="2.1", task=7, label="fetch", attempt=2)
    return Recorded(seq, f"event-{seq}", 1_700_000_000.5 + seq, told)


def events(numbers: Iterable[int]) -> list[Recorded]:
    return [event(seq, number=seq) for seq in numbers]
