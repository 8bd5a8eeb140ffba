"""The events of one decision, folded into the state as they are made."""

from __future__ import annotations

from typing import Any

from noetlvm.data.event import Event
from noetlvm.machine.fold import apply
from noetlvm.machine.state import State


class Journal:
    """Collects the events of one decision."""

    __slots__ = ("events", "now", "state")

    def __init__(self, state: State, now: float) -> None:
        self.state = state
        self.now = now
        """When they are recorded."""
        self.events: list[Event] = []

    def record(self, event: Event) -> None:
        apply(self.state, event, self.now)
        self.events.append(event)

    def emit(self, name: str, data: dict[str, Any], run: int = 0, iteration: str = "") -> None:
        """Record an event that is about no task."""
        self.record(Event(name, data, run, iteration))
