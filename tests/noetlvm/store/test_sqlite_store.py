"""What only the SQLite store has: a file, a lock, readers beside the writer, a schema that grows, crashes."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from noetlvm.data.encoding import encode
from noetlvm.data.event import Event, Recorded
from noetlvm.data.references import Reference
from noetlvm.store import sqlite as sqlite_module
from noetlvm.store.interface import DamagedError, LockedError, QueuedCommand, Snapshot, StoreError
from noetlvm.store.migrations import MIGRATIONS, migrate, schema_version
from noetlvm.store.sqlite import SqliteGuest, SqliteReader, SqliteStore
from tests.noetlvm.store.crashing_writer import EVENTS_OF_A_DECISION
from tests.noetlvm.store.records import add, append, event, events, execution

ROOT = Path(__file__).resolve().parents[3]
FIRST_SCHEMA = Path(__file__).with_name("schema_1.sql")
FOURTH_SCHEMA = Path(__file__).with_name("schema_4.sql")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder of its own" / "runs?#.db"


def write(path: Path, *numbers: int) -> None:
    """Write events, each by an append of its own."""
    with closing(SqliteStore(path)) as store:
        for number in numbers:
            store.write([append(execution(), number - 1, events([number]))])


def read(path: Path) -> list[int]:
    with closing(SqliteReader(path)) as reader:
        return [recorded.seq for recorded in reader.events("x")]


# ---- one writer, many readers


def test_what_is_committed_is_there_when_the_file_is_opened_again(path: Path) -> None:
    write(path, 1, 2, 3)
    with closing(SqliteStore(path)) as store:
        add(store, execution(), 3)
    assert read(path) == [1, 2, 3, 4]


def test_a_wall_clock_that_is_set_back_does_not_set_back_the_time_of_the_store(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither while it is open, nor before it is opened again: timers and leases would wait until it has caught up."""
    recorded = event(1).timestamp
    with closing(SqliteStore(path)) as store:
        add(store, execution(), 0)
        before = store.now()
        monkeypatch.setattr(time, "time", lambda: recorded - 86_400)
        assert before <= store.now() < before + 3_600
    with closing(SqliteStore(path)) as store:
        assert recorded <= store.now() < recorded + 3_600


def test_the_refusal_of_a_second_writer_names_the_first(path: Path) -> None:
    with closing(SqliteStore(path)), pytest.raises(LockedError, match=r"in use by process \d+; wait for it"):
        SqliteStore(path)
    SqliteStore(path).close()


def test_a_second_process_is_refused_too(path: Path) -> None:
    opening = "import sys, pathlib, noetlvm.store.sqlite as s; s.SqliteStore(pathlib.Path(sys.argv[1]))"
    command = [sys.executable, "-c", opening, str(path)]
    with closing(SqliteStore(path)):
        refused = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "LockedError" in refused.stderr
    assert subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 0


