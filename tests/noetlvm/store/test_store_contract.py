"""What every store promises; each test runs against each store."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from noetlvm.data.encoding import UnencodableError, encode
from noetlvm.data.event import Event, Recorded
from noetlvm.data.references import Reference
from noetlvm.limits import EVENT_BYTES_MAX
from noetlvm.store.interface import (
    Execution,
    ExecutionRequest,
    QueuedCommand,
    Snapshot,
    Store,
    StoredToken,
    StoreError,
)
from noetlvm.store.memory import MemoryStore
from noetlvm.store.postgres import PostgresStore
from noetlvm.store.sqlite import SqliteStore
from tests.noetlvm.store.records import add, append, event, events, execution

Open = Callable[[Path, pytest.FixtureRequest], Store]
STORES: dict[str, Open] = {
    "memory": lambda folder, _: MemoryStore(),
    "sqlite": lambda folder, _: SqliteStore(folder / "runs.db"),
    "sqlite relaxed": lambda folder, _: SqliteStore(folder / "runs.db", "relaxed"),
    "postgres": lambda _, request: PostgresStore(request.getfixturevalue("postgres"), f"s{next(NUMBERS)}"),
}
NUMBERS = count()


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with closing(STORES[request.param](tmp_path, request)) as opened:
        yield opened


def seqs(store: Store, execution_id: str = "x") -> list[int]:
    return [recorded.seq for recorded in store.events(execution_id)]


def ids(rows: list[Execution]) -> list[str]:
    return [row.execution_id for row in rows]


# ---- log


def test_events_are_read_as_they_were_written(store: Store) -> None:
    written = [
        event(1, outcome={"status": "ok", "result": [1, 2.5, None, True, "ü", 2**70, {"deep": {}}]}),
        Recorded(2, "0190", 2.0, Event("workflow.finished", {})),
    ]
    assert store.write([append(execution(), 0, written)]) == set()
    assert list(store.events("x")) == written


def test_events_of_one_append_are_read_from_any_and_to_any(store: Store) -> None:
    for known, size in ((0, 4), (4, 1), (5, 3)):
        add(store, execution(), known, size)
    for after in range(9):
        for until in (*range(9), None):
            wanted = range(after + 1, (8 if until is None else until) + 1)
            assert [one.seq for one in store.events("x", after, until)] == list(wanted)


def test_a_large_append_is_read_as_it_was_written(store: Store) -> None:
    small = [event(seq) for seq in range(1, 2_502)]
    large = [event(seq, text="a" * 90_000) for seq in range(2_502, 2_512)]
    assert store.write([append(execution(), 0, [*small, *large])]) == set()
    assert add(store, execution(), 2_511) == set()
    assert list(store.events("x"))[:-1] == [*small, *large]
    assert [one.seq for one in store.events("x", 1_200, 1_202)] == [1_201, 1_202]


@pytest.mark.parametrize(
    "ids",
    [
        ["0190a6c0-8f7e-7cc3-98c4-00000000000f", "0190a6c0-8f7e-7cc3-98c4-000000000010"],
        ["0190a6c0-8f7e-7cc3-98c4-00000000000f", "0190a6c0-8f7e-7cc3-98c4-000000000011"],
        ["0190a6c0-8f7e-7cc3-98c4-00000000000F", "0190a6c0-8f7e-7cc3-98c4-000000000010"],
        ["1", "2"],
        ["", "000000000001"],
        ["same", "same"],
    ],
)
def test_an_event_keeps_its_identifier_and_its_time(store: Store, ids: list[str]) -> None:
    for name, later in (("x", 0.0), ("y", 0.5)):
        written = [Recorded(seq, id, 1.5 + seq * later, Event("step.started", {}, 1)) for seq, id in enumerate(ids, 1)]
        store.write([append(execution(name), 0, written)])
        assert list(store.events(name)) == written


def test_references_in_events_are_read_back_and_listed(store: Store) -> None:
    first, second = (Reference("results", digit * 64, 70_000, "list of 9") for digit in "ab")
    store.write([append(execution(), 0, [event(1, result=first), event(2, deep=[{"a": (second,)}])])])
    store.write([append(execution("y"), 0, [event(1, result=first)])])
    recorded = next(store.events("x"))
    assert recorded.event.data["result"].to_data() == first.to_data()
    assert sorted(store.references()) == ["a" * 64, "b" * 64]
    store.delete(["x"])
    assert list(store.references()) == ["a" * 64]


def test_one_write_holds_decisions_of_many_executions(store: Store) -> None:
    for seq in range(5):
        store.write([append(execution(name, counts={"steps": seq}), seq, events([seq + 1])) for name in "abc"])
    assert [seqs(store, name) for name in "abc"] == [[1, 2, 3, 4, 5]] * 3
    assert [(found.seq, found.counts) for found in store.unfinished()] == [(5, {"steps": 4})] * 3


def test_an_empty_write_changes_nothing(store: Store) -> None:
    assert store.write([]) == set()
    assert store.executions() == []


def test_events_can_be_read_in_part(store: Store) -> None:
    add(store, execution(), 0, 2_500)
    assert seqs(store) == list(range(1, 2_501))
    assert [recorded.seq for recorded in store.events("x", after=990, until=2_005)] == list(range(991, 2_006))
    assert list(store.events("x", after=2_500)) == []
    assert list(store.events("unknown")) == []


@pytest.mark.parametrize("known", [0, 1, 3], ids=["new again", "behind", "ahead"])
def test_an_append_that_does_not_know_the_last_event_is_a_conflict_and_writes_nothing(store: Store, known: int) -> None:
    add(store, execution(), 0, 2)
    before = store.execution("x")
    store.write([], {"sha256:b": b"code"})
    more = {
        "opened": [QueuedCommand("x", 1, "", 1)],
        "sent": [ExecutionRequest("y", "start")],
        "snapshot": Snapshot("sha256:b", known + 1, {}),
    }
    assert add(store, execution(status="failed", due=1.0), known, **more) == {"x"}
    assert (seqs(store), store.execution("x")) == ([1, 2], before)
    assert (store.requests(), store.snapshot("x", "sha256:b"), store.due(9.0)) == ([], None, [])
    assert store.claim("w", ["default"], 10.0, 1, 0.0) == []
    assert add(store, execution(), 2) == set()


def test_an_unknown_execution_cannot_be_continued(store: Store) -> None:
    assert add(store, execution(), 4) == {"x"}
    assert store.execution("x") is None


def test_a_conflict_concerns_one_execution_and_neither_its_neighbours_nor_later_writes(store: Store) -> None:
    for name in ("a", "b", "c"):
        add(store, execution(name), 0)
    add(store, execution("b"), 1)
    batch = [append(execution(name), 1, events([2, 3])) for name in ("a", "b", "c", "d")]
    assert store.write(batch) == {"b", "d"}
    assert [seqs(store, name) for name in "abcd"] == [[1, 2, 3], [1, 2], [1, 2, 3], []]
    assert add(store, execution("b"), 2) == set()
    assert add(store, execution("d"), 0) == set()


@pytest.mark.parametrize("numbers", [[4], [3, 5], [3, 3], [2]], ids=["gap", "gap inside", "twice", "again"])
def test_events_that_do_not_continue_from_the_known_one_are_refused_with_the_whole_batch(
    store: Store, numbers: list[int]
) -> None:
    add(store, execution(), 0, 2)
    with pytest.raises(ValueError, match="must come next"):
        store.write([append(execution("y"), 0, events([1])), append(execution(), 2, events(numbers))])
    assert (seqs(store), store.execution("y")) == ([1, 2], None)


def test_a_row_must_stand_where_its_events_end(store: Store) -> None:
    with pytest.raises(ValueError, match="has event 7"):
        store.write([append(execution(), 0, events([1]))._replace(execution=execution(seq=7))])


def test_an_execution_begins_with_an_event(store: Store) -> None:
    with pytest.raises(ValueError, match="begins with an event"):
        store.write([append(execution(), 0)])


def test_a_batch_holds_one_append_per_execution(store: Store) -> None:
    with pytest.raises(ValueError, match="at most one append"):
        store.write([append(execution(), 0, events([1])), append(execution(), 1, events([2]))])


def test_what_is_no_data_is_refused_and_nothing_of_its_batch_is_written(store: Store) -> None:
    with pytest.raises(UnencodableError):
        store.write([append(execution("y"), 0, events([1])), append(execution(), 0, [event(1, what=object())])])
    assert store.executions() == []
    assert add(store, execution(), 0) == set()


def test_an_event_may_be_as_large_as_its_limit_and_no_larger(store: Store) -> None:
    around = len(encode({"text": "a" * 100_000})) - 100_000
    store.write([append(execution(), 0, [event(1, text="a" * (EVENT_BYTES_MAX - around))])])
    with pytest.raises(StoreError, match="store it as a result"):
        store.write([append(execution(), 1, [event(2, text="a" * (EVENT_BYTES_MAX - around + 1))])])
    assert seqs(store) == [1]


def test_writers_in_several_threads_take_turns_and_lose_nothing(store: Store) -> None:
    add(store, execution(), 0)
    lost: list[int] = []

    def write(writer: int) -> None:
        done = 0
        while done < 25:
            row = store.execution("x")
            assert row is not None
            if add(store, row, row.seq):
                lost.append(writer)
            else:
                done += 1

    writers = [threading.Thread(target=write, args=(number,), daemon=True) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
        assert not writer.is_alive()
    assert seqs(store) == list(range(1, 102))


def test_a_snapshot_replaces_the_one_before(store: Store) -> None:
    add(store, execution(), 0, 20, snapshot=Snapshot("sha256:b", 20, {"at": 20, "runs": [[1, 2]]}))
    assert store.snapshot("x", "sha256:b") == Snapshot("sha256:b", 20, {"at": 20, "runs": [[1, 2]]})
    assert store.snapshot("x", "sha256:b", until=19) is None
    assert store.snapshot("x", "sha256:other") is None
    assert store.snapshot("y", "sha256:b") is None
    add(store, execution(), 20, 10, snapshot=Snapshot("sha256:c", 25, {}))
    assert store.snapshot("x", "sha256:c") == Snapshot("sha256:c", 25, {})
    assert store.snapshot("x", "sha256:b") is None


def test_a_snapshot_of_events_that_do_not_exist_is_refused(store: Store) -> None:
    for seq in (0, 3):
        with pytest.raises(ValueError, match=f"no event {seq}"):
            add(store, execution(), 0, 2, snapshot=Snapshot("sha256:b", seq, {}))


# ---- dispatch


def open_commands(store: Store, *opened: QueuedCommand, closed: tuple[QueuedCommand, ...] = ()) -> None:
    known = store.execution("x")
    assert add(store, execution(), known.seq if known else 0, opened=opened, closed=closed) == set()


def claim(store: Store, worker: str = "w", limit: int = 1, until: float = 10.0) -> list[tuple[int, str, int]]:
    """Claim commands of the default pool, and return their runs, units and leases."""
    return [row[1:4] for row in store.claim(worker, ["default"], until, limit, now=1.0)]


def test_commands_are_claimed_once_the_oldest_first(store: Store) -> None:
    open_commands(store, *(QueuedCommand("x", run, "", 1) for run in (5, 2, 9)))
    assert claim(store, limit=2) == [(5, "", 1), (2, "", 1)]
    assert claim(store, "v", limit=2) == [(9, "", 1)]
    assert claim(store, "v", limit=2) == []


def test_a_claimed_command_says_everything_about_itself(store: Store) -> None:
    command = QueuedCommand("x", 4, "2.1", 3, "fetch", "gpu", 5.0)
    open_commands(store, command)
    (claimed,) = store.claim("w", ["cpu", "gpu"], 20.0, 9, now=5.0)
    held = {"worker": "w", "until": 20.0, "attempts": 1, "bundle": "sha256:b", "path": "examples/hello"}
    assert claimed == command._replace(**held)
    assert store.expired(20.0) == [claimed]


def test_a_command_is_claimed_only_from_its_pool_and_not_before_its_time(store: Store) -> None:
    open_commands(store, QueuedCommand("x", 1, "", 1, pool="gpu"), QueuedCommand("x", 2, "", 1, not_before=50.0))
    assert store.claim("w", ["default", "cpu"], 99.0, 9, now=49.9) == []
    assert store.claim("w", [], 99.0, 9, now=99.0) == []
    assert [row.run for row in store.claim("w", ["default"], 99.0, 9, now=50.0)] == [2]
    assert [row.run for row in store.claim("w", ["gpu"], 99.0, 9, now=0.0)] == [1]


def test_a_command_can_be_opened_already_claimed(store: Store) -> None:
    command = QueuedCommand("x", 1, "", 1, worker="w", until=10.0)
    open_commands(store, command)
    assert claim(store, "v") == []
    assert [row.part for row in store.renew("w", [command], until=20.0)] == [command.part]
    assert [(row.worker, row.attempts) for row in store.expired(20.0)] == [("w", 1)]


def test_a_closed_command_is_neither_claimed_nor_renewed(store: Store) -> None:
    held, free = QueuedCommand("x", 1, "", 1), QueuedCommand("x", 2, "4.1", 1)
    open_commands(store, held, free)
    claim(store)
    open_commands(store, closed=(held, free))
    assert claim(store) == []
    assert store.renew("w", [held], until=20.0) == []
    assert store.expired(now=99.0) == []


def test_a_command_that_its_own_append_closes_is_never_seen(store: Store) -> None:
    first, second = QueuedCommand("x", 1, "", 1), QueuedCommand("x", 1, "", 2)
    open_commands(store, first, closed=(first,))
    assert claim(store) == []
    open_commands(store, second, closed=(first,))
    assert claim(store) == [(1, "", 2)]


def test_a_claim_lasts_until_its_time_and_only_its_holder_renews_it(store: Store) -> None:
    command = QueuedCommand("x", 1, "3", 1)
    open_commands(store, command)
    assert store.renew("w", [command], until=20.0) == []
    claim(store)
    assert store.expired(now=9.9) == []
    assert [row.part for row in store.expired(now=10.0)] == [command.part]
    assert store.renew("v", [command], until=20.0) == []
    assert [row.part for row in store.renew("w", [command, QueuedCommand("y", 1, "", 1)], until=20.0)] == [command.part]
    assert store.expired(now=19.9) == []


def test_a_released_command_has_expired_and_cannot_be_renewed_or_claimed_under_its_lease(store: Store) -> None:
    command = QueuedCommand("x", 1, "", 1)
    open_commands(store, command)
    claim(store)
    assert store.release("v", [command]) == []
    assert [row.part for row in store.release("w", [command])] == [command.part]
    assert [(row.worker, row.until) for row in store.expired(now=0.5)] == [("w", 0.0)]
    assert store.renew("w", [command], until=20.0) == store.release("w", [command]) == claim(store) == []
    open_commands(store, command._replace(lease=2))
    assert claim(store, "v") == [(1, "", 2)]


def test_a_newer_lease_takes_the_command_from_its_holder_and_queues_at_the_end(store: Store) -> None:
    old, new, other = QueuedCommand("x", 1, "3", 1), QueuedCommand("x", 1, "3", 2), QueuedCommand("x", 2, "", 1)
    open_commands(store, old, other)
    claim(store)
    open_commands(store, new)
    assert store.renew("w", [old], until=20.0) == []
    assert claim(store, "v") == [(2, "", 1)]
    (claimed,) = store.claim("v", ["default"], 20.0, 1, now=1.0)
    assert (claimed[1:4], claimed.attempts) == ((1, "3", 2), 2)
    open_commands(store, old, closed=(old,))
    assert [row.lease for row in store.renew("v", [new], until=30.0)] == [2]


def test_opening_a_command_again_leaves_it_with_its_holder(store: Store) -> None:
    command = QueuedCommand("x", 1, "", 1)
    open_commands(store, command)
    claim(store)
    open_commands(store, command)
    assert claim(store, "v") == []
    assert [row.part for row in store.renew("w", [command], until=20.0)] == [command.part]


def test_none_of_many_stale_renewals_and_releases_is_accepted(store: Store) -> None:
    open_commands(store, QueuedCommand("x", 1, "", 7))
    claim(store, "holder", until=50.0)
    chance = random.Random(7)
    stale = [QueuedCommand("x", 1, "", chance.choice([1, 2, 3, 4, 5, 6, 8])) for _ in range(2_000)]
    assert store.renew("holder", stale, 99.0) == store.release("holder", stale) == []
    current = [QueuedCommand("x", 1, "", 7)] * 500
    assert store.renew("other", current, 99.0) == store.release("other", current) == []
    assert [row.until for row in store.expired(50.0)] == [50.0]


# ---- catalogue


def test_a_bundle_stays_as_it_was_first_stored(store: Store) -> None:
    store.write([append(execution(), 0, events([1]))], {"sha256:b": b"first"})
    store.put_bundle("sha256:b", b"second")
    store.put_bundle("sha256:c", b"third")
    assert [store.bundle(f"sha256:{name}") for name in "bcd"] == [b"first", b"third", None]


def test_registered_playbooks_are_resolved_by_path_and_version(store: Store) -> None:
    first = store.register("a/b", "sha256:1", b"one", now=5.0)
    second = store.register("a/b", "sha256:2", b"two", now=6.0)
    assert (first[:3], first.registered) == (("a/b", 1, "sha256:1"), 5.0)
    assert second.version == 2
    assert (store.resolve("a/b"), store.resolve("a/b", 1), store.resolve("a/b", 3)) == (second, first, None)
    assert store.resolve("a") is None
    assert store.bundle("sha256:2") == b"two"


def test_registering_the_latest_bundle_again_makes_no_version_and_an_older_one_does(store: Store) -> None:
    store.register("p", "sha256:1", b"one", now=5.0)
    second = store.register("p", "sha256:2", b"two", now=6.0)
    assert store.register("p", "sha256:2", b"two", now=7.0) == second
    assert store.register("p", "sha256:1", b"one", now=8.0)[:3] == ("p", 3, "sha256:1")


def test_playbooks_and_versions_are_listed_in_pages(store: Store) -> None:
    for number in range(1, 4):
        for path in ("c", "a", "b"):
            store.register(path, f"sha256:{path}{number}", b"", now=float(number))
    assert [entry[:2] for entry in store.playbooks(limit=2)] == [("a", 3), ("b", 3)]
    assert [entry.bundle for entry in store.playbooks(after="b", limit=2)] == ["sha256:c3"]
    assert [entry.version for entry in store.versions("a", limit=2)] == [3, 2]
    assert [entry.version for entry in store.versions("a", before=2)] == [1]
    assert store.versions("unknown") == []


# ---- executions


def test_a_row_says_what_the_last_decision_said(store: Store) -> None:
    began = execution(parent="p", counts={"steps": 1}, due=7.5)
    add(store, began, 0)
    assert store.execution("x") == began._replace(seq=1)
    ended = began._replace(status="failed", ended=1_700_000_009.5, counts={"steps": 2, "failures": 1}, due=None)
    add(store, ended, 1, 2)
    assert store.execution("x") == ended._replace(seq=3)
    assert store.execution("y") is None


def test_executions_of_one_request_are_counted_at_any_depth(store: Store) -> None:
    for name, parent, trace in (("a", "", ""), ("b", "a", "a"), ("c", "b", "a"), ("d", "", "")):
        add(store, execution(name, parent=parent, trace=trace), 0)
    assert [store.descendants(name) for name in ("a", "b", "d", "")] == [2, 0, 0, 0]
    assert store.execution("c") == execution("c", parent="b", trace="a", seq=1)
    assert [row.trace_id for row in store.executions()] == ["d", "a", "a", "a"]


def test_executions_are_listed_latest_first_by_filters_and_in_pages(store: Store) -> None:
    rows = (("a", "", None, "p"), ("b", "a", 5.0, "p"), ("c", "a", None, "q"), ("d", "", 6.0, "q"))
    for name, parent, ended, path in rows:
        status = "running" if ended is None else "success"
        add(store, execution(name, parent=parent, ended=ended, path=path, status=status), 0)
    assert ids(store.executions()) == ["d", "c", "b", "a"]
    assert ids(store.executions(limit=2)) == ["d", "c"]
    assert ids(store.executions(limit=2, before="c")) == ["b", "a"]
    assert ids(store.executions(before="a")) == []
    assert ids(store.executions(parent="a")) == ["c", "b"]
    assert ids(store.executions(parent="")) == ["d", "a"]
    assert ids(store.executions(status="running")) == ["c", "a"]
    assert ids(store.executions(path="q", status="success", parent="", before="d")) == []
    assert ids(store.executions(path="p", before="d")) == ["b", "a"]
    assert ids(store.unfinished()) == ["a", "c"]
    assert ids(store.unfinished(limit=1)) == ["a"]
    store.delete(["c"])
    with pytest.raises(StoreError, match="c, which ended the page before, was deleted"):
        store.executions(before="c")


def test_executions_are_found_by_the_beginning_or_end_of_their_identifier(store: Store) -> None:
    for name in ("ab", "abc", "xabc%", "x_c"):
        add(store, execution(name), 0)
    assert ids(store.find("ab", 9)) == ["ab"]
    assert ids(store.find("a", 9)) == ["abc", "ab"]
    assert ids(store.find("a", 1)) == ["abc"]
    assert ids(store.find("c", 9)) == ["x_c", "abc"]
    assert ids(store.find("%", 9)) == ["xabc%"]
    assert ids(store.find("x_", 9)) == ["x_c"]
    assert store.find("nothing", 9) == []


def test_an_ended_execution_can_be_continued(store: Store) -> None:
    add(store, execution(ended=1.0), 0)
    assert add(store, execution(), 1) == set()
    assert [found.seq for found in store.unfinished()] == [2]


def test_executions_are_due_when_their_timer_has_come(store: Store) -> None:
    for name, due in (("a", 30.0), ("b", None), ("c", 10.0), ("d", 20.0)):
        add(store, execution(name, due=due), 0)
    assert ids(store.due(9.9)) == []
    assert ids(store.due(20.0)) == ["c", "d"]
    assert ids(store.due(99.0, limit=2)) == ["c", "d"]
    add(store, execution("c", due=None), 1)
    assert ids(store.due(99.0)) == ["d", "a"]


def test_one_start_key_starts_one_execution(store: Store) -> None:
    assert add(store, execution("a"), 0, start_key="k") == set()
    assert add(store, execution("b"), 0, start_key="k") == {"b"}
    assert add(store, execution("c"), 0, start_key="other") == set()
    assert [store.started(key) for key in ("k", "other", "none")] == ["a", "c", None]
    assert store.execution("b") is None
    assert add(store, execution("b"), 0) == set()
    store.delete(["a"])
    assert store.started("k") is None


def test_of_a_hundred_equal_starts_at_once_one_wins(store: Store) -> None:
    batch = [append(execution(f"e{number}"), 0, events([1]), start_key="k") for number in range(50)]
    lost = store.write(batch)
    threads = [
        threading.Thread(
            target=lambda number=number: add(store, execution(f"t{number}"), 0, start_key="k"), daemon=True
        )
        for number in range(50)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    (row,) = store.executions()
    assert (len(lost), store.started("k")) == (49, row.execution_id)


def test_a_deleted_execution_leaves_nothing(store: Store) -> None:
    for name in ("x", "y"):
        more = {"opened": [QueuedCommand(name, 1, "", 1)], "snapshot": Snapshot("sha256:b", 1, {}), "start_key": name}
        add(store, execution(name, due=1.0), 0, **more)
        store.request(name, "pause")
    assert store.delete(["x", "x", "unknown"]) == 1
    assert (store.execution("x"), seqs(store, "x"), store.snapshot("x", "sha256:b")) == (None, [], None)
    assert ids(store.due(9.0)) == ["y"]
    assert [request.execution_id for request in store.requests()] == ["y"]
    assert [row.execution_id for row in store.claim("w", ["default"], 9.0, 9, 1.0)] == ["y"]
    assert add(store, execution("x"), 0) == set()
    assert seqs(store, "x") == [1]


# ---- requests


def test_requests_wait_in_order_until_a_decision_acknowledges_them(store: Store) -> None:
    add(store, execution(), 0)
    store.request("x", "pause")
    store.request("x", "cancel")
    pause, cancel = store.requests()
    assert (pause.action, cancel.action) == ("pause", "cancel")
    assert store.requests(after=pause.number) == [cancel]
    assert store.requests(limit=1) == [pause]
    assert add(store, execution(), 0, acknowledged=[pause.number]) == {"x"}
    assert store.requests() == [pause, cancel]
    add(store, execution(status="paused"), 1, acknowledged=[pause.number])
    assert store.requests() == [cancel]


def test_executions_send_requests_to_each_other_in_the_write_of_their_decision(store: Store) -> None:
    start = ExecutionRequest("child", "start", {"payload": {"n": [1, 2**70]}})
    add(store, execution("parent"), 0, sent=[start])
    (request,) = store.requests("child")
    assert request[:3] == start[:3]
    assert store.requests("parent") == []
    ended = ExecutionRequest("parent", "child.finished", {"status": "success"})
    add(store, execution("child"), 0, acknowledged=[request.number], sent=[ended])
    assert [(one.execution_id, one.data) for one in store.requests()] == [("parent", {"status": "success"})]


def test_the_number_of_an_acknowledged_request_is_not_used_again(store: Store) -> None:
    add(store, execution(), 0)
    store.request("x", "pause")
    (pause,) = store.requests()
    add(store, execution(), 1, acknowledged=[pause.number])
    store.request("x", "resume")
    add(store, execution(), 2, acknowledged=[pause.number])
    assert [(request.execution_id, request.action) for request in store.requests()] == [("x", "resume")]


def test_a_request_needs_an_execution_that_has_not_ended(store: Store) -> None:
    add(store, execution(status="failed", ended=2.0), 0)
    with pytest.raises(StoreError, match="has ended"):
        store.request("x", "cancel")
    with pytest.raises(StoreError, match="there is no execution y"):
        store.request("y", "cancel")


# ---- the end


def test_a_closed_store_accepts_nothing_more(store: Store) -> None:
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        add(store, execution(), 0)


# ---- tokens


def test_a_token_is_found_by_its_id_until_and_after_it_is_revoked(store: Store) -> None:
    first, second = (StoredToken(name, "d" * 64, ("read", "run"), at) for name, at in (("a", 1.0), ("b", 2.0)))
    store.put_token(first)
    store.put_token(second)
    assert store.token("a") == first
    assert store.token("none") is None
    assert store.tokens() == [first, second]
    assert store.revoke_token("a", 5.0)
    assert store.revoke_token("a", 9.0)
    assert store.token("a") == first._replace(revoked=5.0)
    assert not store.revoke_token("none", 5.0)
