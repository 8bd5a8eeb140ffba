"""The events that a decision makes, applied to the state as they are made."""

from __future__ import annotations

from typing import Any

from noetlvm.data.event import Event
from noetlvm.machine.fold import apply
from noetlvm.machine.state import State

_OPENS_GATES = frozenset({"ctx.patched", "step.done", "step.failed", "loop.done"})


class Journal:
    """Collects events until somebody takes them."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.now = state.now
        """When what is told next is recorded: whoever records it says so beforehand."""
        self.changes = 0
        """Counts what may open a gate: changes of `ctx` and ends of steps (S30)."""
        self._made: list[Event] = []

    def tell(self, event: Event) -> None:
        """Let an event happen."""
        apply(self.state, event, self.now)
        self._made.append(event)
        if event.name in _OPENS_GATES:
            self.changes += 1

    def emit(self, name: str, data: dict[str, Any], run: int = 0, iteration: str = "") -> None:
        """Let an event happen that is about no task."""
        self.tell(Event(name, data, run, iteration))

    def take(self) -> list[Event]:
        """Return the events since the last time."""
        made, self._made = self._made, []
        return made
