"""What every store promises; each test runs against each store."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from noetlvm.data.encoding import UnencodableError, encode
from noetlvm.data.event import Event, Recorded
from noetlvm.data.references import Reference
from noetlvm.limits import EVENT_BYTES_MAX
from noetlvm.store.interface import ConflictError, ControlRequest, Dispatch, Snapshot, Store, StoreError
from noetlvm.store.memory import MemoryStore
from noetlvm.store.sqlite import SqliteStore
from tests.noetlvm.store.records import event, events, execution

STORES = {
    "memory": lambda folder: MemoryStore(),
    "sqlite": lambda folder: SqliteStore(folder / "runs.db"),
    "sqlite relaxed": lambda folder: SqliteStore(folder / "runs.db", "relaxed"),
}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with closing(STORES[request.param](tmp_path)) as opened:
        yield opened


def seqs(store: Store, execution_id: str = "x") -> list[int]:
    return [recorded.seq for recorded in store.events(execution_id)]


# ---- events


def test_events_come_back_as_they_were_appended(store: Store) -> None:
    told = [
        event(1, outcome={"status": "ok", "result": [1, 2.5, None, True, "ü", 2**70, {"deep": {}}]}),
        Recorded(2, "0190", 2.0, Event("workflow.finished", {})),
    ]
    store.append("x", 0, told, execution())
    store.commit()
    assert list(store.events("x")) == told


def test_references_in_events_come_back(store: Store) -> None:
    reference = Reference("results", "ab" * 32, 70_000, "list of 9")
    store.append("x", 0, [event(1, result=reference)], execution())
    store.commit()
    (recorded,) = store.events("x")
    assert recorded.event.data["result"].to_data() == reference.to_data()


def test_nothing_is_seen_before_its_commit(store: Store) -> None:
    store.append("x", 0, events([1]), execution())
    store.put_bundle("sha256:b", b"code")
    assert (seqs(store), store.execution("x"), store.bundle("sha256:b")) == ([], None, None)
    store.commit()
    assert (seqs(store), store.bundle("sha256:b")) == ([1], b"code")


def test_one_commit_holds_many_decisions_of_many_executions(store: Store) -> None:
    for seq in range(5):
        for name in ("a", "b", "c"):
            store.append(name, seq, events([seq + 1]), execution(name, counts={"steps": seq}))
    store.commit()
    assert [seqs(store, name) for name in "abc"] == [[1, 2, 3, 4, 5]] * 3
    assert [(found.seq, found.counts) for found in store.unfinished()] == [(5, {"steps": 4})] * 3


def test_a_commit_without_anything_to_write_changes_nothing(store: Store) -> None:
    store.commit()
    assert store.executions() == []


def test_events_can_be_read_in_part(store: Store) -> None:
    store.append("x", 0, events(range(1, 2_501)), execution())
    store.commit()
    assert seqs(store) == list(range(1, 2_501))
    assert [recorded.seq for recorded in store.events("x", after=990, until=2_005)] == list(range(991, 2_006))
    assert list(store.events("x", after=2_500)) == []
    assert list(store.events("unknown")) == []


@pytest.mark.parametrize(
    ("expected", "numbers"),
    [(0, [1]), (1, [2]), (3, [4]), (2, [4]), (2, [3, 5]), (2, [3, 3]), (2, [2])],
    ids=["new again", "behind", "ahead", "gap", "gap inside", "twice", "again"],
)
@pytest.mark.parametrize("is_committed", [True, False])
def test_events_that_do_not_follow_the_last_one_are_refused(
    store: Store, expected: int, numbers: list[int], is_committed: bool
) -> None:
    store.append("x", 0, events([1, 2]), execution())
    if is_committed:
        store.commit()
    with pytest.raises(ConflictError):
        store.append("x", expected, events(numbers), execution(status="failed"))
    store.append("x", 2, events([3]), execution())
    store.commit()
    found = store.execution("x")
    assert found is not None
    assert (seqs(store), found.status) == ([1, 2, 3], "running")


def test_what_is_no_data_is_refused_and_nothing_of_its_decision_stays(store: Store) -> None:
    with pytest.raises(UnencodableError):
        store.append("x", 0, [event(1), event(2, what=object())], execution())
    store.commit()
    assert store.execution("x") is None
    store.append("x", 0, events([1]), execution())


def test_an_event_may_be_as_large_as_its_limit_and_no_larger(store: Store) -> None:
    around = len(encode({"text": "a" * 100_000})) - 100_000
    store.append("x", 0, [event(1, text="a" * (EVENT_BYTES_MAX - around))], execution())
    with pytest.raises(StoreError, match="store it as a result"):
        store.append("x", 1, [event(2, text="a" * (EVENT_BYTES_MAX - around + 1))], execution())
    store.commit()
    assert seqs(store) == [1]


def test_events_come_with_how_their_own_execution_stands(store: Store) -> None:
    with pytest.raises(ValueError, match="come with how y stands"):
        store.append("x", 0, events([1]), execution("y"))


def test_appending_goes_on_while_another_thread_commits(store: Store) -> None:
    ends = threading.Event()

    def commit_all_the_time() -> None:
        while not ends.is_set():
            store.commit()

    committer = threading.Thread(target=commit_all_the_time)
    committer.start()
    seen = 0
    for seq in range(150):
        store.append("x", seq, events([seq + 1]), execution(ended=1.0 if seq % 2 else None))
        read = seqs(store)
        assert read == list(range(1, len(read) + 1))
        assert len(read) >= seen
        seen = len(read)
    ends.set()
    committer.join()
    store.commit()
    assert seqs(store) == list(range(1, 151))


# ---- how executions stand


def test_an_execution_stands_as_its_last_decision_said(store: Store) -> None:
    began = execution(parent="p", counts={"steps": 1})
    store.append("x", 0, events([1]), began)
    store.commit()
    assert store.execution("x") == began._replace(seq=1)
    ended = began._replace(status="failed", ended=1_700_000_009.5, counts={"steps": 2, "failures": 1})
    store.append("x", 1, events([2, 3]), ended)
    store.commit()
    assert store.execution("x") == ended._replace(seq=3)
    assert store.execution("y") is None


def test_executions_are_listed_latest_first_and_unfinished_ones_earliest_first(store: Store) -> None:
    for name, parent, ended in (("a", "", None), ("b", "a", 5.0), ("c", "a", None), ("d", "", 6.0)):
        store.append(name, 0, events([1]), execution(name, parent=parent, ended=ended))
    store.commit()
    assert [found.execution_id for found in store.executions()] == ["d", "c", "b", "a"]
    assert [found.execution_id for found in store.executions(limit=2)] == ["d", "c"]
    assert [found.execution_id for found in store.executions(parent="a")] == ["c", "b"]
    assert [found.execution_id for found in store.executions(parent="")] == ["d", "a"]
    assert [found.execution_id for found in store.unfinished()] == ["a", "c"]


def test_an_ended_execution_can_still_be_appended_to(store: Store) -> None:
    store.append("x", 0, events([1]), execution(ended=1.0))
    store.commit()
    with pytest.raises(ConflictError):
        store.append("x", 0, events([1]), execution())
    store.append("x", 1, events([2]), execution())
    store.commit()
    assert [found.seq for found in store.unfinished()] == [2]


# ---- bundles and snapshots


def test_a_bundle_stays_as_it_was_put_first(store: Store) -> None:
    store.put_bundle("sha256:b", b"first")
    store.commit()
    store.put_bundle("sha256:b", b"second")
    store.commit()
    assert store.bundle("sha256:b") == b"first"
    assert store.bundle("sha256:c") is None


def test_the_latest_snapshot_of_a_bundle_is_found_also_before_an_event(store: Store) -> None:
    store.append("x", 0, events(range(1, 31)), execution())
    for seq in (10, 30, 20):
        store.put_snapshot("x", Snapshot("sha256:b", seq, {"at": seq, "runs": [[1, 2]]}))
    store.put_snapshot("x", Snapshot("sha256:other", 30, {}))
    store.commit()
    assert store.snapshot("x", "sha256:b") == Snapshot("sha256:b", 30, {"at": 30, "runs": [[1, 2]]})
    assert store.snapshot("x", "sha256:b", until=29) == Snapshot("sha256:b", 20, {"at": 20, "runs": [[1, 2]]})
    assert store.snapshot("x", "sha256:b", until=9) is None
    assert store.snapshot("x", "sha256:none") is None
    assert store.snapshot("y", "sha256:b") is None


def test_a_snapshot_of_events_that_are_not_there_is_refused(store: Store) -> None:
    store.append("x", 0, events([1, 2]), execution())
    store.put_snapshot("x", Snapshot("sha256:b", 2, {}))
    for name, seq in (("x", 3), ("x", 0), ("y", 1)):
        with pytest.raises(ConflictError):
            store.put_snapshot(name, Snapshot("sha256:b", seq, {}))


def test_snapshots_can_be_thrown_away(store: Store) -> None:
    store.append("x", 0, events([1, 2]), execution())
    store.put_snapshot("x", Snapshot("sha256:b", 1, {}))
    store.commit()
    store.put_snapshot("x", Snapshot("sha256:b", 2, {}))
    store.drop_snapshots("x")
    store.drop_snapshots("unknown")
    store.commit()
    assert store.snapshot("x", "sha256:b") is None
    store.drop_snapshots("x")
    store.put_snapshot("x", Snapshot("sha256:b", 2, {"kept": 1}))
    store.commit()
    assert store.snapshot("x", "sha256:b") == Snapshot("sha256:b", 2, {"kept": 1})


# ---- commands and their leases


def give_out(store: Store, *opened: Dispatch, closed: tuple[Dispatch, ...] = ()) -> None:
    known = store.execution("x")
    store.append("x", known.seq if known else 0, [], execution(), opened=opened, closed=closed)
    store.commit()


def test_commands_are_committed_with_their_decision_and_claimed_once_oldest_first(store: Store) -> None:
    first, second, third = (Dispatch("x", run, "", 1) for run in (5, 2, 9))
    store.append("x", 0, events([1]), execution(), opened=[first, second, third])
    assert store.claim("w", until=10.0) == []
    store.commit()
    assert store.claim("w", until=10.0, limit=2) == [first, second]
    assert store.claim("v", until=10.0, limit=2) == [third]
    assert store.claim("v", until=10.0, limit=2) == []


def test_a_closed_command_is_neither_claimed_nor_renewed(store: Store) -> None:
    held, free = Dispatch("x", 1, "", 1), Dispatch("x", 2, "4.1", 1)
    give_out(store, held, free)
    assert store.claim("w", until=10.0) == [held]
    give_out(store, closed=(held, free))
    assert store.claim("w", until=10.0) == []
    assert store.renew("w", [held], until=20.0) == []
    assert store.expired(now=99.0) == []


def test_only_the_holder_renews_and_only_in_time_keeps_a_command_from_expiring(store: Store) -> None:
    command = Dispatch("x", 1, "3", 1)
    give_out(store, command)
    assert store.renew("w", [command], until=20.0) == []
    store.claim("w", until=10.0)
    assert store.expired(now=9.9) == []
    assert store.expired(now=10.0) == [command]
    assert store.renew("v", [command], until=20.0) == []
    assert store.renew("w", [command, Dispatch("y", 1, "", 1)], until=20.0) == [command]
    assert store.expired(now=19.9) == []


def test_a_newer_lease_takes_the_command_from_its_holder(store: Store) -> None:
    old, new = Dispatch("x", 1, "3", 1), Dispatch("x", 1, "3", 2)
    give_out(store, old)
    store.claim("w", until=10.0)
    give_out(store, new)
    assert store.renew("w", [old], until=20.0) == []
    assert store.claim("v", until=20.0) == [new]
    give_out(store, old, closed=(old,))
    assert store.renew("v", [new], until=30.0) == [new]


def test_opening_a_command_again_leaves_it_with_its_holder(store: Store) -> None:
    command = Dispatch("x", 1, "", 1)
    give_out(store, command)
    store.claim("w", until=10.0)
    give_out(store, command)
    assert store.claim("v", until=10.0) == []
    assert store.renew("w", [command], until=20.0) == [command]


# ---- requests


def test_requests_wait_in_their_order_until_a_decision_meets_them(store: Store) -> None:
    store.append("x", 0, events([1]), execution())
    store.commit()
    store.request("x", "pause")
    store.request("x", "cancel")
    pause, cancel = store.requests()
    assert (pause.action, cancel.action) == ("pause", "cancel")
    store.append("x", 1, events([2]), execution(status="paused"), done=[pause])
    assert store.requests() == [pause, cancel]
    store.commit()
    assert store.requests() == [cancel]


def test_a_request_that_was_met_takes_no_later_one_with_it(store: Store) -> None:
    store.append("x", 0, events([1]), execution())
    store.commit()
    store.request("x", "pause")
    (pause,) = store.requests()
    store.append("x", 1, [], execution(), done=[pause])
    store.commit()
    store.request("x", "resume")
    store.append("x", 1, [], execution(), done=[pause])
    store.commit()
    assert [(request.execution_id, request.action) for request in store.requests()] == [("x", "resume")]
    assert isinstance(store.requests()[0], ControlRequest)


def test_a_request_needs_an_execution_that_has_not_ended(store: Store) -> None:
    store.append("x", 0, events([1]), execution(status="failed", ended=2.0))
    store.commit()
    with pytest.raises(StoreError, match="has ended"):
        store.request("x", "cancel")
    with pytest.raises(StoreError, match="there is no execution y"):
        store.request("y", "cancel")


# ---- the end


def test_a_closed_store_takes_nothing_more(store: Store) -> None:
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.append("x", 0, events([1]), execution())
    with pytest.raises(StoreError, match="closed"):
        store.commit()
