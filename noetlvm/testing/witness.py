"""Holds the machine to its word: state is the fold of the log and nothing else."""

from __future__ import annotations

from noetlvm.data.event import Event
from noetlvm.machine.fold import apply
from noetlvm.machine.journal import Journal
from noetlvm.machine.state import State


class NotTheFold(AssertionError):  # noqa: N818 - it says what happened
    """The live state differs from what the log says."""


class Witness(Journal):
    """Folds every event a second time beside the live state, and compares."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._shadow = State.from_data(state.to_data())

    def tell(self, event: Event) -> None:
        super().tell(event)
        apply(self._shadow, event, self.now)
        live = self.state.to_data()
        if self._shadow.to_data() != live or State.from_data(live).to_data() != live:
            raise NotTheFold(f"after event {self.state.seq}, `{event.name}`")
