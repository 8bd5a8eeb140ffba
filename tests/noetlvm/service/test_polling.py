"""Workers without a WebSocket: the same exchange over plain requests, and when it is chosen."""

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
from noetlvm.data.encoding import decode, encode
from noetlvm.machine.loaded import Bundle
from noetlvm.results.interface import MemoryResults
from noetlvm.server.credentials import no_credentials
from noetlvm.service import polling_api
from noetlvm.service.app import service_app
from noetlvm.service.driver import Driver
from noetlvm.service.remote_worker import RemoteWorker
from noetlvm.service.server_link import AnyLink, PollingLink, RefusedError, ServerLink
from noetlvm.service.tokens import create_token
from noetlvm.store.memory import MemoryStore
from tests.noetlvm.engine.runs import PlayedTools
from tests.noetlvm.service.conftest import Service

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
HELLO = encode({"worker": "one", "pools": ["default"], "slots": 2})


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


@contextmanager
def without_websockets(url: str) -> Iterator[str]:
    """A proxy that passes requests on, and answers 400 to those that want a WebSocket."""
    port = int(url.rpartition(":")[2])
    loop = asyncio.new_event_loop()
    refused: list[bytes] = []

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if b"upgrade: websocket" in head.lower():
            refused.append(head)
            writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
            writer.close()
            return
        other_reader, other_writer = await asyncio.open_connection("127.0.0.1", port)
        other_writer.write(head)
        await asyncio.gather(pipe(reader, other_writer), pipe(other_reader, writer), return_exceptions=True)

    server = loop.run_until_complete(asyncio.start_server(handle, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
    assert refused


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


def test_a_worker_works_over_plain_requests() -> None:
    with served() as service:
        id = start(service)
        tools = work_until_ended(service, PollingLink(service.url, service.token), id)
    assert len(tools.calls) == 7


def test_a_worker_without_a_package_fails_a_pipeline_before_its_first_task() -> None:
    with served() as service:
        id = start(service)
        link = PollingLink(service.url, service.token)
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
        work_until_ended(service, PollingLink(service.url, service.token), id, records_inputs=records)
        started = [one.event.data for one in service.store.events(id) if one.event.name == "task.started"]
    assert started
    assert any("inputs" in data for data in started) is records


def test_a_worker_behind_a_proxy_without_websockets_uses_plain_requests() -> None:
    with served() as service, without_websockets(service.url) as url:
        id = start(service)
        assert len(work_until_ended(service, AnyLink(url, service.token), id).calls) == 7


def test_a_worker_whose_token_is_refused_ends() -> None:
    async def run(link: ServerLink) -> None:
        worker = RemoteWorker(link, PlayedTools(), id="one", pools=("default",), slots=1)
        await asyncio.wait_for(worker.run(), 60)

    with served() as service:
        for link in (PollingLink(service.url, "nvt_x_y"), AnyLink(service.url, "nvt_x_y")):
            with pytest.raises(RefusedError):
                asyncio.run(run(link))


def opened(service: Service, hello: bytes = HELLO) -> str:
    answer = service.http.post("/api/v1/worker/sessions", content=hello, headers=service.as_("worker"))
    assert answer.status_code == 201
    return f"/api/v1/worker/sessions/{answer.text}"


def test_a_session_belongs_to_its_token(service: Service) -> None:
    path = opened(service)
    assert service.http.get(f"{path}/messages?wait=0", headers=service.as_("worker")).status_code == 200
    other = {"Authorization": f"Bearer {create_token(service.driver.store, ['worker'], 1.0).token}"}
    for headers, status in ((other, 404), (service.as_("admin"), 403), ({}, 401)):
        assert service.http.get(f"{path}/messages?wait=0", headers=headers).status_code == status
        assert service.http.post(f"{path}/messages", content=b"", headers=headers).status_code == status
        assert service.http.delete(path, headers=headers).status_code == status
    unknown = "/api/v1/worker/sessions/unknown/messages"
    assert service.http.get(unknown, headers=service.as_("worker")).status_code == 404


def test_a_malformed_message_closes_the_session_with_a_reason(service: Service) -> None:
    path = opened(service)
    service.http.post(f"{path}/messages", content=b"\xc1", headers=service.as_("worker"))
    until(lambda: service.http.get(f"{path}/messages?wait=0", headers=service.as_("worker")).status_code == 409)
    answer = service.http.get(f"{path}/messages?wait=0", headers=service.as_("worker"))
    assert "malformed" in answer.json()["detail"]


def test_a_worker_that_leaves_or_is_silent_is_forgotten(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    path = opened(service)
    until(lambda: "one" in service.driver.hub.workers)
    assert service.http.delete(path, headers=service.as_("worker")).status_code == 204
    until(lambda: "one" not in service.driver.hub.workers)
    monkeypatch.setattr(polling_api, "SILENT_SECONDS_MAX", 0.2)
    opened(service)
    until(lambda: "one" in service.driver.hub.workers)
    until(lambda: "one" not in service.driver.hub.workers)


def test_commands_come_with_a_long_request(service: Service) -> None:
    path = opened(service)
    data = compile_texts([PLAYBOOK])
    service.driver.store.put_bundle(Bundle.of(data).id, data)
    body = {"bundle": Bundle.of(data).id}
    assert service.http.post("/api/v1/executions", json=body, headers=service.as_("run")).status_code == 201
    answer = service.http.get(f"{path}/messages?wait=20", headers=service.as_("worker"))
    (first, *_) = decode(answer.content)
    assert decode(first)["commands"]


def until(holds: Any) -> None:
    give_up = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < give_up
        time.sleep(0.02)
