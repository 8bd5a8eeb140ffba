"""Kill -9 of servers, workers, PostgreSQL and NATS under load: every execution ends as without it, nothing twice.

`make kill` does it thousands of times.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path

import httpx
import pytest

from noetlvm.conformance.cluster import Cluster, running
from noetlvm.conformance.databases import NatsProcess, PostgresProcess
from noetlvm.conformance.service_runs import opened_for_reading
from tests.waiting import wait_until
from tests.whole.chaos.databases import postgres_and_nats
from tests.whole.chaos.forked import ForkedCluster
from tests.whole.chaos.load import Load

KILLS = int(os.environ.get("SERVICE_KILLS", "200"))
"""In total, half of them on SQLite and half on PostgreSQL and NATS."""
LEASE_SECONDS = 2
POLL_SECONDS = 1.0
"""How often a server looks for rows that no wake-up announced."""
PAUSE_SECONDS = 0.3
"""Longest time between two kills."""

Kill = Callable[[random.Random], None]


def forked(store: str, folder: Path, wake: str | None = None) -> ForkedCluster:
    options = ["--json", "--lease", str(LEASE_SECONDS), *(["--wake", wake] if wake else [])]
    return ForkedCluster(store, folder, server_options=options, worker_options=["--slots", "4"])


def kill_a_server(cluster: Cluster) -> Kill:
    return lambda chance: cluster.restart_server(chance.randrange(len(cluster.servers)))


def kill_a_worker(cluster: Cluster) -> Kill:
    def kill(chance: random.Random) -> None:
        number = chance.randrange(len(cluster.workers))
        cluster.restart_worker(number, cluster.servers[number % len(cluster.servers)].url)

    return kill


def kill_a_database(database: PostgresProcess | NatsProcess) -> Kill:
    def kill(chance: random.Random) -> None:
        database.kill()
        time.sleep(chance.random() * PAUSE_SECONDS)  # for any time
        database.start()

    return kill


def kill_order(weights: dict[str, int], count: int, chance: random.Random) -> list[str]:
    """Return what to kill, in order: each kind at least once, the rest by weight."""
    rest = chance.choices(list(weights), list(weights.values()), k=max(0, count - len(weights)))
    order = [*weights, *rest]
    chance.shuffle(order)
    return order


def test_few_kills_are_of_every_kind() -> None:
    weights = {"server": 8, "worker": 8, "postgresql": 1, "nats": 2}
    for seed in range(100):
        assert Counter(kill_order(weights, 5, random.Random(seed))).keys() == weights.keys()
    assert sorted(kill_order(weights, 2, random.Random(1))) == sorted(weights)
    assert len(kill_order(weights, 100, random.Random(1))) == 100


def kill_under_load(cluster: Cluster, folder: Path, kills: dict[str, tuple[int, Kill]], count: int, seed: int) -> None:
    chance = random.Random(seed)
    load = Load(cluster, folder, seed)
    expected = load.run_one()
    assert expected.status == "success"
    order = kill_order({name: weight for name, (weight, _) in kills.items()}, count, chance)
    load.begin()
    for name in order:
        time.sleep(chance.random() * PAUSE_SECONDS)  # at any time
        kills[name][1](chance)
    load.finish()
    reader, _ = opened_for_reading(cluster.store)
    try:
        violations = load.violations(reader, expected)
    finally:
        reader.close()
        load.close()
    print(f"{len(load.tracked)} executions under {dict(Counter(order))}")
    assert violations == []


@pytest.mark.long
def test_kills_on_sqlite_change_nothing(tmp_path: Path) -> None:
    with running(forked(f"sqlite:{tmp_path / 'service.db'}", tmp_path), servers=1, workers=2) as cluster:
        kills = {"server": (1, kill_a_server(cluster)), "worker": (1, kill_a_worker(cluster))}
        kill_under_load(cluster, tmp_path, kills, KILLS // 2, 1)


@pytest.mark.long
def test_kills_on_postgresql_and_nats_change_nothing(tmp_path: Path) -> None:
    with (
        postgres_and_nats(tmp_path) as (postgres, nats),
        running(forked(postgres.address, tmp_path, nats.address), servers=2, workers=2) as cluster,
    ):
        kills = {
            "server": (8, kill_a_server(cluster)),
            "worker": (8, kill_a_worker(cluster)),
            "postgresql": (1, kill_a_database(postgres)),
            "nats": (2, kill_a_database(nats)),
        }
        kill_under_load(cluster, tmp_path, kills, KILLS // 2, 2)


SLOW = b"""\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: slow, path: chaos/slow }
workload: { file: "" }
workflow:
  - step: start
    tool:
      - only: { kind: shell, command: [sh, -c, 'echo only >> "$0"; sleep 0.3', "{{ workload.file }}"] }
