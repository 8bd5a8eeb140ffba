"""The FastAPI application: its routes, its limits, and the driver that runs while it does."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections import Counter as Counts
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Response
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from noetlvm import __version__
from noetlvm.data.event import Recorded
from noetlvm.service.access import BodyLimits, Readers, TokenAccess, requires
from noetlvm.service.driver import Driver
from noetlvm.service.executions_api import executions_router
from noetlvm.service.models import Health
from noetlvm.service.page_api import page_router, pictures_router
from noetlvm.service.playbooks_api import playbooks_router
from noetlvm.service.problems import ProblemError, UnexpectedErrors, answer_with_problems, documented
from noetlvm.service.tokens_api import tokens_router
from noetlvm.service.waits import OpenWaits
from noetlvm.service.worker_api import worker_router
from noetlvm.store.interface import Execution

API = "/api/v1"

_LOG = logging.getLogger("noetlvm.server")

_DESCRIPTION = """\
Register playbooks, run them, and watch them run. Every route but the health checks needs a token, which
`noetlvm token create` makes. Errors are problem documents (RFC 9457).
"""


def _end_with(task: asyncio.Task[None]) -> None:
    """End the process if its driver has failed: another server, or the next start, continues from the store."""
    if not task.cancelled() and task.exception() is not None:
        _LOG.critical("the driver failed", exc_info=task.exception())
        os.kill(os.getpid(), signal.SIGTERM)


class Metrics:
    """Prometheus metrics of one server. They count; they name no playbook's data."""

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
        workers = self._driver.workers.hub.workers.values()
        self._active.set(len(self._driver.rounds.active))
        self._workers.set(len(workers))
        self._held.set(sum(len(worker.held) for worker in workers))
        return generate_latest(self._registry)


def service_app(driver: Driver, access: TokenAccess | None = None) -> FastAPI:
    """Return the application of one server process. `access`: checks tokens over connections of its own."""
    access = access or TokenAccess(driver.store)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.readers = Readers()
        task = asyncio.create_task(driver.run())
        task.add_done_callback(_end_with)
        watch = asyncio.create_task(waits.watch())
        yield
        watch.cancel()
        waits.stop()
        driver.stop()
        await task
        access.close()

    app = FastAPI(
        title="noetlvm",
        version=__version__,
        description=_DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,  # both pages load scripts from another host
        telemetry={"tracing": False, "metrics": False, "logs": False},  # it would send messages of errors, with data
    )
    app.state.driver = driver
    app.state.access = access
    app.state.waits = waits = OpenWaits(access)
    app.state.metrics = metrics = Metrics(driver)
    app.add_middleware(BodyLimits)
    app.add_middleware(UnexpectedErrors)
    answer_with_problems(app)
    # A request tests all routes before its own.
    for router in (executions_router, playbooks_router, pictures_router, tokens_router, worker_router):
        app.include_router(router, prefix=API)
    app.include_router(page_router)

    @app.get("/healthz", tags=["health"])
    async def healthz() -> Health:
        """Say that the process runs."""
        return Health()

    @app.get("/readyz", tags=["health"], responses=documented())
    async def readyz() -> Health:
        """Say whether the server can take requests: its store can be read and written, and leases are renewed."""
        if driver.failure:
            raise ProblemError(503, driver.failure)
        return Health()

    answers: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {}}}, **documented()}

    @app.get("/metrics", tags=["health"], response_class=Response, responses=answers, dependencies=[requires("read")])
    async def prometheus() -> Any:
        """Return metrics in the text format of Prometheus."""
        return Response(metrics.text(), media_type="text/plain; version=0.0.4")

    return app
