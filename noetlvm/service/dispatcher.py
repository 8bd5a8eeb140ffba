"""Brings commands to workers: performs the effects of decisions, claims what waits, lets workers go."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from noetlvm.machine.decide import work_for
from noetlvm.machine.messages import Effect, OpenWork, StopWork, Work
from noetlvm.protocol.messages import Part, work_form
from noetlvm.rounds.active import Active, unit_pool
from noetlvm.rounds.intake import Intake
from noetlvm.rounds.rounds import Round, Rounds
from noetlvm.service.hub import CommandGrant, ConnectedWorker, Hub
from noetlvm.service.leases import Leases
from noetlvm.service.server_pace import ServerPace
from noetlvm.service.wake_line import WakeLine
from noetlvm.store.interface import QueuedCommand, StoreError
from noetlvm.wake.interface import pool_topic

UNIT_COMMANDS = 1_000
"""Commands of local units that a worker claims at once, whatever its slots: they wait for them there."""


class Dispatcher:
    """The commands of this server's workers. What is asynchronous here needs a turn, but for `renew`."""

    def __init__(self, rounds: Rounds, intake: Intake, leases: Leases, pace: ServerPace, line: WakeLine) -> None:
        self.hub = Hub()
        self._rounds = rounds
        self._intake = intake
        self._leases = leases
        self._pace = pace
        self._line = line
        self._backlog: set[str] = set()
        """Pools that may have commands which no worker had a slot for."""
        self._left: list[ConnectedWorker] = []
        """Workers that left since the last turn."""
        self._returned: list[tuple[ConnectedWorker, QueuedCommand]] = []
        """Commands that could not be handed out in the last turn."""
        self._taken_over: list[tuple[ConnectedWorker, QueuedCommand]] = []
        """Commands that workers have from earlier connections, since the last turn."""

    # ---- effects

    def assign(self, active: Active, work: OpenWork) -> tuple[str, float]:
        """Choose the worker of a command in the transaction that opens it."""
        worker = self.hub.assign(active.execution_id, work, self._pace.now())
        return worker, self._leases.end() if worker else 0.0

    def prepare(self, _round: Round) -> bool:
        """Begin nothing before the write: workers are elsewhere."""
        return False

    def perform(self, effects: Sequence[tuple[Active, Effect]]) -> None:
        for active, effect in effects:
            _PERFORMED[type(effect)](self, active, effect)
        self.hub.drop_assigned()

    def _open(self, active: Active, work: OpenWork) -> None:
        part = (active.execution_id, work.run, work.iteration)
        worker = self.hub.take_assigned(part, work.lease)
        if worker is not None:
            if not self._hand_out(worker, part, work.lease):
                self._returned.append((worker, QueuedCommand(*part, work.lease)))
            return
        self._backlog.add(work.pool)
        self._line.announce(pool_topic(work.pool), active.execution_id)

    def _stop(self, active: Active, work: StopWork) -> None:
        self.hub.withdrawn((active.execution_id, work.run, work.iteration), work.lease)

    # ---- claims

    async def claim_backlog(self, worker: ConnectedWorker) -> None:
        """Give a worker what is known to wait for one of its pools; the rest is found by wake-ups and by polling."""
        if worker.unit_pools or not self._backlog.isdisjoint(worker.pools):
            await self.claim_for(worker)

    async def claim_for(self, worker: ConnectedWorker) -> None:
        """Give a worker what waits for one of its pools."""
        free = worker.free
        if not free:
            self._backlog |= worker.pools  # looked for when a slot is free again
        elif await self._claim(worker, worker.pools, free) < free:
            self._backlog -= worker.pools
        pools = worker.unit_pools
        if pools:
            await self._claim(worker, pools, UNIT_COMMANDS)

    async def _claim(self, worker: ConnectedWorker, pools: Iterable[str], limit: int) -> int:
        """Claim commands of pools for a worker; return how many there were."""
        claimed = await self._leases.claim(worker, pools, limit)
        try:
            await self._intake.activate(command.execution_id for command in claimed)
            for command in claimed:
                await self._refresh(command)
        except StoreError:  # else they take the worker's slots, also when another server has opened them again
            self._returned += [(worker, command) for command in claimed]
            raise
        for command in claimed:
            if not self._hand_out(worker, command.part, command.lease):
                self._returned.append((worker, command))
        return len(claimed)

    async def _refresh(self, command: QueuedCommand) -> None:
        """Read an execution again if another server has moved it on and opened this command."""
        active = self._rounds.active.get(command.execution_id)
        if active is not None and _work(active, command.part, command.lease) is None:
            await self._intake.refresh(command.execution_id)

    def _hand_out(self, worker: ConnectedWorker, part: Part, lease: int) -> bool:
        active = self._rounds.active.get(part[0])
        if active is None or self._rounds.is_ahead(active):
            return False  # in the log, this run may belong to another step than here
        work = _work(active, part, lease)
        if work is None:
            return False
        entries = active.credentials.entries
        named = {name: entries[name] for name in work.keychain if name in entries}
        data = work_form(work)
        _grant(worker, active, work, data)
        worker.send(command={"work": data, "secrets": named})
        return True

    # ---- workers

    async def let_go(self) -> None:
        """Release what could not be handed out, and what workers held that have left."""
        returned, self._returned = self._returned, []
        for worker, command in returned:  # found again by polling: the next worker may not get it either
            with contextlib.suppress(StoreError):
                await self._leases.release(worker, [command])
        while self._left:
            worker = self._left.pop()
            later = self.hub.workers.get(worker.id)
            if later is worker:
                del self.hub.workers[worker.id]
            held = worker.held | worker.leaving
            if later not in (None, worker):  # it has connected again, and what it renewed there stays with it
                held = {part: lease for part, lease in held.items() if later.held.get(part) != lease}
            await self._release(worker, [QueuedCommand(*part, lease) for part, lease in held.items()])
            worker.held.clear()

    def leave(self, worker: ConnectedWorker) -> None:
        """Let a worker go in the next turn: what it held is open again then."""
        self._left.append(worker)
        self._pace.wake()

    async def release(self, worker: ConnectedWorker, part: Part, lease: int) -> None:
        """Open a command again that a worker returns."""
        await self._release(worker, [QueuedCommand(*part, lease)])

    async def _release(self, worker: ConnectedWorker, held: list[QueuedCommand]) -> None:
        if held:
            with contextlib.suppress(StoreError):  # the leases end by themselves
                await self._leases.release(worker, held)
            self._pace.look()

    async def renew(self, worker: ConnectedWorker, named: Sequence[tuple[Part, int]]) -> None:
        """Extend the leases that a worker names. It needs no turn. Raises StoreError."""
        taken_over = await self._leases.renew(worker, named)
        if taken_over:
            self._taken_over += [(worker, command) for command in taken_over]
            self._pace.wake()

    async def expired(self, now: float) -> list[QueuedCommand]:
        """Return commands whose lease has ended."""
        return await self._leases.expired(now)

    async def grant_taken_over(self) -> None:
        """Let workers read what commands of earlier connections refer to: they may still need it."""
        while self._taken_over:
            worker, command = self._taken_over[0]
            await self._intake.activate([command.execution_id])
            await self._refresh(command)
            active = self._rounds.active.get(command.execution_id)
            work = active and _work(active, command.part, command.lease)
            if active and work:
                _grant(worker, active, work, work_form(work))
            del self._taken_over[0]


def _work(active: Active, part: Part, lease: int) -> Work | None:
    """Return the work of a command, if it is open under this lease in the state that is in memory."""
    work = work_for(active.playbook, active.state, part[1], part[2], active.offload)
    return work if work is not None and work.lease == lease else None


def _grant(worker: ConnectedWorker, active: Active, work: Work, data: dict[str, Any]) -> None:
    """Let a worker read what its command refers to."""
    unit = active.playbook.steps[work.step].unit(work.iteration)
    pool = unit_pool(work.execution_id, work.run, unit) if unit != work.iteration else ""
    worker.grant((work.execution_id, work.run, work.iteration), CommandGrant(work.bundle, data, pool))


_PERFORMED: dict[type, Callable[[Dispatcher, Active, Any], None]] = {
    OpenWork: Dispatcher._open,
    StopWork: Dispatcher._stop,
}
"""How each effect is performed that is left to this process."""
