"""The turns of a server: when it polls, yields to requests and messages, waits for something to do, and stops."""

from __future__ import annotations

import asyncio
import logging

from noetlvm.rounds.intake import Intake
from noetlvm.rounds.loop import TURN_SECONDS
from noetlvm.rounds.rounds import Rounds
from noetlvm.store.interface import Store, StoreError

REST_SECONDS = 0.01
"""How long others get their turn after decisions that took long."""
POLL_SECONDS = 1.0
"""Seconds between polls for rows that no wake-up announced."""

_LOG = logging.getLogger("noetlvm.server")


class ServerPace:
    """The pace of a process that runs until it is stopped."""

    def __init__(self, rounds: Rounds, intake: Intake, store: Store, poll_seconds: float) -> None:
        self.now = store.now
        self.failure = ""
        """Why the store failed in the last turn; empty: it did not."""
        self.is_stopping = False
        self._rounds = rounds
        self._intake = intake
        self._poll_seconds = poll_seconds
        self._is_poll_due = True
        self._next_poll = 0.0
        self._wake = asyncio.Event()
        self._began = 0.0
        """When the turn began."""
        self._has_turned = self._has_given_way = False

    # ---- what comes from elsewhere

    def stop(self) -> None:
        self.is_stopping = True
        self._wake.set()

    def wake(self) -> None:
        """Decide on what has come in."""
        self._wake.set()

    def look(self, _identifier: str = "") -> None:
        """Look for rows at once."""
        self._is_poll_due = True
        self._wake.set()

    def takes_poll(self) -> bool:
        """Return whether a poll is due; then the next one is due later."""
        time = asyncio.get_running_loop().time()
        if not self._is_poll_due and time < self._next_poll:
            return False
        self._is_poll_due = False
        self._next_poll = time + self._poll_seconds
        return True

    # ---- as the loop has it

    def begin(self) -> None:
        """A turn has one limit for decisions and effects together."""

    def is_spent(self, _events: int) -> bool:
        return asyncio.get_running_loop().time() - self._began > TURN_SECONDS

    def give_way(self) -> None:
        """Note that a call was made in a thread: the next decisions wait for what has come meanwhile."""
        self._has_given_way = True

    def holds(self) -> bool:
        return False

    def failed(self, error: StoreError) -> None:
        self.failure = str(error)
        _LOG.error("the store failed: %s", error)
        self._next_poll = asyncio.get_running_loop().time() + self._poll_seconds

    async def rest(self) -> bool:
        loop = asyncio.get_running_loop()
        if self._has_turned and self._has_work() and not self.failure:
            if self.is_spent(0) or self._has_given_way:
                # One pass of the event loop completes no request: a request takes many.
                await asyncio.sleep(REST_SECONDS if self.is_spent(0) else 0)
                self._began = loop.time()
        elif self._has_turned:
            # A timer that sets the event costs less than `wait_for`, which makes a task for each wait.
            timer = loop.call_later(max(0.0, self._wait_seconds()), self._wake.set)
            await self._wake.wait()
            timer.cancel()
            self._began = loop.time()
        self._wake.clear()
        self._has_turned, self._has_given_way = True, False
        return not self.is_stopping

    def _wait_seconds(self) -> float:
        until_poll = self._next_poll - asyncio.get_running_loop().time()
        due = None if self.failure else self._rounds.next_due  # a store that fails is tried again at the next poll
        return until_poll if due is None else min(until_poll, due - self.now())

    def _has_work(self) -> bool:
        return self._rounds.has_inputs or self._rounds.has_unwritten or self._intake.is_wanted