def test_a_lock_that_outlives_its_holder_in_a_forked_child_is_waited_for(path: Path) -> None:
    dying = """
import os, pathlib, sys, time
from noetlvm.store.sqlite import SqliteStore
store = SqliteStore(pathlib.Path(sys.argv[1]))
if os.fork() == 0:
    time.sleep(0.3)  # it has the lock when the next process wants it, or has not any more: both get it
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", dying, str(path)], cwd=ROOT, check=True)
    SqliteStore(path).close()


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_a_second_writer_is_refused_whatever_path_leads_to_the_file(path: Path, link: Callable[..., None]) -> None:
    other = path.with_name("other.db")
    with closing(SqliteStore(path)) as store:
        link(other, path)
        with pytest.raises(StoreError, match="in use by process"):
            SqliteStore(other)
        Path(f"{path}.lock").unlink()
        for name in (path, other):
            with pytest.raises(LockedError):
                SqliteStore(name)
        other.unlink()
        assert add(store, execution(), 0) == set()


def test_a_second_process_is_refused_by_a_symbolic_link_and_without_the_lock_file(path: Path) -> None:
    opening = "import sys, pathlib, noetlvm.store.sqlite as s; s.SqliteStore(pathlib.Path(sys.argv[1]))"
    other = path.parent.with_name("link.db")
    with closing(SqliteStore(path)):
        other.symlink_to(path)
        Path(f"{path}.lock").unlink()
        command = [sys.executable, "-c", opening, str(other)]
        refused = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "LockedError" in refused.stderr


def test_a_database_with_two_hard_links_is_not_written_to(path: Path) -> None:
    write(path, 1)
    path.with_name("other.db").hardlink_to(path)
    with pytest.raises(StoreError, match="2 hard links"):
        SqliteStore(path)


def test_a_reader_by_a_hard_link_is_sent_to_the_name_that_is_written_to(path: Path) -> None:
    with closing(SqliteStore(path)) as store:
        add(store, execution(), 0)
        path.with_name("other.db").hardlink_to(path)
        with pytest.raises(StoreError, match="one of 2 hard links"):
            SqliteReader(path.with_name("other.db"))


@pytest.mark.parametrize("is_replaced", [True, False])
def test_nothing_is_written_once_the_file_was_removed_or_replaced(path: Path, is_replaced: bool) -> None:
    with closing(SqliteStore(path)) as store:
        add(store, execution(), 0)
        path.rename(path.with_name("moved.db"))
        if is_replaced:
            path.touch()
        with pytest.raises(StoreError, match="was replaced" if is_replaced else "was removed"):
            add(store, execution(), 1)


def test_a_refused_second_writer_does_not_cost_the_first_one_the_locks_of_sqlite(path: Path) -> None:
    closing_last = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT * FROM chunks'); c.close()"
    with closing(SqliteStore(path)) as store:
        add(store, execution(), 0)
        with pytest.raises(LockedError):
            SqliteStore(path)
        # Whoever closes a database last removes its log; this process still has it open.
        subprocess.run([sys.executable, "-c", closing_last, str(path)], check=True)
        assert path.with_name(f"{path.name}-wal").exists()
        add(store, execution(), 1)
    assert read(path) == [1, 2]


def test_only_the_owner_can_read_a_database(path: Path) -> None:
    before = os.umask(0)
    try:
        with closing(SqliteStore(path)) as store:
            add(store, execution(), 0)
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert set(modes.values()) == {0o600}
    assert len(modes) == 4
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def unwritable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let SQLite find what it finds in a file system that is mounted read-only."""
    connect = sqlite_module._connect

    def failing(path: Path, mode: str) -> sqlite3.Connection:
        if mode == "ro" and "noetlvm-" not in str(path):
            return connect(path / "missing", mode)
        return connect(path, mode)

    monkeypatch.setattr(sqlite_module, "_connect", failing)


def test_a_read_only_file_system_can_be_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(path, 1, 2, 3)
    unwritable(monkeypatch)
    before = sorted(path.parent.iterdir())
    assert read(path) == [1, 2, 3]
    assert sorted(path.parent.iterdir()) == before


def test_what_only_the_log_holds_is_read_in_a_read_only_file_system_too(
    tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen = tmp_path / "frozen.db"
    with closing(SqliteStore(path)) as store:
        add(store, execution(), 0)
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", f"{frozen}{suffix}")
    unwritable(monkeypatch)
    assert read(frozen) == [1]
    assert sorted(file.name for file in tmp_path.iterdir() if file.is_file()) == ["frozen.db", "frozen.db-wal"]


# ---- damage


def damaged(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        assert connection.execute(statement, values).rowcount


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("UPDATE chunks SET data = x'81a1' WHERE place & 7 = 2", "event 2 of x is damaged: its checksum differs"),
        ("UPDATE chunks SET data = x'81a1', sum = NULL WHERE place & 7 = 2", "event 2 of x is damaged: .*decoded"),
        ("UPDATE chunks SET data = x'90', sum = NULL WHERE place & 7 = 2", "event 2 of x is damaged: .*decoded"),
        ("UPDATE chunks SET last = 3 WHERE place & 7 = 2", "events 2 to 3 of x is damaged: .*not those events"),
        ("UPDATE chunks SET last = 'soon' WHERE place & 7 = 2", "event 2 of x is damaged: .*another type"),
        ("UPDATE chunks SET sum = sum + 1 WHERE place & 7 = 2", "event 2 of x is damaged: its checksum differs"),
        ("DELETE FROM chunks WHERE place & 7 = 2", "event 2 of 3 of x is missing"),
        ("DELETE FROM chunks WHERE place & 7 = 3", "event 3 of 3 of x is missing"),
        ("UPDATE executions SET counts = '{'", "the row of execution 'x' is damaged: its counts"),
        ("UPDATE executions SET counts = '[]'", "the row of execution 'x' is damaged"),
        ("UPDATE executions SET started = 'soon'", "the row of execution 'x' is damaged"),
        ("UPDATE executions SET path = x'00'", "the row of execution 'x' is damaged"),
        ("UPDATE executions SET seq = 'many'", "the row of execution 'x' is damaged"),
        ("UPDATE executions SET key = 1 << 62", "a row has a number out of range"),
    ],
)
def test_a_damaged_row_is_reported_with_its_place(path: Path, change: str, message: str) -> None:
    write(path, 1, 2, 3)
    damaged(path, change)
    with pytest.raises(DamagedError, match=rf"runs.*{message}.*`noetlvm fsck`"):
        read(path)


