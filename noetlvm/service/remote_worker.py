"""A worker process: holds one connection to a server, runs the commands that come on it, and reports.

It has no port of its own and no database. What it holds, it holds by leases: if the connection is lost and cannot be
had again before they end, it stops its work, because another worker may have it by then.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from noetlvm.data.encoding import decode, encode
from noetlvm.data.event import Event
from noetlvm.data.references import Reference
from noetlvm.expr.errors import ExpressionError
from noetlvm.machine.loaded import Bundle, LoadedPlaybook
from noetlvm.machine.messages import Work, from_data
from noetlvm.machine.payload import Offload
from noetlvm.record import changed
from noetlvm.rounds.credentials import Credentials, KnownSecrets
from noetlvm.service.server_link import Exchange, ServerLink
from noetlvm.tools.call import Tools, UnavailableTools
from noetlvm.worker.pipeline_run import Clock, Done, PipelinePorts, PipelineRun, Slots, SystemClock

LEASE_SECONDS = 15.0
"""Until the server has sent the length of a lease."""
HEARTBEATS_A_LEASE = 3
MARGIN = 0.15
"""Work stops before its lease ends, by this share of it."""
RETRY_SECONDS = (0.1, 5.0)
"""Shortest and longest wait before the connection is tried again."""
RETURN_SECONDS = 1.0
"""How long a command stays that cannot begin or continue here."""
BUNDLES_MAX = 100
SECRET_SETS_MAX = 100
RESULTS_BYTES = 8 * 1024 * 1024
"""Of results in one message; those beyond it are sent before, each in a message of its own."""

_LOG = logging.getLogger("noetlvm.worker")

Part = tuple[str, int, str]


class RemoteWorker:
    def __init__(
        self,
        link: ServerLink,
        tools: Tools,
        *,
        id: str,
        pools: tuple[str, ...],
        slots: int,
        clock: Clock | None = None,
        jitter: Callable[[], float] = random.random,
        missing: Callable[[Iterable[str]], list[str]] = lambda _kinds: [],
        records_inputs: bool = False,
    ) -> None:
        """`jitter` gives numbers below 1 that spread the reconnection of many workers.

        `missing` lists what is not installed here of what tool kinds need: a pipeline with such a task fails before its
        first one. `records_inputs`: the log says what tools were given.
        """
        self.id = id
        self._link = link
        self._jitter = jitter
        self._tools = tools
        self._pools = pools
        self._slots = slots
        self._lease_seconds = LEASE_SECONDS
        self._clock: Clock = clock or SystemClock()
        self._runs: dict[Part, PipelineRun] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._bundles: dict[str, Bundle] = {}
        self._reports: list[dict[str, Any]] = []
        self._waiting: dict[int, Done] = {}
        self._last_report = 0
        self._handed_over = 0
        """The last report that a connection got, whether it arrived or not."""
        self._results: list[tuple[str, bytes]] = []
        self._offloads: dict[Part, Offload] = {}
        self._known_secrets: dict[frozenset[str], KnownSecrets] = {}
        """By secrets of commands. A worker without commands forgets them at its next renewal."""
        self._news = asyncio.Event()
        self._is_draining = False
        self._leaves = asyncio.Event()
        self._beats: dict[int, tuple[float, tuple[Part, ...]]] = {}
        """Renewals that are not acknowledged: when each was sent, and for what."""
        self._last_beat = 0
        self._contact = 0.0
        """When the last message was sent that the server has answered: a command that it sends is newer."""
        self._leased: dict[Part, float] = {}
        """When the lease of each pipeline was good: it ends one lease after that, or later."""
        self._released: list[dict[str, Any]] = []
        self._missing = missing
        self._missing_of: dict[tuple[str, str, str], str] = {}
        """By bundle, playbook and step: what its tasks need and this worker has not."""
        self._ports = PipelinePorts(
            tools,
            self._clock,
            self,
            Slots(slots),
            self._spawn,
            lambda: False,
            self._ended,
            records_inputs,
        )

    # ---- the connection

    async def run(self) -> None:
        """Work until `drain` has come to its end. Raises RefusedError."""
        watch = asyncio.create_task(self._watch_leases())
        wait = RETRY_SECONDS[0]
        try:
            while not self._is_done and not self._is_abandoned:
                try:
                    await self._connected()
                    wait = RETRY_SECONDS[0]
                except OSError as error:
                    _LOG.warning("no connection to %s: %s", self._link, error)
                if not self._is_done:
                    self._leaves.clear()  # something has come, or a report has not been answered
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._leaves.wait(), wait * (0.5 + self._jitter()))
                    wait = min(wait * 2, RETRY_SECONDS[1])
        finally:
            watch.cancel()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._tools.close()

    def drain(self) -> None:
        """Take no more commands, and leave when those that run have ended."""
        self._is_draining = True
        self._news.set()
        self._leave()

    @property
    def _is_abandoned(self) -> bool:
        """Whether there is nothing to wait for: no server has answered for so long that every lease has expired."""
        return self._is_draining and self._clock.monotonic() - self._contact > self._lease_seconds

    @property
    def _is_done(self) -> bool:
        return self._is_draining and not self._runs and not self._reports

    async def _connected(self) -> None:
        async with self._link.connect() as exchange:
            self._contact = self._clock.monotonic()
            await exchange.send(encode({"worker": self.id, "pools": list(self._pools), "slots": self._slots}))
            for report in list(self._reports):
                if report["number"] <= self._handed_over:
                    # It may be in the log or not: the next worker continues from the log.
                    self.give_up(_part(report), report["lease"])
            self._beats.clear()
            self._news.set()
            working = (
                asyncio.create_task(self._receive(exchange)),
                asyncio.create_task(self._send(exchange)),
                asyncio.create_task(self._until_it_leaves()),
            )
            try:
                done, _ = await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
                for error in [task.exception() for task in done]:
                    if error is not None:
                        raise error
            finally:
                for task in working:
                    task.cancel()

    async def _receive(self, exchange: Exchange) -> None:
        while not self._is_done:
            self._take(decode(await exchange.receive()))

    async def _until_it_leaves(self) -> None:
        await self._leaves.wait()

    async def _send(self, exchange: Exchange) -> None:
        beaten = float("-inf")
        while True:
            until_beat = beaten + self._lease_seconds / HEARTBEATS_A_LEASE - self._clock.monotonic()
            timer = asyncio.get_running_loop().call_later(max(0.0, until_beat), self._news.set)
            await self._news.wait()
            timer.cancel()
            self._news.clear()
            results, self._results = self._results, []
            released, self._released = self._released, []
            reports = [report for report in self._reports if report["number"] > self._handed_over]
            self._handed_over = self._last_report
            while sum(len(data) for _, data in results) > RESULTS_BYTES and len(results) > 1:
                await exchange.send(encode({"results": [results.pop(0)]}))
            message: dict[str, Any] = {"reports": reports, "results": results, "released": released}
            if self._clock.monotonic() >= beaten + self._lease_seconds / HEARTBEATS_A_LEASE:
                beaten = self._clock.monotonic()
                if not self._runs or len(self._known_secrets) > SECRET_SETS_MAX:
                    self._known_secrets.clear()
                message["beat"] = self._beat()
                message["held"] = [_lease(part, lease) for part, lease in self._held(reports).items()]
            if self._is_draining:
                message["slots"] = 0
            await exchange.send(encode(message))

    def _held(self, reports: list[dict[str, Any]]) -> dict[Part, int]:
        """Return the leases of what runs here, and of what has ended and these reports say so."""
        reported = {_part(report): report["lease"] for report in reports}
        return reported | {part: run.work.lease for part, run in self._runs.items()}

    def _beat(self) -> int:
        """Return the number of the renewal that is sent now. Raises ConnectionError if none is answered any more."""
        if any(self._clock.monotonic() - sent > self._lease_seconds for sent, _ in self._beats.values()):
            raise ConnectionError("the server does not answer")
        self._last_beat += 1
        self._beats[self._last_beat] = self._clock.monotonic(), tuple(self._runs)
        return self._last_beat

    def _acknowledged(self, beat: int) -> None:
        self._contact, parts = self._beats.get(beat, (self._contact, ()))
        for part in parts:
            if part in self._leased:
                self._leased[part] = max(self._leased[part], self._contact)
        self._beats = {number: sent for number, sent in self._beats.items() if number > beat}

    def _take(self, message: dict[str, Any]) -> None:
        if message["beat"]:
            if message["lease_seconds"] != self._lease_seconds:
                self._lease_seconds = message["lease_seconds"]
                self._news.set()  # the next beat may be due earlier
            self._acknowledged(message["beat"])
        for number, accepted in message["answers"]:
            self._answer(number, accepted)
        for execution_id, run, iteration, lease in message["stop"]:
            self._stop((execution_id, run, iteration), lease)
        for command in message["commands"]:
            work = from_data(command["work"])
            try:
                self._begin(work, command["secrets"])
            except (OSError, LookupError, ExpressionError) as error:  # no server, or a lease that is lost by now
                self._offloads.pop((work.execution_id, work.run, work.iteration), None)
                self._return_later(work, error)

    # ---- commands

    def _begin(self, work: Work, secrets: dict[str, Any]) -> None:
        part = (work.execution_id, work.run, work.iteration)
        known = self._runs.get(part)
        if known is not None and known.work.lease >= work.lease:
            return  # the message came twice
        if known is not None:  # its lease is lost, and what it waits for may never come: it would hold its slot forever
            known.stop(now=True)
        playbook = self._bundle(work.bundle).program.playbooks[work.path]
        credentials = self._credentials(secrets)
        # A command without secrets may still read masks that another step's secrets left (S64).
        redact = credentials.redact or ((lambda value: value) if playbook.keychain else None)
        offload = Offload(playbook.limits.max_payload_bytes, self._fetch, redact=redact)
        self._offloads[part] = offload
        run = PipelineRun(work, playbook, credentials, offload, self._ports_for(work, playbook))
        if run.begin():
            self._runs[part] = run
            self._leased[part] = self._contact
        else:
            self._offloads.pop(part, None)

    def _credentials(self, secrets: dict[str, Any]) -> Credentials:
        """Return the secrets of a command. Commands with the same ones share what masks them: it is slow to make."""
        from noetlvm.keychain.shapes import secret_texts

        texts = [text for value in secrets.values() for text in secret_texts(value)]
        if not texts:
            return Credentials(secrets)
        known = self._known_secrets.setdefault(frozenset(texts), KnownSecrets())
        return Credentials(secrets, texts, known)

    def _ports_for(self, work: Work, playbook: LoadedPlaybook) -> PipelinePorts:
        """Return the ports of a command: without tools if its step has tasks whose packages are not installed."""
        key = work.bundle, work.path, work.step
        if key not in self._missing_of:
            self._missing_of[key] = "; ".join(self._missing(playbook.steps[work.step].kinds()))
        missing = self._missing_of[key]
        return changed(self._ports, tools=UnavailableTools(missing)) if missing else self._ports

    def _return_failed(self, work: Work, task: asyncio.Task[None]) -> None:
        """Return the command of a pipeline that this worker cannot continue, for instance because a result is gone."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._return_later(work, error)

    def _return_later(self, work: Work, error: BaseException) -> None:
        """Return a command after a moment: the next try may fail in the same way, and each is an event of the log."""
        _LOG.warning("a command cannot continue here: %s", error)
        part = (work.execution_id, work.run, work.iteration)
        asyncio.get_running_loop().call_later(RETURN_SECONDS, self.give_up, part, work.lease)

    def _stop(self, part: Part, lease: int) -> None:
        run = self._runs.get(part)
        if run is not None and run.work.lease <= lease:
            run.stop(now=True)

    def _ended(self, run: PipelineRun) -> None:
        part = (run.work.execution_id, run.work.run, run.work.iteration)
        if self._runs.get(part) is run:
            del self._runs[part]
            self._leased.pop(part, None)
            self._offloads.pop(part, None)
        if self._is_draining:
            self._news.set()
            if not self._runs:
                asyncio.get_running_loop().call_later(0.05, self._leave)

    def _leave(self) -> None:
        if not self._reports and not self._runs:
            self._leaves.set()

    async def _watch_leases(self) -> None:
        """Stop work before its lease ends, if the server has not renewed it."""
        while True:
            await asyncio.sleep(min(0.5, self._lease_seconds * MARGIN / 2))
            latest = self._clock.monotonic() - self._lease_seconds * (1 - MARGIN)
            late = [(part, run) for part, run in self._runs.items() if self._leased[part] < latest]
            if late:
                _LOG.warning("leases could not be renewed: stopping %d pipelines", len(late))
            for part, run in late:
                self.give_up(part, run.work.lease)

    def give_up(self, part: Part, lease: int) -> None:
        """Stop a pipeline, forget what it reported without an answer, and return its command."""
        self._stop(part, lease)
        forgotten = [report for report in self._reports if _part(report) == part and report["lease"] <= lease]
        self._reports = [report for report in self._reports if report not in forgotten]
        for report in forgotten:
            self._waiting.pop(report["number"], None)
        self.release(part, lease)

    def release(self, part: Part, lease: int) -> None:
        """Return a command to the server: nothing more is accepted under its lease."""
        self._released.append(_lease(part, lease))
        self._news.set()

    def _spawn(self, pipeline: Coroutine[Any, Any, None], work: Work) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(pipeline)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda task: self._return_failed(work, task))
        return task

    # ---- reports

    def send(self, work: Work, events: list[Event], done: Done | None = None) -> None:
        number = self._queue(work, events)
        if done is not None:
            self._waiting[number] = done

    def _queue(self, work: Work, events: list[Event]) -> int:
        self._last_report += 1
        offload = self._offloads.get((work.execution_id, work.run, work.iteration))
        if offload is not None:
            self._results += offload.take_blobs()
        self._reports.append(
            {
                **_lease((work.execution_id, work.run, work.iteration), work.lease),
                "number": self._last_report,
                "events": [list(event) for event in events],
            }
        )
        self._news.set()
        return self._last_report

    def _answer(self, number: int, accepted: bool) -> None:
        self._reports = [report for report in self._reports if report["number"] != number]
        done = self._waiting.pop(number, None)
        if done is not None:
            done(accepted)
        if self._is_draining:
            self._leave()

    # ---- bundles and results

    def _bundle(self, id: str) -> Bundle:
        found = self._bundles.get(id)
        if found is None:
            while len(self._bundles) >= BUNDLES_MAX:
                self._bundles.pop(next(iter(self._bundles)))
                self._missing_of.clear()
            found = self._bundles[id] = Bundle.of(self._link.get(f"/api/v1/bundles/{id}?worker={self.id}"))
        return found

    def _fetch(self, reference: Reference) -> bytes:
        # It blocks: a pipeline reads large results rarely, and needs them at once.
        return self._link.get(f"/api/v1/results/{reference.key}?worker={self.id}")


def _lease(part: Part, lease: int) -> dict[str, Any]:
    """Return a lease as messages name it."""
    return {"execution_id": part[0], "run": part[1], "iteration": part[2], "lease": lease}


def _part(report: dict[str, Any]) -> Part:
    return report["execution_id"], report["run"], report["iteration"]