"""


def moment(event: dict[str, object]) -> float:
    return datetime.fromisoformat(str(event["timestamp"])).timestamp()


def test_recovery_from_a_dead_worker_takes_one_lease(tmp_path: Path) -> None:
    """The worker is stopped, so that its connection stays open and only its lease says that it is gone."""
    file = tmp_path / "effects"
    with running(forked(f"sqlite:{tmp_path / 'service.db'}", tmp_path), servers=1, workers=1) as cluster:
        client = cluster.client()
        id = client.start(bundle=client.register(SLOW)["bundle"], payload={"file": str(file)})
        wait_until(file.exists)
        stopped = time.time()
        cluster.workers[0].send_signal(signal.SIGSTOP)
        cluster.add_worker(cluster.servers[0].url)
        wait_until(lambda: client.execution(id)["ended"] is not None)
        cluster.workers[0].send_signal(signal.SIGCONT)  # it reports, too late
        ended = client.execution(id)
        cluster.workers[0].send_signal(signal.SIGTERM)
        cluster.workers[0].wait(120)  # it leaves when all its reports are answered
        assert client.execution(id) == ended
        events = list(client.events(id))
    replaced = [event for event in events if event["name"] == "step.scheduled" and "lease" in event["data"]]
    assert len(replaced) == 1
    # Machines are noisy, so how long it took is no part of the test: one lease was lost, and the next was enough.
    assert replaced[0]["data"]["lease"] == 2
    assert moment(replaced[0]) > stopped
    assert file.read_text(encoding="utf-8").splitlines() == ["only", "only"]
    assert ended["status"] == "success"


def test_a_server_is_alive_and_not_ready_while_postgresql_is_stopped(tmp_path: Path) -> None:
    """Its processes are stopped in the middle of some work: connections stay open, and nothing answers."""
    file = tmp_path / "effects"
    with (
        closing(PostgresProcess()) as postgres,
        running(forked(postgres.address, tmp_path), servers=1, workers=2) as cluster,
        httpx.Client(base_url=cluster.servers[0].url, timeout=30) as http,
    ):
        client = cluster.client()
        id = client.start(bundle=client.register(SLOW)["bundle"], payload={"file": str(file)})
        wait_until(file.exists)
        postgres.signal(signal.SIGSTOP)
        wait_until(lambda: http.get("/readyz").status_code == 503)
        assert "has not answered" in http.get("/readyz").json()["detail"]
        assert http.get("/healthz").status_code == 200
        postgres.signal(signal.SIGCONT)
        wait_until(lambda: http.get("/readyz").status_code == 200)
        wait_until(lambda: client.execution(id)["ended"] is not None)
        assert client.execution(id)["status"] == "success"


def test_nothing_is_lost_when_every_wake_up_is_dropped(tmp_path: Path) -> None:
    """Work is opened by one server, and the workers are at the other: only its polling finds it."""
    with (
        postgres_and_nats(tmp_path) as (postgres, nats),
        running(forked(postgres.address, tmp_path, nats.address), servers=2, workers=0) as cluster,
    ):
        nats.kill()
        for _ in range(2):
            cluster.add_worker(cluster.servers[1].url)
        load = Load(cluster, tmp_path, 3, servers=[0])
        for _ in range(3):
            assert load.run_one().status == "success"
        load.close()
        nats.start()
