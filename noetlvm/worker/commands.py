"""The commands that run in a worker: each is a pipeline under a lease."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from noetlvm.data.event import Event
from noetlvm.expr.errors import ExpressionError
from noetlvm.machine.messages import Work
from noetlvm.machine.payload import Offload
from noetlvm.protocol.messages import Part, part_of
from noetlvm.record import changed
from noetlvm.worker.command_data import CommandData
from noetlvm.worker.held_leases import HeldLeases
from noetlvm.worker.outbox import Outbox
from noetlvm.worker.pipeline_run import Done, PipelinePorts, PipelineRun

RETURN_SECONDS = 1.0
"""How long a command stays that cannot begin or continue here."""

_LOG = logging.getLogger("noetlvm.worker")


class Commands:
    """Begins commands, stops them, and reports what happens in them."""

    def __init__(
        self,
        data: CommandData,
        outbox: Outbox,
        leases: HeldLeases,
        ports: Callable[[Commands], PipelinePorts],
        ended: Callable[[], None],
    ) -> None:
        """`ports` are those of all pipelines. `ended` is called when a command has ended here."""
        self._data = data
        self._outbox = outbox
        self._leases = leases
        self._ports = ports(self)
        self._has_ended = ended
        self._runs: dict[Part, PipelineRun] = {}
        self._offloads: dict[Part, Offload] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def __bool__(self) -> bool:
        """Return whether a command runs."""
        return bool(self._runs)

    @property
    def held(self) -> dict[Part, int]:
        """Return the leases of the commands that run."""
        return {part: run.work.lease for part, run in self._runs.items()}

    def take(self, work: Work, secrets: dict[str, Any]) -> None:
        """Begin a command, or return it if that is not possible here."""
        try:
            self._begin(work, secrets)
        except (OSError, LookupError, ExpressionError) as error:  # no server, or a lease that is lost by now
            self._offloads.pop(part_of(work), None)
            self._return_later(work, error)

    def _begin(self, work: Work, secrets: dict[str, Any]) -> None:
        part = part_of(work)
        known = self._runs.get(part)
        if known is not None and known.work.lease >= work.lease:
            return  # the message came twice
        if known is not None:  # its lease is lost, and what it waits for may never come: it would hold its slot forever
            known.stop(now=True)
        playbook = self._data.playbook(work)
        credentials = self._data.credentials(secrets)
        # A command without secrets may still read masks that another step's secrets left (S64).
        redact = credentials.redact or ((lambda value: value) if playbook.keychain else None)
        offload = Offload(playbook.limits.max_payload_bytes, self._data.result, redact=redact)
        self._offloads[part] = offload
        ports = changed(self._ports, tools=self._data.tools(work, playbook))
        run = PipelineRun(work, playbook, credentials, offload, ports)
        if run.begin():
            self._runs[part] = run
            self._leases.begin(part)
        else:
            self._offloads.pop(part, None)

    def _return_later(self, work: Work, error: BaseException) -> None:
        """Return a command after a moment: the next try may fail in the same way, and each is an event of the log."""
        _LOG.warning("a command cannot continue here: %s", error)
        asyncio.get_running_loop().call_later(RETURN_SECONDS, self.give_up, part_of(work), work.lease)

    def stop(self, part: Part, lease: int) -> None:
        """Leave a command that the server has withdrawn."""
        run = self._runs.get(part)
        if run is not None and run.work.lease <= lease:
            run.stop(now=True)

    def give_up(self, part: Part, lease: int) -> None:
        """Stop a pipeline, forget what it reported without an answer, and return its command."""
        self.stop(part, lease)
        self._outbox.forget(part, lease)
        self._outbox.release(part, lease)

    def give_up_late(self) -> None:
        """Stop work before its lease ends, if the server has not renewed it."""
        late = [self._runs[part].work for part in self._leases.late()]
        if late:
            _LOG.warning("leases could not be renewed: stopping %d pipelines", len(late))
        for work in late:
            self.give_up(part_of(work), work.lease)

    def redacted(self, part: Part, value: Any) -> Any:
        """Return a value without the secrets of a command."""
        return self._offloads[part].redacted(value)

    async def close(self) -> None:
        """Stop everything."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # ---- for pipelines

    def send(self, work: Work, events: list[Event], done: Done | None = None) -> None:
        """Report, and do not wait. If the report is not accepted, the work is to be left."""
        offload = self._offloads.get(part_of(work))
        results = offload.take_blobs() if offload is not None else ()
        self._outbox.report(part_of(work), work.lease, events, results, done)

    def spawn(self, pipeline: Coroutine[Any, Any, None], work: Work) -> asyncio.Task[None]:
        """Continue a pipeline in the event loop."""
        task = asyncio.get_running_loop().create_task(pipeline)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda task: self._return_failed(work, task))
        return task

    def _return_failed(self, work: Work, task: asyncio.Task[None]) -> None:
        """Return the command of a pipeline that this worker cannot continue, for instance because a result is gone."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._return_later(work, error)

    def ended(self, run: PipelineRun) -> None:
        """Forget a pipeline that has ended here."""
        part = part_of(run.work)
        if self._runs.get(part) is run:
            del self._runs[part]
            self._leases.end(part)
            self._offloads.pop(part, None)
        self._has_ended()