def test_any_flipped_bit_of_an_event_is_noticed(path: Path) -> None:
    write(path, 1, 2, 3)
    with closing(sqlite3.connect(path)) as connection:
        (data,) = connection.execute("SELECT data FROM chunks WHERE place & 7 = 2").fetchone()
    for bit in range(len(data) * 8):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        damaged(path, "UPDATE chunks SET data = ? WHERE place & 7 = 2", bytes(flipped))
        with pytest.raises(DamagedError, match="event 2"):
            read(path)


def test_damage_is_noticed_when_only_later_events_are_read(path: Path) -> None:
    write(path, *range(1, 7))
    damaged(path, "DELETE FROM chunks WHERE place & 7 = 3")
    with closing(SqliteReader(path)) as reader:
        assert [one.seq for one in reader.events("x", until=2)] == [1, 2]
        assert [one.seq for one in reader.events("x", after=4)] == [5, 6]
        with pytest.raises(DamagedError, match="event 3 of 6"):
            list(reader.events("x", after=3))


def test_a_snapshot_does_not_hide_a_gap_before_it(path: Path) -> None:
    with closing(SqliteStore(path)) as store:
        for seq in range(6):
            add(store, execution(), seq, snapshot=Snapshot("sha256:b", seq, {}) if seq else None)
        assert store.snapshot("x", "sha256:b") is not None
    damaged(path, "DELETE FROM chunks WHERE place & 7 = 3")
    with closing(SqliteReader(path)) as reader, pytest.raises(DamagedError, match="event 3 of 5 of x is missing"):
        reader.snapshot("x", "sha256:b")


def test_a_damaged_snapshot_or_request_is_reported(path: Path) -> None:
    with closing(SqliteStore(path)) as store:
        add(store, execution(), 0, snapshot=Snapshot("sha256:b", 1, {"a": "b"}))
        store.request("x", "pause")
    damaged(path, "UPDATE snapshots SET data = x'81'")
    damaged(path, "UPDATE requests SET data = x'81'")
    with closing(SqliteReader(path)) as reader:
        with pytest.raises(DamagedError, match="the snapshot of x"):
            reader.snapshot("x", "sha256:b")
        with pytest.raises(DamagedError, match="request 1"):
            reader.requests()


def test_readers_follow_a_writer_and_cannot_write(path: Path) -> None:
    with closing(SqliteStore(path)) as store:
        add(store, execution(), 0)
        with closing(SqliteReader(path)) as reader:
            assert [recorded.seq for recorded in reader.events("x")] == [1]
            add(store, execution(), 1)
            assert [recorded.seq for recorded in reader.events("x", after=1)] == [2]
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                reader._reading.execute("DELETE FROM chunks")


def test_a_request_from_another_process_reaches_the_writer(path: Path) -> None:
    with closing(SqliteStore(path)) as store:
        add(store, execution(), 0)
        guest = SqliteGuest(path)
        guest.request("x", "pause")
        assert [(request.execution_id, request.action) for request in store.requests()] == [("x", "pause")]
        with pytest.raises(StoreError, match="there is no execution y"):
            guest.request("y", "pause")
        guest.close()


@pytest.mark.parametrize(("durability", "synchronous"), [("full", 2), ("relaxed", 1)])
def test_full_durability_syncs_every_commit_and_relaxed_does_not(path: Path, durability: str, synchronous: int) -> None:
    with closing(SqliteStore(path, durability)) as store:  # type: ignore[arg-type]
        assert store._connection.execute("PRAGMA synchronous").fetchone() == (synchronous,)
        assert store._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_where_every_commit_is_synced_the_write_ahead_log_is_written_over_instead_of_growing(path: Path) -> None:
    sizes = []
    with closing(SqliteStore(path)) as store:
        for seq in range(300):
            add(store, execution(), seq)
            sizes.append(path.with_name(f"{path.name}-wal").stat().st_size)
    assert sizes[0] < sizes[99] <= sizes[299] < 1.1 * sizes[99]


