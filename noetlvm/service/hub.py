"""The workers that are connected to this server: their free slots, what they hold, and what they are to be sent.

It is a cache over the store's commands: a server that dies takes nothing with it, because every claim is a row with an
end, and another server finds the row when that has passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from noetlvm.machine.messages import OpenWork

Part = tuple[str, int, str]
"""Execution, run and iteration of a command."""


class Outbound(NamedTuple):
    """What a worker is sent in one message."""

    commands: list[dict[str, Any]]
    answers: list[list[Any]]
    """Number of a report, and whether it was accepted."""
    stop: list[list[Any]]
    """Commands to leave: execution, run, iteration and lease."""
    beat: int = 0
    """The latest renewal that was performed; 0: none since the last message."""
    lease_seconds: float = 0.0
    """With a beat: how long the leases are good, from the moment when the worker sent it."""

    @property
    def is_empty(self) -> bool:
        return not (self.commands or self.answers or self.stop or self.beat)


class ConnectedWorker:
    """A worker with an open connection."""

    def __init__(self, id: str, pools: Iterable[str], slots: int, notify: Callable[[], None]) -> None:
        self.id = id
        self.pools = frozenset(pools)
        self.slots = slots
        self.held: dict[Part, int] = {}
        """Leases by command."""
        self.readable: set[str] = set()
        """Keys of stored results that its commands refer to."""
        self.bundles: set[str] = set()
        """Bundles that its commands name."""
        self.notify = notify
        self._outbound = Outbound([], [], [])

    @property
    def free(self) -> int:
        return max(0, self.slots - len(self.held))

    def send(self, *, command: dict[str, Any] | None = None, answer: list[Any] | None = None) -> None:
        if command is not None:
            self._outbound.commands.append(command)
        if answer is not None:
            self._outbound.answers.append(answer)
        self.notify()

    def renewed(self, beat: int, lease_seconds: float) -> None:
        """Acknowledge a renewal."""
        self._outbound = self._outbound._replace(beat=beat, lease_seconds=lease_seconds)
        self.notify()

    def stop(self, part: Part, lease: int) -> None:
        """Let the worker leave a command that is withdrawn."""
        if self.held.get(part, 0) <= lease and self.held.pop(part, None) is not None:
            self.refuse(part, lease)

    def refuse(self, part: Part, lease: int) -> None:
        """Let the worker leave a command that it does not hold."""
        self._outbound.stop.append([*part, lease])
        self.notify()

    def take(self) -> Outbound:
        """Return what is to be sent now."""
        taken, self._outbound = self._outbound, Outbound([], [], [])
        return taken


class Hub:
    """All connected workers."""

    def __init__(self) -> None:
        self.workers: dict[str, ConnectedWorker] = {}

    def assign(self, execution_id: str, work: OpenWork, now: float) -> str:
        """Choose a worker for work that a decision opens, so that one transaction opens and claims it; empty: none."""
        if work.not_before > now:
            return ""
        part = (execution_id, work.run, work.iteration)
        holders = [worker for worker in self.workers.values() if part in worker.held]
        for worker in (*holders, *self._by_free_slots()):
            if worker.free and work.pool in worker.pools:
                worker.held[part] = work.lease
                return worker.id
        return ""

    def _by_free_slots(self) -> list[ConnectedWorker]:
        return sorted(self.workers.values(), key=lambda worker: -worker.free)

    def withdrawn(self, part: Part, lease: int) -> None:
        """Let the worker that holds a command leave it."""
        for worker in self.workers.values():
            worker.stop(part, lease)
