"""The workers that are connected to this server: their free slots, what they hold, and what they are to be sent.

It is a cache over the store's commands: a server that dies takes nothing with it, because every claim is a row with an
end, and another server finds the row when that has passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from noetlvm.data.encoding import encode, references_in
from noetlvm.machine.fold import covers
from noetlvm.machine.messages import OpenWork
from noetlvm.protocol.messages import Part, ServerMessage, lease_form


class CommandGrant(NamedTuple):
    """What a worker may do because it holds a command."""

    bundle: str
    work: dict[str, Any]
    """As messages name it."""
    unit_pool: str = ""
    """Of a command of a local unit: the pool of the unit's other commands."""

    @property
    def results(self) -> list[str]:
        """Keys of stored results that the command refers to. Few workers read one, so nobody else pays for it."""
        return list(references_in(encode(self.work)))


_ENDED_GRANTS_MAX = 100
"""Grants of commands that have ended; they are removed together."""


class ConnectedWorker:
    """A worker with an open connection."""

    def __init__(self, id: str, pools: Iterable[str], slots: int, notify: Callable[[], None]) -> None:
        self.id = id
        self.pools = frozenset(pools)
        self.slots = slots
        self.held: dict[Part, int] = {}
        """Leases by command."""
        self.leaving: dict[Part, int] = {}
        """Leases of commands whose last report is being decided: the worker has done with them."""
        self._grants: dict[Part, CommandGrant] = {}
        """What it may read and claim, by the command that it is for."""
        self.is_silent = False
        """A lease of it has ended, and it has sent nothing since: it gets no commands."""
        self.notify = notify
        self._outbound = ServerMessage([], [], [])

    @property
    def free(self) -> int:
        return 0 if self.is_silent else max(0, self.slots - len(self.held))

    def grant(self, part: Part, grant: CommandGrant) -> None:
        """Let a worker read what a command that it holds refers to, and claim the other commands of its unit."""
        if len(self._grants) > 2 * len(self.held) + _ENDED_GRANTS_MAX:
            self._grants = {part: grant for part, grant in self._grants.items() if part in self.held}
        self._grants[part] = grant

    @property
    def grants(self) -> list[CommandGrant]:
        """What the commands grant that it holds; any thread may look."""
        return [grant for part, grant in list(self._grants.items()) if part in self.held]

    @property
    def unit_pools(self) -> set[str]:
        """The pools of the local units that it has commands of."""
        if not self.slots or self.is_silent:
            return set()
        return {grant.unit_pool for grant in self.grants if grant.unit_pool}

    def report(self, part: Part, lease: int, *, is_last: bool) -> bool:
        """Take note of a report; return False if the worker does not hold the command."""
        if self.held.get(part) != lease:
            return False
        if is_last:
            self.leaving[part] = self.held.pop(part)
        return True

    def answer(self, number: int, part: Part, lease: int, *, accepted: bool, is_open: bool) -> None:
        """Answer a report, now that it is decided; `is_open`: the command stays with the worker."""
        if self.leaving.get(part) == lease:
            del self.leaving[part]
        if not is_open and self.held.get(part) == lease:
            del self.held[part]
        self.send(answer={"number": number, "accepted": accepted})

    def send(self, *, command: dict[str, Any] | None = None, answer: dict[str, Any] | None = None) -> None:
        if command is not None:
            self._outbound.commands.append(command)
        if answer is not None:
            self._outbound.answers.append(answer)
        self.notify()

    def renewed(self, beat: int, lease_seconds: float) -> None:
        """Acknowledge a renewal."""
        self._outbound = self._outbound._replace(beat=beat, lease_seconds=lease_seconds)
        self.notify()

    def stop(self, part: Part, lease: int) -> bool:
        """Let the worker leave a command that is withdrawn; return whether it had it."""
        if part not in self.held or self.held[part] > lease:
            return False
        del self.held[part]
        self.refuse(part, lease)
        return True

    def lose(self, part: Part, lease: int) -> None:
        """Let the worker leave a command whose lease the store no longer has."""
        if self.held.get(part, 0) <= lease:
            self.held.pop(part, None)
            self.refuse(part, lease)

    def refuse(self, part: Part, lease: int) -> None:
        """Let the worker leave a command that it does not hold."""
        self._outbound.stop.append(lease_form(part, lease))
        self.notify()

    def take(self) -> ServerMessage:
        """Return what is to be sent now."""
        taken, self._outbound = self._outbound, ServerMessage([], [], [])
        return taken


class Hub:
    """All connected workers."""

    def __init__(self) -> None:
        self.workers: dict[str, ConnectedWorker] = {}
        self._assigned: dict[tuple[Part, int], str] = {}
        """Workers of commands that the next write opens."""

    def assign(self, execution_id: str, work: OpenWork, now: float) -> str:
        """Choose a worker for work that a decision opens, so that one transaction opens and claims it; empty: none."""
        part = (execution_id, work.run, work.iteration)
        if work.not_before > now or work.again:
            self._drop(part, work.lease)  # a write that failed may have assigned it
            return ""
        chosen = self.workers.get(self._assigned.get((part, work.lease), "")) or self._choose(part, work)
        if chosen is None:
            return ""
        chosen.held[part] = work.lease
        self._assigned[part, work.lease] = chosen.id
        return chosen.id

    def _choose(self, part: Part, work: OpenWork) -> ConnectedWorker | None:
        """Choose the worker that has the unit, whether it has a free slot or not; else the one with most of them."""
        awake = [worker for worker in self.workers.values() if worker.slots and not worker.is_silent]
        able = [worker for worker in awake if work.pool in worker.pools]
        if work.is_local:
            for worker in able:
                if any(
                    worker_part[:2] == part[:2] and covers(work.unit, worker_part[2]) for worker_part in worker.held
                ):
                    return worker
        return max((worker for worker in able if worker.free), key=lambda worker: worker.free, default=None)

    def take_assigned(self, part: Part, lease: int) -> ConnectedWorker | None:
        """Return the worker that a command was assigned to, now that this is written."""
        return self.workers.get(self._assigned.pop((part, lease), ""))

    def drop_assigned(self) -> None:
        """Forget assignments that were not written: another server has decided."""
        for part, lease in list(self._assigned):
            self._drop(part, lease)

    def _drop(self, part: Part, lease: int) -> None:
        worker = self.workers.get(self._assigned.pop((part, lease), ""))
        if worker is not None and worker.held.get(part) == lease:
            del worker.held[part]

    def expired(self, part: Part, lease: int) -> None:
        """Withdraw a command whose lease has ended; its worker gets nothing until it sends something."""
        for worker in self.workers.values():
            if worker.stop(part, lease):
                worker.is_silent = True

    def withdrawn(self, part: Part, lease: int) -> None:
        """Let the worker that holds a command leave it."""
        for worker in self.workers.values():
            worker.stop(part, lease)
