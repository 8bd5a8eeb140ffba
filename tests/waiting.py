"""Wait for something that a test cannot be notified of, such as what another process does.

How long it takes does not matter: the limit only turns a hang into a failure.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import NoReturn, Protocol

from noetlvm.store.interface import Execution


class Executions(Protocol):
    """What can be read of a store."""

    def execution(self, execution_id: str) -> Execution | None:
        """Return the row of an execution."""


PATIENCE_SECONDS = 120.0
INTERVAL_SECONDS = 0.01


def wait_until(holds: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until a condition holds."""
    give_up = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < give_up, f"it does not hold after {seconds:g} seconds"
        time.sleep(INTERVAL_SECONDS)  # between two looks


async def until(
    holds: Callable[[], object], seconds: float = PATIENCE_SECONDS, interval: float = INTERVAL_SECONDS
) -> None:
    """Wait until a condition holds, while other tasks run; without an interval, look in each turn of the event loop."""
    give_up = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < give_up, f"it does not hold after {seconds:g} seconds"
        await asyncio.sleep(interval)  # between two looks


async def turns(count: int = 1) -> None:
    """Let the other tasks of the event loop run that are ready, and those that they make ready, so many times."""
    for _ in range(count):
        await asyncio.sleep(0)  # one turn of the event loop


async def forever() -> NoReturn:
    """Wait until the task is cancelled."""
    await asyncio.Event().wait()
    raise AssertionError("nothing sets the event")


async def ended(store: Executions, execution_id: str) -> Execution:
    """Return the row of an execution once it has ended."""
    while (row := store.execution(execution_id)) is None or row.ended is None:
        await asyncio.sleep(INTERVAL_SECONDS)  # between two looks
    return row
