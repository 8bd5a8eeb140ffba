"""Prometheus metrics of a server. They count; they name no playbook's data."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Sequence
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from noetlvm.data.event import Recorded
from noetlvm.store.interface import Execution

if TYPE_CHECKING:
    from noetlvm.service.driver import Driver


class Metrics:
    """What one server counts."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._registry = CollectorRegistry()
        self._events = Counter("noetlvm_events", "Events written, by name.", ["name"], registry=self._registry)
        self._ended = Counter(
            "noetlvm_executions_ended", "Executions that ended, by status.", ["status"], registry=self._registry
        )
        self._active = Gauge("noetlvm_executions_active", "Executions in memory.", registry=self._registry)
        self._workers = Gauge("noetlvm_workers_connected", "Workers connected.", registry=self._registry)
        self._held = Gauge("noetlvm_commands_held", "Commands that connected workers hold.", registry=self._registry)
        self._new_events: Counts[str] = Counts()
        """Events since the last look: a metric that takes its lock for each costs more than the rest of this."""
        driver.listeners.add(self._count)

    def _count(self, row: Execution, recorded: Sequence[Recorded]) -> None:
        self._new_events.update([one.event.name for one in recorded])
        if row.ended is not None and recorded:
            self._ended.labels(row.status).inc()

    def text(self) -> bytes:
        """Return all of them as text."""
        new, self._new_events = self._new_events, Counts()
        for name, count in new.items():
            self._events.labels(name).inc(count)
        workers = self._driver.hub.workers.values()
        self._active.set(len(self._driver.server.active))
        self._workers.set(len(workers))
        self._held.set(sum(len(worker.held) for worker in workers))
        return generate_latest(self._registry)
