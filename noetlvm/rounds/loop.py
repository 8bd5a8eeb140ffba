"""The one loop: take in, decide, write, perform. What differs between processes is behind its ports.

| port | `noetlvm run`, tests | server |
| --- | --- | --- |
| sources | pipelines, timers, requests | API, workers, timers, requests, lost leases |
| writer | the store, in place or in a thread | the store, in a thread |
| performer | pipelines in this process | connected workers |
| pace | turns of an event loop, until nothing is left | the same, until it is stopped |
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from noetlvm.machine.messages import Effect
from noetlvm.results.offered import store_for
from noetlvm.rounds.active import Active, Assign
from noetlvm.rounds.library import Library
from noetlvm.rounds.rounds import News, Round, Rounds
from noetlvm.store.interface import Store, StoreError

TURN_SECONDS = 0.05
"""How long decisions may take before everything else in the event loop gets a turn (S62)."""

_Answer = TypeVar("_Answer")


class StoreCall(Protocol):
    """Makes a call of the store, here or in a thread."""

    def __call__(self, call: Callable[[], _Answer], *, is_large: bool = False) -> Awaitable[_Answer]: ...


class Sources(Protocol):
    """Where inputs come from."""

    async def take_in(self) -> None:
        """Give executions their inputs, and read what these need. Raises StoreError."""

    @property
    def has_postponed(self) -> bool:
        """Return whether a request waits until another one is answered."""

    def look(self) -> None:
        """Requests to executions were written or answered: take up those that wait."""


class RoundWriter(Protocol):
    """Makes rounds durable."""

    async def write(self, round: Round) -> set[str]:
        """Write a round; return the executions that lost a race. Raises StoreError."""


class Performer(Protocol):
    """Performs effects in this process."""

    def prepare(self, round: Round) -> bool:
        """Begin what may begin before the write; return whether it has led to inputs, which share the write then."""

    def perform(self, effects: Sequence[tuple[Active, Effect]]) -> None:
        """Perform effects, or let them wait for the next turn."""


class Pace(Protocol):
    """When the others in the event loop have their turn, and what time it is."""

    def now(self) -> float:
        """Return the time of decisions."""

    def begin(self) -> None:
        """A part of a turn begins: decisions, or effects."""

    def is_spent(self, events: int) -> bool:
        """Return whether the turn is over."""

    def holds(self) -> bool:
        """Return whether a round may be written together with the next one."""

    def failed(self, error: StoreError) -> None:
        """The store failed in a turn. Raises the error if the loop ends with that."""

    async def rest(self) -> bool:
        """Let others have their turn, or wait until there is something to do; return False at the end."""


class RoundLoop:
    """Drives rounds."""

    def __init__(self, rounds: Rounds, sources: Sources, writer: RoundWriter, performer: Performer, pace: Pace) -> None:
        self.rounds = rounds
        self.sources = sources
        self.writer = writer
        self.performer = performer
        self.pace = pace
        self.observers: list[Callable[[News], None]] = []

    async def run(self) -> None:
        """Run until the pace ends it."""
        while await self.pace.rest():
            try:
                await self.turn()
            except StoreError as error:
                self.pace.failed(error)

    async def turn(self) -> None:
        """Make one round. Raises StoreError: then nothing is lost, and the next turn makes it again."""
        rounds, pace = self.rounds, self.pace
        await self.sources.take_in()
        pace.begin()
        round = rounds.next(pace.now(), pace.is_spent)
        if round is not None and self.performer.prepare(round):
            rounds.keep(round)
            round = rounds.next(pace.now(), pace.is_spent)
        if round is None:
            pace.begin()
            self.performer.perform(())
        elif pace.holds():
            rounds.keep(round)
            pace.begin()
            self.performer.perform(round.take_effects())
        else:
            await self._write(round)

    async def _write(self, round: Round) -> None:
        try:
            lost = await self.writer.write(round)
        except BaseException:
            self.rounds.keep(round)
            raise
        settled = self.rounds.settle(round, lost)
        if settled.has_sent or self.sources.has_postponed:
            self.sources.look()
        for news in settled.news:
            for observe in self.observers:
                observe(news)
        for done, accepted in settled.answers:
            done(accepted)
        self.pace.begin()
        self.performer.perform(settled.effects)


class StoreWriter:
    """Writes rounds to a store, large results first."""

    def __init__(self, store: Store, library: Library, assign: Assign, now: Callable[[], float]) -> None:
        self._store = store
        self._library = library
        self._assign = assign
        self._now = now

    async def write(self, round: Round) -> set[str]:
        """Write a round here."""
        return self.prepared(round)[1]()

    def prepared(self, round: Round) -> tuple[int, Callable[[], set[str]]]:
        """Return how many executions a round concerns, and what writes it, in any thread."""
        appends = round.batch(self._assign, self._now())
        blobs = [(one.playbook.executor, one.pending.blobs) for one in round.executions if one.pending.blobs]

        def write() -> set[str]:
            for executor, data in blobs:
                store_for(self._library.results, executor).put(data)
            return self._store.write(appends, round.bundles) if appends else set()

        return len(appends), write


class ThreadedWriter(StoreWriter):
    """Writes rounds to a store by calls that may be made in a thread."""

    def __init__(
        self, store: Store, library: Library, assign: Assign, now: Callable[[], float], call: StoreCall, large: int = 1
    ) -> None:
        """`large`: executions from which on the call may leave the event loop to others."""
        super().__init__(store, library, assign, now)
        self._call = call
        self._large = large

    async def write(self, round: Round) -> set[str]:
        executions, write = self.prepared(round)
        return await self._call(write, is_large=executions >= self._large) if executions else write()
