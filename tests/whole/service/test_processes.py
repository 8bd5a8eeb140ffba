"""Servers and workers as processes: what they run ends as it does embedded, whichever of them is killed meanwhile."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from noetlvm.client import Client
from noetlvm.conformance.cluster import Cluster
from tests.servers import nats_server, new_database
from tests.waiting import wait_until
from tests.whole.service.processes import cluster, persistently, run_to_end, wait_for

WORKLOAD = b"""\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: mixed, path: tests/mixed }
workload: { file: "", items: [1, 2, 3, 4, 5, 6, 7, 8] }
workflow:
  - step: start
    tool:
      - first: { kind: shell, command: [sh, -c, 'echo first >> "$0"; sleep 0.1', "{{ workload.file }}"] }
      - second:
          kind: shell
          command: [sh, -c, 'echo second >> "$0"; head -c 100000 /dev/zero | tr "\\\\0" x', "{{ workload.file }}"]
          spec:
            policy:
              rules:
                - else: { then: { do: continue, set_ctx: { size: "{{ outcome.result.stdout | length }}" } } }
    next: { arcs: [{ step: many }] }
  - step: many
    loop:
      in: "{{ workload['items'] }}"
      iterator: item
      spec: { mode: parallel, max_in_flight: 3, policy: { reducers: { total: sum, seen: append } } }
    tool:
      - note:
          kind: shell
          command:
            [sh, -c, 'echo "item $1" >> "$0"; sleep 0.05; echo "$1"', "{{ workload.file }}", "{{ iter.item | string }}"]
      - write:
          kind: noop
          spec:
            policy:
              rules:
                - else:
                    then: { do: continue, set_ctx: { total: "{{ iter.item }}", seen: "{{ _prev.stdout | trim }}" } }
    next: { arcs: [{ step: end, when: "{{ event.name == 'loop.done' }}" }] }
  - step: end
    tool:
      - last: { kind: python, args: { total: "{{ ctx.total }}" }, code: "result = total * 2" }
"""
EXPECTED = {"size": 100_000, "total": 36, "seen": [str(number) for number in range(1, 9)]}


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("service")
    if request.param == "sqlite":
        with cluster(f"sqlite:{folder / 'service.db'}", folder) as made:
            yield made
        return
    store = new_database(request.getfixturevalue("postgres_server"))
    with (
        nats_server(folder / "nats") as wake,
        cluster(store, folder, servers=2, workers=2, wake=wake) as made,
    ):
        yield made


def checked(client: Client, ending: dict[str, Any], file: Path) -> None:
    """Every token fired once, and what was accepted was not done again."""
    assert (ending["status"], ending["ctx"], ending["result"]) == ("success", EXPECTED, 72)
    events = persistently(lambda: list(client.events(ending["execution_id"])))
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    counts = Counter(event["name"] for event in events)
    assert counts["loop.iteration.done"] == 8
    assert counts["next.evaluated"] == 3
    assert counts["workflow.finished"] == counts["playbook.processed"] == 1
    lines = Counter(file.read_text(encoding="utf-8").splitlines())
    assert set(lines) == {"first", "second", *(f"item {number}" for number in range(1, 9))}


def test_a_playbook_runs_on_servers_and_workers(running: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "effects"
    with running.client() as client:
        ending = run_to_end(client, [WORKLOAD], {"file": str(file)})
        checked(client, ending, file)
    assert max(Counter(file.read_text(encoding="utf-8").splitlines()).values()) == 1


LISTENING = "0A"


def listens(pid: int) -> bool:
    """Return whether a process has a TCP socket that accepts connections."""
    process = Path(f"/proc/{pid}")
    opened = set()
    for link in (process / "fd").iterdir():
        with suppress(FileNotFoundError):  # closed in the meantime
            opened.add(str(link.readlink()))
    tables = [process / "net" / name for name in ("tcp", "tcp6")]
    rows = [line.split() for table in tables if table.exists() for line in table.read_text().splitlines()[1:]]
    return any(row[3] == LISTENING and f"socket:[{row[9]}]" in opened for row in rows)


def test_a_worker_listens_on_no_socket(running: Cluster, tmp_path: Path) -> None:
    with running.client() as client:
        run_to_end(client, [WORKLOAD], {"file": str(tmp_path / "effects")})
    assert all(listens(server.process.pid) for server in running.servers)
    assert not any(listens(worker.pid) for worker in running.workers)


def test_pause_resume_and_cancel_reach_a_running_execution(running: Cluster, tmp_path: Path) -> None:
    with running.client() as client:
        bundle = client.register(WORKLOAD.replace(b"sleep 0.1", b"sleep 30"))["bundle"]
        id = client.start(bundle=bundle, payload={"file": str(tmp_path / "effects")})
        client.control(id, "cancel")
        assert wait_for(client, id)["status"] == "cancelled"


GATED = b"""\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: long, path: tests/long }
workload: { file: "" }
workflow:
  - step: start
    tool:
      - only:
          kind: shell
          command:
            [sh, -c, 'echo began >> "$0"; while ! test -e "$0.gate"; do sleep 0.05; done', "{{ workload.file }}"]
"""


def lease_end(database: Path) -> float:
    """Return when the last lease in a database ends; 0: there is none."""
    with closing(sqlite3.connect(database)) as connection:
        return float(connection.execute("SELECT coalesce(max(until), 0) FROM commands").fetchone()[0])


def test_a_lease_is_renewed_as_long_as_its_task_takes(tmp_path: Path) -> None:
    file, database = tmp_path / "effects", tmp_path / "service.db"
    with cluster(f"sqlite:{database}", tmp_path, workers=1, lease=9) as made, made.client() as client:
        id = client.start(bundle=client.register(GATED)["bundle"], payload={"file": str(file)})
        wait_until(lambda: lease_end(database))
        first = lease_end(database)
        wait_until(lambda: lease_end(database) > first)
        Path(f"{file}.gate").touch()
        assert wait_for(client, id)["status"] == "success"
        names = [event["name"] for event in client.events(id)]
    assert file.read_text(encoding="utf-8") == "began\n"
    assert names.count("step.scheduled") == 1


def test_a_server_that_is_killed_and_started_again_finds_the_work_of_its_workers_going_on(tmp_path: Path) -> None:
    file = tmp_path / "effects"
    with cluster(f"sqlite:{tmp_path / 'service.db'}", tmp_path, workers=1, lease=60) as made, made.client() as client:
        bundle = client.register(GATED)["bundle"]
        id = client.start(bundle=bundle, payload={"file": str(file)})
        wait_until(file.exists)
        made.restart_server(0)
        Path(f"{file}.gate").touch()
        assert wait_for(client, id)["status"] == "success"
        names = [event["name"] for event in client.events(id)]
    assert file.read_text(encoding="utf-8") == "began\n"
    assert names.count("step.scheduled") == 1
