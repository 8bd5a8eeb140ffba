"""Leases of the commands that connected workers hold.

They are claimed, renewed, released and found when they have ended by calls of their own, over a thread and connections
of their own. So a decision, a reader of the API or a lock on a table that leases have nothing to do with delays no
renewal. They need two tables, `commands` and `executions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from noetlvm.protocol.messages import Part
from noetlvm.service.hub import ConnectedWorker
from noetlvm.service.store_threads import StoreCalls
from noetlvm.store.interface import Dispatch, QueuedCommand, StoreError

LEASE_SECONDS = 15.0
"""How long a command stays with a worker that does not renew it."""
RENEWALS_A_LEASE = 3
"""How often a worker renews its leases."""


class Leases:
    """Claims and renews for connected workers."""

    def __init__(
        self,
        store: Dispatch,
        now: Callable[[], float],
        seconds: float = LEASE_SECONDS,
        calls: StoreCalls | None = None,
    ) -> None:
        """`now` is the clock of the store, also when that is shared."""
        self.seconds = seconds
        self._store = store
        self._now = now
        self._call = calls or StoreCalls()
        self._failure = ""

    @property
    def failure(self) -> str:
        """Why renewals are not served in time; empty: they are. Readiness depends on it."""
        limit = self.seconds / RENEWALS_A_LEASE
        if self._call.waiting_seconds > limit:
            return f"the store has not answered a claim or a renewal of leases for {limit:g} seconds"
        return self._failure

    def end(self) -> float:
        """Return when a lease ends that begins now."""
        return self._now() + self.seconds

    async def claim(self, worker: ConnectedWorker, pools: Iterable[str], limit: int) -> list[QueuedCommand]:
        """Claim commands of pools for a worker, and note that it holds them."""
        now = self._now()
        claimed = await self._call(lambda: self._store.claim(worker.id, pools, now + self.seconds, limit, now))
        for command in claimed:
            worker.held[command.part] = command.lease
        return claimed

    async def renew(self, worker: ConnectedWorker, named: Sequence[tuple[Part, int]]) -> list[QueuedCommand]:
        """Extend the leases that a worker names; it leaves those that are lost. Raises StoreError.

        A lease that it does not name ends by itself: the command did not reach it. But what it has reported is renewed
        until that is decided. One of another connection, which it had to this server or to another one, is good as long
        as the store has it: these are returned.
        """
        reported = [QueuedCommand(*part, lease) for part, lease in worker.leaving.items()]
        wanted = [QueuedCommand(*part, lease) for part, lease in named]
        before = [worker.held.get(command.part) == command.lease for command in wanted]
        if not wanted and not reported:
            return []
        until = self.end()
        try:
            rows = await self._call(lambda: self._store.renew(worker.id, [*wanted, *reported], until))
        except StoreError as error:
            self._failure = str(error)
            raise
        self._failure = ""
        renewed = {(command.part, command.lease) for command in rows}
        taken_over = []
        for command, was_held in zip(wanted, before, strict=True):
            if (command.part, command.lease) not in renewed:
                worker.lose(command.part, command.lease)
            elif not was_held:
                worker.held[command.part] = command.lease
                taken_over.append(command)
        return taken_over

    async def release(self, worker: ConnectedWorker, held: Sequence[QueuedCommand]) -> None:
        """Open commands again that a worker held."""
        for command in held:
            if worker.held.get(command.part) == command.lease:
                del worker.held[command.part]
        await self._call(lambda: self._store.release(worker.id, held))

    async def expired(self, now: float) -> list[QueuedCommand]:
        """Return commands whose lease has ended."""
        return await self._call(lambda: self._store.expired(now))
