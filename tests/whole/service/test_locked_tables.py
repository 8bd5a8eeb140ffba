"""PostgreSQL lets a server wait: for a lock on a table, or because readers fill all threads. No lease ends of it.

Leases need the tables `commands` and `executions`: while one of these is locked, they cannot be renewed, and tasks run
again. Everything else may be locked. What has ended meanwhile is reported afterwards, under the lease that it had.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from noetlvm.conformance.cluster import Cluster
from noetlvm.protocol.link import WebSocketLink
from noetlvm.tools.call import Outcome, ToolCall, ok
from noetlvm.worker.remote_worker import RemoteWorker
from tests.servers import postgres_server
from tests.whole.service.processes import cluster, persistently, wait_for

LEASE_SECONDS = 2
TASKS = 8
READERS = 60
PLAYBOOK = f"""
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{ name: waiting, path: tests/waiting }}
workflow:
  - step: start
    loop: {{ in: "{{{{ range({TASKS}) | list }}}}", iterator: n, spec: {{ mode: parallel }} }}
    tool: [{{ wait: {{ kind: shell, command: ["true"], env: {{ N: "{{{{ iter.n }}}}" }} }} }}]
"""
LEASES = {"commands", "executions"}
OTHERS = [
    "bundles",
    "chunks",
    "migrations",
    "playbooks",
    "requests",
    "result_references",
    "results",
    "snapshots",
    "start_keys",
    "tokens",
]


class WaitingTasks:
    """A worker in this process, whose tasks end when the test says so."""

    def __init__(self, made: Cluster) -> None:
        self.calls: Counter[str] = Counter()
        """How often each task was run."""
        self.half_may_end, self.all_may_end = threading.Event(), threading.Event()
        self._url, self._token = made.servers[0].url, made.token
        self._ends: Callable[[], object] = lambda: None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._work()))

    def __enter__(self) -> WaitingTasks:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.all_may_end.set()
        self._ends()
        self._thread.join(60)

    async def _work(self) -> None:
        worker = RemoteWorker(WebSocketLink(self._url, self._token), self, id="w", pools=("default",), slots=TASKS)
        loop = asyncio.get_running_loop()
        self._ends = lambda: loop.call_soon_threadsafe(worker.drain)
        await worker.run()

    def at_once(self, call: ToolCall) -> Outcome | None:
        return None

    async def run(self, call: ToolCall) -> Outcome:
        self.calls[call.key] += 1
        is_first = int(call.inputs["env"]["N"]) < TASKS // 2
        while not (self.half_may_end if is_first else self.all_may_end).is_set():
            await asyncio.sleep(0.02)  # between two looks
        return ok()

    async def close(self) -> None:
        """Nothing is open."""


@contextmanager
def started(folder: Path, lease: int) -> Iterator[tuple[Cluster, WaitingTasks, str, str]]:
    """A server whose eight tasks run; its worker and tasks, the execution, and the address of the store."""
    with (
        postgres_server() as store,
        cluster(store, folder, workers=0, lease=lease) as made,
        WaitingTasks(made) as tasks,
    ):
        bundle = persistently(made.client().register, PLAYBOOK.encode())["bundle"]
        id = persistently(made.client().start, bundle=bundle, key="one")
        until(lambda: len(tasks.calls) == TASKS)
        yield made, tasks, id, store


@contextmanager
def locked(store: str, *tables: str) -> Iterator[None]:
    """Hold a lock on tables that nothing else can be done beside."""
    with psycopg.connect(store) as connection:
        for table in tables:
            connection.execute(SQL("LOCK TABLE {}").format(Identifier("noetlvm", table)))
        yield


@contextmanager
def readers(url: str, token: str, count: int) -> Iterator[None]:
    """Requests that read the store, more than a server has threads."""
    address = urlsplit(url)
    head = f"GET /api/v1/playbooks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    with ExitStack() as stack:
        for _ in range(count):
            connection = stack.enter_context(socket.create_connection((address.hostname or "", address.port or 0)))
            connection.sendall(head)
        yield


def until(holds: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < give_up
        time.sleep(0.02)  # between two tries


def assert_nothing_waits(folder: Path, lease: int, tables: list[str], readers_count: int) -> None:
    """Lock tables for three leases: the server answers all the time, and no task runs again."""
    with started(folder, lease) as (made, tasks, id, store):
        with locked(store, *tables), readers(made.servers[0].url, made.token, readers_count):
            unlocks = time.monotonic() + 3 * lease
            while time.monotonic() < unlocks:
                answer = httpx.get(f"{made.servers[0].url}/healthz", timeout=lease / 2)
                assert answer.status_code == 200
                time.sleep(0.05)  # between two looks
                if unlocks - time.monotonic() < 2 * lease:
                    tasks.half_may_end.set()  # their reports wait for longer than a lease
        tasks.half_may_end.set()
        tasks.all_may_end.set()
        assert wait_for(made.client(), id)["status"] == "success"
        assert set(tasks.calls.values()) == {1}
        assert len(tasks.calls) == TASKS


def test_while_all_other_tables_are_locked_and_readers_fill_all_threads_no_task_runs_again(tmp_path: Path) -> None:
    assert_nothing_waits(tmp_path, LEASE_SECONDS, OTHERS, READERS)


@pytest.mark.long
@pytest.mark.parametrize("table", OTHERS)
def test_while_a_table_is_locked_no_task_runs_again(tmp_path: Path, table: str) -> None:
    assert_nothing_waits(tmp_path, 4, [table], READERS)


@pytest.mark.parametrize("table", sorted(LEASES))
def test_a_server_that_cannot_renew_leases_is_not_ready_but_alive(tmp_path: Path, table: str) -> None:
    with started(tmp_path, LEASE_SECONDS) as (made, tasks, id, store):
        url = made.servers[0].url
        assert httpx.get(f"{url}/readyz").status_code == 200
        with locked(store, table):
            until(lambda: httpx.get(f"{url}/readyz").status_code == 503)
            assert httpx.get(f"{url}/healthz").status_code == 200
            assert "leases" in httpx.get(f"{url}/readyz").json()["detail"]
        until(lambda: httpx.get(f"{url}/readyz").status_code == 200)
        tasks.half_may_end.set()
        tasks.all_may_end.set()
        assert wait_for(made.client(), id)["status"] == "success"
