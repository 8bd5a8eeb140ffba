"""A worker process: holds one connection to a server, runs the commands that come on it, and reports.

It has no port of its own and no database. What it holds, it holds by leases: if the connection is lost and cannot be
had again before they end, it stops its work, because another worker may have it by then.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import logging
import random
import ssl
from collections.abc import Coroutine
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from noetlvm.data.encoding import decode, encode
from noetlvm.data.event import Event
from noetlvm.data.references import Reference
from noetlvm.machine.loaded import Bundle
from noetlvm.machine.messages import Work, from_data
from noetlvm.machine.payload import Offload
from noetlvm.server.credentials import Credentials
from noetlvm.tools.call import Tools
from noetlvm.worker.pipeline_run import Clock, PipelinePorts, PipelineRun, SystemClock

HEARTBEAT_SECONDS = 5.0
LEASE_SECONDS = 15.0
MARGIN_SECONDS = 2.0
"""Work stops so long before its lease ends."""
RETRY_SECONDS = (0.1, 5.0)
"""Shortest and longest wait before the connection is tried again."""
MESSAGE_BYTES_MAX = 64 * 1024 * 1024
BUNDLES_MAX = 100

_LOG = logging.getLogger("noetlvm.worker")

Part = tuple[str, int, str]


class RefusedError(Exception):
    """The server refuses this worker: trying again does not help."""


class RemoteWorker:
    """One worker process."""

    def __init__(
        self,
        server: str,
        token: str,
        tools: Tools,
        *,
        id: str,
        pools: tuple[str, ...],
        slots: int,
        clock: Clock | None = None,
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        self.id = id
        self._server = server.rstrip("/")
        self._token = token
        self._tools = tools
        self._pools = pools
        self._slots = slots
        self._lease_seconds = lease_seconds
        self._clock: Clock = clock or SystemClock()
        self._runs: dict[Part, PipelineRun] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._bundles: dict[str, Bundle] = {}
        self._reports: list[dict[str, Any]] = []
        self._waiting: dict[int, asyncio.Future[bool]] = {}
        self._last_report = 0
        self._results: list[tuple[str, bytes]] = []
        self._offloads: dict[Part, Offload] = {}
        self._news = asyncio.Event()
        self._is_draining = False
        self._leaves = asyncio.Event()
        self._contact = monotonic()
        """When the server last answered: leases are good for that long and one lease more."""
        self._ports = PipelinePorts(
            tools,
            self._clock,
            self,
            asyncio.Semaphore(slots),
            self._spawn,
            lambda: False,
            self._ended,
        )

    # ---- the connection

    async def run(self) -> None:
        """Work until `drain` has come to its end. Raises RefusedError."""
        from websockets.exceptions import WebSocketException

        watch = asyncio.create_task(self._watch_leases())
        wait = RETRY_SECONDS[0]
        try:
            while not self._is_done:
                try:
                    await self._connected()
                    wait = RETRY_SECONDS[0]
                except (OSError, WebSocketException) as error:
                    _LOG.warning("no connection to %s: %s", self._server, error)
                if not self._is_done:
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._leaves.wait(), wait * (0.5 + random.random()))
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
        if not self._runs:
            self._leaves.set()

    @property
    def _is_done(self) -> bool:
        return self._is_draining and not self._runs and not self._reports

    async def _connected(self) -> None:
        from websockets.asyncio.client import connect

        address = self._server.replace("http", "ws", 1) + "/api/v1/worker"
        headers = {"Authorization": f"Bearer {self._token}"}
        async with connect(address, additional_headers=headers, max_size=MESSAGE_BYTES_MAX, compression=None) as socket:
            await socket.send(encode({"worker": self.id, "pools": list(self._pools), "slots": self._slots}))
            # Reports without an answer are sent again: the server takes each once.
            sender = asyncio.create_task(self._send(socket))
            self._news.set()
            try:
                while not self._is_done:
                    receiving = asyncio.ensure_future(socket.recv())
                    leaving = asyncio.ensure_future(self._leaves.wait())
                    done, _ = await asyncio.wait({receiving, leaving}, return_when=asyncio.FIRST_COMPLETED)
                    leaving.cancel()
                    if receiving not in done:
                        receiving.cancel()
                        break
                    data = receiving.result()
                    self._take(decode(data if isinstance(data, bytes) else data.encode()))
            finally:
                sender.cancel()
            if socket.close_code == 4401:
                raise RefusedError(socket.close_reason or "the token is refused")

    async def _send(self, socket: Any) -> None:
        sent = 0
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), HEARTBEAT_SECONDS)
            self._news.clear()
            results, self._results = self._results, []
            reports = [report for report in self._reports if report["number"] > sent]
            sent = max((report["number"] for report in reports), default=sent)
            message: dict[str, Any] = {"reports": reports, "results": results}
            if self._is_draining:
                message["slots"] = 0
            await socket.send(encode(message))

    def _take(self, message: dict[str, Any]) -> None:
        self._contact = monotonic()
        for number, accepted in message["answers"]:
            self._answer(number, accepted)
        for execution_id, run, iteration, lease in message["stop"]:
            self._stop((execution_id, run, iteration), lease)
        for command in message["commands"]:
            self._begin(from_data(command["work"]), command["secrets"])

    # ---- commands

    def _begin(self, work: Work, secrets: dict[str, Any]) -> None:
        from noetlvm.keychain.shapes import secret_texts

        part = (work.execution_id, work.run, work.iteration)
        playbook = self._bundle(work.bundle).program.playbooks[work.path]
        credentials = Credentials(secrets, [text for value in secrets.values() for text in secret_texts(value)])
        offload = Offload(playbook.limits.max_payload_bytes, self._fetch, redact=credentials.redact)
        self._offloads[part] = offload
        run = PipelineRun(work, playbook, credentials, offload, self._ports)
        run.begin()
        if run.task is not None:
            self._runs[part] = run
        else:
            self._offloads.pop(part, None)

    def _stop(self, part: Part, lease: int) -> None:
        run = self._runs.get(part)
        if run is not None and run.work.lease <= lease:
            run.stop(now=True)

    def _ended(self, run: PipelineRun) -> None:
        part = (run.work.execution_id, run.work.run, run.work.iteration)
        if self._runs.get(part) is run:
            del self._runs[part]
            self._offloads.pop(part, None)
        if self._is_draining:
            self._news.set()
            if not self._runs:
                asyncio.get_running_loop().call_later(0.05, self._leave)

    def _leave(self) -> None:
        if not self._reports and not self._runs:
            self._leaves.set()

    async def _watch_leases(self) -> None:
        """Stop all work before its lease ends, if the server has not been reached for that long."""
        while True:
            await asyncio.sleep(0.5)
            if monotonic() - self._contact > self._lease_seconds - MARGIN_SECONDS and self._runs:
                _LOG.warning("leases could not be renewed: stopping %d pipelines", len(self._runs))
                for run in list(self._runs.values()):
                    run.stop(now=True)
                self._reports.clear()
                for future in self._waiting.values():
                    future.cancel()
                self._waiting.clear()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # ---- reports

    def send(self, work: Work, events: list[Event]) -> None:
        self._queue(work, events)

    async def report(self, work: Work, events: list[Event]) -> bool:
        number = self._queue(work, events)
        durable: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[number] = durable
        return await durable

    def _queue(self, work: Work, events: list[Event]) -> int:
        self._last_report += 1
        offload = self._offloads.get((work.execution_id, work.run, work.iteration))
        if offload is not None:
            self._results += offload.take_blobs()
        self._reports.append(
            {
                "number": self._last_report,
                "execution_id": work.execution_id,
                "run": work.run,
                "iteration": work.iteration,
                "lease": work.lease,
                "events": [list(event) for event in events],
            }
        )
        self._news.set()
        return self._last_report

    def _answer(self, number: int, accepted: bool) -> None:
        self._reports = [report for report in self._reports if report["number"] != number]
        future = self._waiting.pop(number, None)
        if future is not None and not future.done():
            future.set_result(accepted)
        if self._is_draining:
            self._leave()

    # ---- bundles and results

    def _bundle(self, id: str) -> Bundle:
        found = self._bundles.get(id)
        if found is None:
            while len(self._bundles) >= BUNDLES_MAX:
                self._bundles.pop(next(iter(self._bundles)))
            found = self._bundles[id] = Bundle.of(self._get(f"/api/v1/bundles/{id}"))
        return found

    def _fetch(self, reference: Reference) -> bytes:
        return self._get(f"/api/v1/results/{reference.key}?worker={self.id}")

    def _get(self, path: str) -> bytes:
        """Read from the server. It blocks: a pipeline reads large results rarely, and needs them at once."""
        url = urlsplit(self._server)
        port = url.port or (443 if url.scheme == "https" else 80)
        host = url.hostname or ""
        connection: http.client.HTTPConnection = (
            http.client.HTTPSConnection(host, port, timeout=30, context=ssl.create_default_context())
            if url.scheme == "https"
            else http.client.HTTPConnection(host, port, timeout=30)
        )
        with contextlib.closing(connection):
            connection.request("GET", path, headers={"Authorization": f"Bearer {self._token}"})
            answer = connection.getresponse()
            data = answer.read()
        if answer.status != 200:
            raise LookupError(f"the server answers {answer.status} for {path}")
        return data