@pytest.mark.parametrize("has_commands", [False, True])
def test_a_step_writes_a_page_each_for_its_events_its_row_and_its_commands(path: Path, has_commands: bool) -> None:
    pages = []
    with closing(SqliteStore(path)) as store:
        store._connection.execute("PRAGMA wal_autocheckpoint = 0")
        (page,) = store._connection.execute("PRAGMA page_size").fetchone()
        log = path.with_name(f"{path.name}-wal")
        for seq in range(12):
            before = log.stat().st_size
            commands = [QueuedCommand("x", seq + more, "", 1, worker="w", until=1.0) for more in (0, 1)]
            changed = {"closed": commands[:1], "opened": commands[1:]} if has_commands else {}
            add(store, execution(counts={"steps": seq}), seq, **changed)
            pages.append((log.stat().st_size - before) // page)
    assert Counter(pages[1:]).most_common(1)[0][0] == (3 if has_commands else 2)


def test_the_events_of_a_step_take_little_of_the_file(tmp_path: Path) -> None:
    names = ("step.scheduled", "step.started", "task.done", "step.done", "next.evaluated")
    outcome = {"status": "ok", "result": None, "meta": {"attempt": 1, "duration_ms": 0.02, "ts": 1_700_000_000.0}}
    data = {"outcome": outcome, "do": "continue", "pc": 4}
    identifier = "0190a6c0-8f7e-7cc3-98c4-dc0c0c07398f"
    sizes = {}
    for steps in (1, 1_001):
        reported = [Event(name, data if name == "task.done" else {}, run) for run in range(steps) for name in names]
        path = tmp_path / f"{steps}.db"
        with closing(SqliteStore(path, "relaxed")) as store:
            recorded = [Recorded(seq, identifier, 1_700_000_000.5, event) for seq, event in enumerate(reported, 1)]
            store.write([append(execution(), 0, recorded)])
        sizes[steps] = path.stat().st_size
    assert (sizes[1_001] - sizes[1]) / 1_000 < 1_500


# ---- what goes wrong


def test_a_missing_file_and_an_empty_one_are_explained_to_a_reader(path: Path) -> None:
    with pytest.raises(StoreError, match="there is no database"):
        SqliteReader(path)
    path.parent.mkdir()
    path.touch()
    with pytest.raises(StoreError, match="is empty"):
        SqliteReader(path)


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("not a database " * 100)
    for opening in (SqliteStore, SqliteReader):
        with pytest.raises(StoreError, match="not a database"):
            opening(text)
    assert text.read_text() == "not a database " * 100


def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    before = other.read_bytes()
    for opening in (SqliteStore, SqliteReader):
        with pytest.raises(StoreError, match="of another program"):
            opening(other)
    assert other.read_bytes() == before


def test_a_place_where_nothing_can_be_made_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="file"):
        SqliteStore(tmp_path / "file" / "runs.db")


def test_an_event_that_another_program_wrote_is_reported_and_the_store_stays_usable(path: Path) -> None:
    with closing(SqliteStore(path)) as store:
        add(store, execution(), 0)
        with closing(sqlite3.connect(path, isolation_level=None)) as intruder:
            intruder.execute("INSERT INTO chunks SELECT place + 1, last + 1, data, sum FROM chunks")
        with pytest.raises(DamagedError, match=r"another program.*noetlvm fsck"):
            add(store, execution(status="failed"), 1, 2)
        assert add(store, execution("y"), 0) == set()
        found = store.execution("x")
    assert found is not None
    assert (found.status, read(path)) == ("running", [1])


def test_a_full_disk_loses_nothing_that_was_written_and_a_retry_succeeds_once_there_is_room(path: Path) -> None:
    large = [event(2, text="a" * 100_000)]
    with closing(SqliteStore(path)) as store:
        add(store, execution(), 0)
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        batch = [append(execution("y"), 0, events([1])), append(execution(), 1, large)]
        with pytest.raises(StoreError, match="full"):
            store.write(batch)
        assert (store.execution("y"), [one.seq for one in store.events("x")]) == (None, [1])
        store._connection.execute("PRAGMA max_page_count = 100000")
        assert store.write(batch) == set()
    assert read(path) == [1, 2]


