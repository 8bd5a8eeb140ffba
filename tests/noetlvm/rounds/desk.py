"""Rounds that a test makes one by one, in place and without an event loop of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from noetlvm.machine.loaded import Bundle
from noetlvm.machine.messages import Effect, Input, OpenWork
from noetlvm.results.interface import MemoryResults, ResultStore
from noetlvm.rounds.active import Active
from noetlvm.rounds.admission import Admission
from noetlvm.rounds.credentials import no_credentials
from noetlvm.rounds.intake import Intake
from noetlvm.rounds.library import Library
from noetlvm.rounds.loop import RoundLoop, StoreWriter
from noetlvm.rounds.pending import Done
from noetlvm.rounds.rounds import IsSpent, Round, Rounds
from noetlvm.store.interface import Store, StoreError


class Desk:
    """Decides and writes when the test says so; performs nothing."""

    def __init__(
        self,
        store: Store,
        results: ResultStore | None = None,
        *,
        is_shared: bool = False,
        is_spent: IsSpent = lambda _: False,
        now: Callable[[], float] = lambda: 1.0,
    ) -> None:
        self.now = now
        self.is_spent = is_spent
        self.store = store
        self.rounds = Rounds()
        self.round: Round | None = None
        self.library = Library(store, results or MemoryResults(), is_shared=is_shared)
        self.admission = Admission(self.rounds, self.library, no_credentials, now)
        self.intake = Intake(self.rounds, self.library, self.admission)
        writer = StoreWriter(store, self.library, self.assign, now)
        self.loop = RoundLoop(self.rounds, self, writer, self, self)

    # ---- what a test does

    def start(self, bundle: Bundle, payload: dict[str, Any] | None = None, **options: Any) -> str:
        return self.admission.start(bundle, payload or {}, {}, **options)

    def submit(self, execution_id: str, given: Input, done: Done | None = None) -> Active:
        active = self.intake.load(execution_id)
        self.rounds.submit(active, given, done)
        return active

    def retry(self, execution_id: str, start_key: str = "", done: Done | None = None) -> str:
        return self.admission.retry(self.library.prepare_retry(execution_id), start_key, done)

    def turn(self) -> None:
        asyncio.run(self.loop.turn())

    def decide(self) -> None:
        """Decide, and write nothing."""
        self.intake.take_in_now()
        self.round = self.rounds.next(self.now(), self.is_spent)

    def write(self) -> None:
        """Write what was decided."""
        if self.round is not None:
            appends = self.round.batch(self.assign, self.now())
            self.rounds.settle(self.round, self.store.write(appends, self.round.bundles))
            self.round = None

    def collect(self) -> None:
        """Take up the requests that the store has."""
        self.look()
        self.settle()

    def settle(self) -> None:
        """Make rounds until nothing is left to decide."""
        while self.rounds.has_inputs or self.rounds.has_unwritten or self.intake.is_wanted:
            self.turn()

    # ---- ports

    def assign(self, _active: Active, _work: OpenWork) -> tuple[str, float]:
        return "", 0.0

    async def take_in(self) -> None:
        await self.intake.take_in()

    @property
    def has_postponed(self) -> bool:
        return self.intake.has_postponed

    def look(self) -> None:
        self.intake.looks = True

    def prepare(self, _round: Round) -> bool:
        return False

    def perform(self, effects: Sequence[tuple[Active, Effect]]) -> None:
        """Workers are elsewhere."""

    def begin(self) -> None:
        """Every turn is the first."""

    def holds(self) -> bool:
        return False

    def failed(self, error: StoreError) -> None:
        raise error

    async def rest(self) -> bool:
        return False
