"""A short campaign of faults on real processes, and the check on histories that are broken on purpose."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from noetlvm.conformance.cluster import running
from noetlvm.conformance.service_runs import opened_for_reading
from noetlvm.data.event import Event, Recorded
from noetlvm.store.interface import Append, Execution
from noetlvm.store.memory import MemoryStore
from tests.waiting import wait_until
from tests.whole.chaos.campaign import FAULTS, run
from tests.whole.chaos.forked import ForkedCluster
from tests.whole.chaos.histories import Ending, Tracked, check
from tests.whole.chaos.load import Load

SECONDS = 15


@pytest.mark.long
def test_every_kind_of_fault_changes_nothing(tmp_path: Path) -> None:
    report = run(tmp_path, SECONDS, seed=1)
    assert report["violations"] == []
    assert set(report["faults"]) == set(FAULTS)
    assert report["executions"] > 1


@pytest.mark.parametrize("times", [1, pytest.param(3, marks=pytest.mark.long)])
def test_a_full_disk_under_sqlite_loses_nothing(tmp_path: Path, times: int) -> None:
    database = tmp_path / "service.db"
    options = ["--json", "--lease", "2"]
    made = ForkedCluster(f"sqlite:{database}", tmp_path, server_options=options, worker_options=["--slots", "4"])
    with running(made, servers=1, workers=2) as cluster:
        load = Load(cluster, tmp_path, 4)
        expected = load.run_one()
        load.begin()
        for _ in range(times):
            fill_disk(tmp_path, cluster.servers[0].process.pid, load)
        load.finish()
        reader, _ = opened_for_reading(cluster.store)
        violations = load.violations(reader, expected)
        reader.close()
        load.close()
    assert violations == []


def fill_disk(folder: Path, pid: int, load: Load) -> None:
    """Let a server under load have no room until it says so."""
    written, failures = len(load.tracked), store_failures(folder)
    wait_until(lambda: len(load.tracked) > written + 1)
    limit_files(pid, 4096)
    wait_until(lambda: store_failures(folder) > failures)
    limit_files(pid, resource.RLIM_INFINITY)


def store_failures(folder: Path) -> int:
    """Return how often servers have logged that their store failed."""
    return "".join(file.read_text() for file in folder.glob("server-*.err")).count("the store failed")


def limit_files(pid: int, limit: int) -> None:
    """Let a process write no file beyond a size."""
    hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit, hard))


LOG = [
    Event("playbook.execution.requested", {"execution": "one", "path": "load", "payload": {}}),
    Event("playbook.request.evaluated", {}),
    Event("workflow.started", {"workload": {}}),
    Event("token.enqueued", {"token": 1, "step": "start", "args": {}}),
    Event("step.scheduled", {"token": 1, "step": "start"}, 1),
    Event("step.started", {}, 1),
    Event("task.started", {}, 1, "", 1, "first", 1),
    Event(
        "task.done",
        {"do": "continue", "outcome": {"status": "ok", "meta": {"attempt": 1, "duration_ms": 0, "ts": 0.0}}},
        1,
        "",
        1,
        "first",
        1,
    ),
    Event("step.done", {"result": None}, 1),
    Event("next.evaluated", {"arcs": []}, 1),
    Event("workflow.finished", {"status": "success"}),
    Event("playbook.processed", {"status": "success", "failures": 0}),
]
DOCUMENTS = {"load": {"workflow": [{"step": "start", "tool": [{"first": {"kind": "noop"}}]}]}}
EXPECTED = Ending("success", {}, None)


def found(
    log: list[Event], folder: Path, *, lines: str = "first\n", seen: int = 0, ending: Ending = EXPECTED
) -> set[str]:
    store = MemoryStore()
    counts = {"ok": 1, "failed": 0, "rejected": 0, "failures": 0}
    row = Execution("one", "bundle", "load", "load", "success", 0.0, 1.0, counts=counts, seq=len(log))
    recorded = [Recorded(seq, f"event-{seq}", 0.0, event) for seq, event in enumerate(log, 1)]
    store.write([Append(row, 0, recorded, start_key="key")], {"bundle": b""})
    effects = folder / "effects"
    effects.write_text(lines, encoding="utf-8")
    tracked = Tracked("one", "key", effects, [(seen, f"event-{seen}")] if seen else [])
    return {violation.invariant for violation in check(store, DOCUMENTS, [tracked], EXPECTED, lambda _id: ending)}


def without(number: int) -> list[Event]:
    return LOG[:number] + LOG[number + 1 :]


def doubled(number: int) -> list[Event]:
    return LOG[: number + 1] + LOG[number:]


def test_a_log_in_order_breaks_nothing(tmp_path: Path) -> None:
    assert found(LOG, tmp_path, seen=12) == set()


@pytest.mark.parametrize(
    ("log", "invariant"),
    [
        (doubled(3), "token_once"),
        (doubled(4), "token_once"),
        (doubled(7), "attempts"),
        (without(6), "attempts"),
        (doubled(8), "run_once"),
        (doubled(9), "content"),
        (without(9), "finished"),
        (doubled(11), "order"),
        (without(11), "finished"),
        ([*LOG[:5], *[Event("step.scheduled", {"lease": 2}, 1)] * 2, *LOG[5:]], "leases_grow"),
        ([*LOG[:8], *[Event("loop.iteration.done", {}, 1, "0")] * 2, *LOG[8:]], "content"),
    ],
)
def test_a_broken_log_is_found(log: list[Event], invariant: str, tmp_path: Path) -> None:
    assert invariant in found(log, tmp_path)


def test_an_effect_too_many_or_too_few_is_found(tmp_path: Path) -> None:
    assert found(LOG, tmp_path, lines="first\nfirst\n") == {"effects"}
    assert found(LOG, tmp_path, lines="") == {"effects"}


def test_an_event_that_is_gone_is_found(tmp_path: Path) -> None:
    assert found(LOG, tmp_path, seen=13) == {"kept"}


def test_another_ending_is_found(tmp_path: Path) -> None:
    assert found(LOG, tmp_path, ending=Ending("failed", {}, None)) == {"same"}
