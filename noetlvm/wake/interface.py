"""The port of wake-ups, and the one within a process.

A wake-up says that there may be something to do, and carries an identifier and nothing else. It may be lost, duplicated
or late: only latency depends on it, because every receiver also polls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

SERVERS = "servers"
"""Topic of requests, timers and expired leases: any server may handle them."""

Wake: TypeAlias = Callable[[str], None]
"""Called with the identifier; empty: wake-ups may have been lost, so check everything. Must not block or raise."""


def pool_topic(pool: str) -> str:
    """Return the topic of commands for a pool."""
    return f"pool.{pool}"


class WakeUps(Protocol):
    """Publishes and delivers wake-ups."""

    async def publish(self, topic: str, identifier: str) -> None:
        """Send a wake-up if possible; never raises."""

    async def subscribe(self, topic: str, wake: Wake, group: str = "") -> None:
        """Deliver wake-ups of a topic; of the subscribers in a group, one is enough."""

    async def close(self) -> None:
        """Stop delivering. Idempotent."""


class LocalWakeUps:
    """Wake-ups within one process and event loop."""

    def __init__(self) -> None:
        self._subscribers: dict[str, list[Wake]] = {}

    async def publish(self, topic: str, identifier: str) -> None:
        for wake in self._subscribers.get(topic, ()):
            wake(identifier)

    async def subscribe(self, topic: str, wake: Wake, group: str = "") -> None:
        self._subscribers.setdefault(topic, []).append(wake)

    async def close(self) -> None:
        self._subscribers.clear()
