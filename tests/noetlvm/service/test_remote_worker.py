"""A remote worker and a server on a loopback port."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest

from noetlvm.bridge import compile_texts
from noetlvm.machine.loaded import Bundle
from noetlvm.protocol.link import RefusedError, ServerLink, WebSocketLink
from noetlvm.results.interface import MemoryResults
from noetlvm.rounds.credentials import no_credentials
from noetlvm.service.app import service_app
from noetlvm.service.driver import Driver, ServerPorts
from noetlvm.service.process import bound_socket
from noetlvm.service.tokens import create_token
from noetlvm.service.web_server import WebServer
from noetlvm.store.memory import MemoryStore
from noetlvm.worker.remote_worker import RemoteWorker
from tests.noetlvm.engine.runs import PlayedTools
from tests.waiting import until

PLAYBOOK = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: test, path: tests/test }
workflow:
  - step: start
    loop: { in: [1, 2, 3, 4, 5, 6], iterator: n, spec: { mode: parallel } }
    tool: [{ a: { kind: shell, command: ["true"] } }]
    next: { arcs: [{ step: end, when: "{{ event.name == 'loop.done' }}" }] }
  - step: end
    tool: [{ b: { kind: shell, command: ["true"] } }]
"""


class Served:
    """A server on a loopback port in a thread of its own."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.token = create_token(self.store, ["worker", "admin"], 1.0).token
        self.driver = Driver(self.store, MemoryResults(), no_credentials, ServerPorts(poll_seconds=0.05))
        self._socket = bound_socket("127.0.0.1:0")
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._is_ready = threading.Event()
        self._server = WebServer(service_app(self.driver), self._is_ready.set)
        self._server.capture_signals = nullcontext  # type: ignore[method-assign]  # they are those of the main thread
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)

    def start(self) -> None:
        self._thread.start()
        assert self._is_ready.wait(60)

    def stop(self) -> None:
        self._server.should_exit = True

    def join(self) -> None:
        self._thread.join(60)
        assert not self._thread.is_alive()


@contextmanager
def served() -> Iterator[Served]:
    service = Served()
    service.start()
    try:
        yield service
    finally:
        service.stop()
        service.join()


def start(client: Served) -> str:
    import httpx

    headers = {"Authorization": f"Bearer {client.token}"}
    data = compile_texts([PLAYBOOK])
    client.store.put_bundle(Bundle.of(data).id, data)
    body = {"bundle": Bundle.of(data).id}
    answer = httpx.post(f"{client.url}/api/v1/executions", json=body, headers=headers)
    return str(answer.json()["execution_id"])


def work_until_ended(
    service: Served, link: ServerLink, id: str, *, status: str = "success", **settings: Any
) -> PlayedTools:
    """Run a worker until an execution has ended."""
    tools = PlayedTools()

    async def run() -> None:
        worker = RemoteWorker(link, tools, id="one", pools=("default",), slots=2, **settings)
        task = asyncio.create_task(worker.run())
        async with asyncio.timeout(120):
            await until(lambda: (row := service.store.execution(id)) is not None and row.ended is not None)
            worker.drain()
            await task
        row = service.store.execution(id)
        assert row is not None
        assert row.status == status

    asyncio.run(run())
    return tools


def test_a_worker_without_a_package_fails_a_pipeline_before_its_first_task() -> None:
    with served() as service:
        id = start(service)
        link = WebSocketLink(service.url, service.token)
        tools = work_until_ended(service, link, id, status="failed", missing=lambda _kinds: ["`python` needs a snake"])
        (failed, *_) = [one.event.data for one in service.store.events(id) if one.event.name == "task.done"]
    assert not tools.calls
    assert failed["outcome"]["error"] | {"details": {}} == {
        "kind": "dependency",
        "retryable": False,
        "message": "`python` needs a snake",
        "details": {},
    }


@pytest.mark.parametrize("records", [True, False])
def test_a_worker_records_what_tools_are_given_as_its_setting_says(records: bool) -> None:
    with served() as service:
        id = start(service)
        work_until_ended(service, WebSocketLink(service.url, service.token), id, records_inputs=records)
        started = [one.event.data for one in service.store.events(id) if one.event.name == "task.started"]
    assert started
    assert any("inputs" in data for data in started) is records


def test_a_worker_whose_token_is_refused_ends() -> None:
    async def run(link: ServerLink) -> None:
        worker = RemoteWorker(link, PlayedTools(), id="one", pools=("default",), slots=1)
        await asyncio.wait_for(worker.run(), 120)

    with served() as service, pytest.raises(RefusedError):
        asyncio.run(run(WebSocketLink(service.url, "nvt_x_y")))
