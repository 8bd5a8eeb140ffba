"""A remote worker and a server on a loopback port."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn

from noetlvm.bridge import compile_texts
from noetlvm.machine.loaded import Bundle
from noetlvm.results.interface import MemoryResults
from noetlvm.rounds.credentials import no_credentials
from noetlvm.service.app import service_app
from noetlvm.service.driver import Driver
from noetlvm.service.remote_worker import RemoteWorker
from noetlvm.service.server_link import RefusedError, ServerLink, WebSocketLink
from noetlvm.service.tokens import create_token
from noetlvm.store.memory import MemoryStore
from tests.noetlvm.engine.runs import PlayedTools

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

    def __init__(self, url: str, store: MemoryStore, token: str) -> None:
        self.url, self.store, self.token = url, store, token


@contextmanager
def served(**options: Any) -> Iterator[Served]:
    store = MemoryStore()
    token = create_token(store, ["worker", "admin"], 1.0).token
    ready = threading.Event()
    stopping: list[uvicorn.Server] = []
    address: list[int] = []

    def run() -> None:
        driver = Driver(store, MemoryResults(), no_credentials, poll_seconds=0.05)
        config = uvicorn.Config(service_app(driver), port=0, log_config=None, ws="websockets-sansio", **options)
        config.timeout_graceful_shutdown = 1  # a long request of a worker would last until its end

        class Process(uvicorn.Server):
            async def startup(self, sockets: Any = None) -> None:
                await super().startup(sockets)
                address.append(self.servers[0].sockets[0].getsockname()[1])
                ready.set()

        stopping.append(Process(config))
        stopping[0].run()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(60)
    try:
        yield Served(f"http://127.0.0.1:{address[0]}", store, token)
    finally:
        stopping[0].should_exit = True
        thread.join(60)
        assert not thread.is_alive()


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
        async with asyncio.timeout(60):
            while (row := service.store.execution(id)) is None or row.ended is None:
                await asyncio.sleep(0.02)
            worker.drain()
            await task
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
        await asyncio.wait_for(worker.run(), 60)

    with served() as service, pytest.raises(RefusedError):
        asyncio.run(run(WebSocketLink(service.url, "nvt_x_y")))


def until(holds: Any) -> None:
    give_up = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < give_up
        time.sleep(0.02)
