"""What an execution has decided and the store does not have yet, as one value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from noetlvm.data.event import Recorded
from noetlvm.machine.messages import CloseWork, Effect, Input, OpenWork, StopWork
from noetlvm.machine.state import Position
from noetlvm.store.interface import ExecutionRequest

Done = Callable[[bool], None]
"""Called once the events of an input are durable, with whether it was accepted."""


class WaitingInput(NamedTuple):
    input: Input
    request: ExecutionRequest | None = None
    """The stored request that it answers."""
    done: Done | None = None

    @property
    def number(self) -> int:
        """Return the number of its request; 0: it answers none."""
        return self.request.number if self.request else 0


class Pending:
    """Decisions of one execution. To undo them, take a new one, and give the inputs back."""

    __slots__ = ("answers", "blobs", "closed", "effects", "events", "inputs", "opened", "sent", "shared", "start_key")

    def __init__(self, start_key: str = "", shared: Sequence[Recorded] = ()) -> None:
        self.start_key = start_key
        """Of a new execution: no other may have it."""
        self.inputs: list[WaitingInput] = []
        """What was decided on."""
        self.events: list[Recorded] = list(shared)
        self.shared = len(shared)
        """How many events are those of the failed execution that a new one retries."""
        self.opened: dict[Position, OpenWork] = {}
        self.closed: dict[Position, int] = {}
        """Lease up to which the command of each thread is withdrawn."""
        self.sent: list[ExecutionRequest] = []
        self.effects: list[Effect] = []
        """To be performed in this process."""
        self.answers: list[tuple[Done, bool]] = []
        self.blobs: list[tuple[str, bytes]] = []
        """Keys and bytes of results that the events refer to."""

    @property
    def acknowledged(self) -> list[int]:
        return [entry.number for entry in self.inputs if entry.request]

    @property
    def has_rows(self) -> bool:
        """Return whether the store has to learn of it."""
        return bool(self.events or self.opened or self.closed or self.sent or self.acknowledged)

    @property
    def is_empty(self) -> bool:
        return not self.inputs

    def open(self, work: OpenWork) -> None:
        self.opened[work.run, work.iteration] = work

    def close(self, work: CloseWork | StopWork) -> None:
        position = work.run, work.iteration
        self.opened.pop(position, None)
        self.closed[position] = work.lease