def test_an_interrupted_write_leaves_nothing_and_can_be_repeated(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(store: object, connection: object, append: object) -> int:
        raise KeyboardInterrupt

    with closing(SqliteStore(path)) as store:
        with monkeypatch.context() as patched:
            patched.setattr("noetlvm.store.sqlite.SqliteStore._moved", interrupted)
            with pytest.raises(KeyboardInterrupt):
                store.write([append(execution(), 0, events([1]))], {"sha256:b": b"code"})
        assert store.bundle("sha256:b") is None
        assert add(store, execution(), 0) == set()


# ---- the schema


def stored_first_schema(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(FIRST_SCHEMA.read_text(encoding="utf-8"))


def test_a_file_of_the_first_schema_is_brought_forward_and_keeps_what_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    stored_first_schema(path)
    with closing(SqliteStore(path)) as store:
        assert schema_version(store._connection, path) == len(MIGRATIONS)
        assert [recorded.seq for recorded in store.events("x")] == [1, 2]
        add(store, execution(), 2)
    assert read(path) == [1, 2, 3]


def stored_fourth_schema(path: Path, *changes: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(FOURTH_SCHEMA.read_text(encoding="utf-8"))
        for change in changes:
            connection.execute(change)
        connection.commit()


def test_events_that_had_a_row_each_are_moved_into_chunks_with_their_identifiers(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    stored_fourth_schema(path)
    reference = Reference("results", "ab" * 32, 70_000, "list of 9")
    with closing(SqliteStore(path)) as store:
        expected = [event(1, a=1), event(2, result=reference), *map(event, range(3, 7))]
        assert list(store.events("x")) == expected
        digits = ("39fe", "39ff", "3a00")
        assert [one.event_id for one in store.events("y")] == [
            f"0190a6c0-8f7e-7cc3-98c4-dc0c0c07{end}" for end in digits
        ]
        # What had checksums has them, what had none has none.
        sums = store._select("SELECT place >> 32, place & 7, last, sum IS NULL FROM chunks")
        assert sums == [(1, 1, 3, 0), (1, 4, 4, 1), (1, 5, 6, 0), (2, 1, 3, 0)]
        assert [one.what for one in store.damage() if "event" in one.what] == []
        assert store.snapshot("x", "sha256:b") is not None
        add(store, execution(), 6)
        add(store, execution("y"), 3)
    assert read(path) == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("UPDATE events SET label = 'other' WHERE place = (1 << 32) + 2", "event 2 of x is damaged"),
        ("UPDATE events SET timestamp = 'soon' WHERE place = (1 << 32) + 4", "event 4 of x is damaged"),
        ("UPDATE events SET data = x'c1' WHERE place = (1 << 32) + 4", "event 4 of x is damaged"),
        ("DELETE FROM events WHERE place = (1 << 32) + 2", "event 2 of x is missing"),
        ("UPDATE executions SET seq = 5 WHERE key = 1", "event 6 of x comes after the last event of its row, 5"),
        ("DELETE FROM executions WHERE key = 1", "the row of the execution with key 1 is missing"),
    ],
)
def test_damage_of_events_that_had_a_row_each_is_not_hidden_by_their_move(
    tmp_path: Path, change: str, message: str
) -> None:
    path = tmp_path / "old.db"
    stored_fourth_schema(path, change)
    with closing(SqliteStore(path)) as store:
        found = [one.what for one in store.damage() if "event" in one.what]
        assert len(found) == 1, found
        assert message in found[0]


def test_commands_of_an_older_schema_stay_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    columns = "number, execution, run, unit, lease, step, pool"
    rows = "(7, 1, 1, '', 2, 'a', 'default'), (3, 1, 2, '', 1, 'b', 'default')"
    stored_fourth_schema(path, f"INSERT INTO commands ({columns}) VALUES {rows}")
    with closing(SqliteStore(path)) as store:
        add(store, execution(), 6, opened=[QueuedCommand("x", 2, "", 2), QueuedCommand("x", 3, "", 1)])
        claimed = store.claim("w", ["default"], 9.0, 9, 1.0)
        assert [(one.run, one.lease, one.attempts) for one in claimed] == [(1, 2, 1), (2, 2, 1), (3, 1, 1)]


def test_events_of_the_first_schema_get_their_references_listed(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    stored_first_schema(path)
    reference = Reference("results", "ab" * 32, 70_000, "list of 9")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE events SET data = ? WHERE place & 3 = 2", (encode({"result": (reference,)}),))
    with closing(SqliteStore(path)) as store:
        assert list(store.references()) == ["ab" * 32]
        store.delete(["x"])
        assert list(store.references()) == []


def test_executions_of_the_first_schema_get_the_trace_of_their_root(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    stored_first_schema(path)
    columns = "execution_id, bundle, name, path, status, started, ended, parent, counts, seq"
    with closing(sqlite3.connect(path)) as connection, connection:
        for name, parent in (("child", "x"), ("grandchild", "child"), ("orphan", "gone"), ("other", "")):
            values = (name, "b", "n", "p", "success", 1.0, 2.0, parent, "{}", 1)
            connection.execute(f"INSERT INTO executions ({columns}) VALUES ({', '.join('?' * 10)})", values)
    with closing(SqliteStore(path)) as store:
        traces = {row.execution_id: row.trace_id for row in store.executions()}
    assert traces == {"x": "x", "child": "x", "grandchild": "x", "orphan": "gone", "other": "other"}


def test_later_steps_are_taken_once_and_in_order(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    stored_first_schema(path)
    second = ("ALTER TABLE executions ADD COLUMN owner TEXT NOT NULL DEFAULT 'nobody'",)
    third = ("CREATE INDEX owners ON executions (owner)",)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for _ in range(2):
            migrate(connection, path, (MIGRATIONS[0], second, third))
        assert schema_version(connection, path) == 3
        assert connection.execute("SELECT execution_id, owner, seq FROM executions").fetchall() == [("x", "nobody", 2)]


def test_a_step_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    stored_first_schema(path)
    failing = ("CREATE TABLE half (a)", "CREATE TABLE events (a)")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        with pytest.raises(sqlite3.OperationalError):
            migrate(connection, path, (MIGRATIONS[0], failing))
        assert schema_version(connection, path) == 1
        assert connection.execute("SELECT * FROM sqlite_master WHERE name = 'half'").fetchall() == []


def test_a_reader_brings_an_old_file_forward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "old.db"
    stored_first_schema(path)
    grown = (*MIGRATIONS, ("CREATE TABLE later (a)",))
    monkeypatch.setattr("noetlvm.store.sqlite.MIGRATIONS", grown)
    monkeypatch.setattr("noetlvm.store.sqlite.migrate", lambda connection, path: migrate(connection, path, grown))
    monkeypatch.setattr("noetlvm.store.sqlite.require_known", lambda version, path: None)
    with closing(SqliteReader(path)) as reader:
        assert reader._select("SELECT * FROM later") == []


def test_a_file_of_a_later_noetlvm_is_refused(path: Path) -> None:
    write(path, 1)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("INSERT INTO migrations (version) VALUES (99)")
    for opening in (SqliteStore, SqliteReader):
        with pytest.raises(StoreError, match=r"a later noetlvm wrote .*; update noetlvm"):
            opening(path)


# ---- crashes


def killed_writer(path: Path, lines: int) -> dict[str, int]:
    """Let a writer live for so many lines, kill it, and return what it said was durable."""
    command = [sys.executable, "-m", "tests.noetlvm.store.crashing_writer", str(path)]
    said: dict[str, int] = {}
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(lines):
            name, seq = process.stdout.readline().split()
            said[name] = int(seq)
        process.kill()
        for line in process.stdout:  # it was not stopped between two lines; the last may be cut short
            if line.endswith("\n"):
                name, seq = line.split()
                said[name] = int(seq)
    return said


def test_a_writer_killed_at_any_moment_has_lost_nothing_it_said_and_left_no_half_decision(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    chance = random.Random(4)
    for _ in range(12):
        said = killed_writer(path, lines=chance.randrange(1, 200))
        with closing(SqliteReader(path)) as reader:
            for name, acknowledged in said.items():
                if not acknowledged:
                    continue
                numbers = [recorded.seq for recorded in reader.events(name)]
                assert numbers == list(range(1, len(numbers) + 1))
                assert len(numbers) >= acknowledged
                assert len(numbers) % EVENTS_OF_A_DECISION == 0
                found, snapshot = reader.execution(name), reader.snapshot(name, "sha256:b")
                assert found is not None
                assert snapshot is not None
                assert found.seq == snapshot.seq == len(numbers)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_what_was_written_is_read_while_other_threads_read(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db", "relaxed")
    for number in range(600):
        store.register(f"playbook/{number}", "bundle", b"data", 0.0)
    is_over = threading.Event()

    def read() -> None:
        while not is_over.is_set():
            store.playbooks(limit=600)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        unread = []
        for number in range(40):
            store.put_bundle(f"bundle-{number}", b"data")
            if store.bundle(f"bundle-{number}") is None:
                unread.append(number)
    finally:
        is_over.set()
        for reader in readers:
            reader.join()
        store.close()
    assert unread == []
