"""What only the SQLite store has: a file, a lock, readers beside the writer, a schema that grows, crashes."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from noetlvm.data.event import Event, Recorded
from noetlvm.store.interface import ConflictError, LockedError, StoreError
from noetlvm.store.migrations import MIGRATIONS, migrate, schema_version
from noetlvm.store.sqlite import SqliteReader, SqliteStore, send_request
from tests.noetlvm.store.crashing_writer import EVENTS_OF_A_DECISION
from tests.noetlvm.store.records import event, events, execution

ROOT = Path(__file__).resolve().parents[3]
FIRST_SCHEMA = Path(__file__).with_name("schema_1.sql")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder of its own" / "runs?#.db"


def write(path: Path, *numbers: int) -> None:
    with closing(SqliteStore(path)) as store:
        store.append("x", 0, events(numbers), execution())
        store.commit()


def read(path: Path) -> list[int]:
    with closing(SqliteReader(path)) as reader:
        return [recorded.seq for recorded in reader.events("x")]


# ---- one writer, many readers


def test_what_is_committed_is_there_when_the_file_is_opened_again(path: Path) -> None:
    write(path, 1, 2, 3)
    with closing(SqliteStore(path)) as store:
        store.append("x", 3, events([4]), execution())
        store.commit()
        store.append("x", 4, events([5]), execution())
    assert read(path) == [1, 2, 3, 4]


def test_a_second_writer_is_refused_and_told_who_writes(path: Path) -> None:
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
    time.sleep(0.3)
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", dying, str(path)], cwd=ROOT, check=True)
    SqliteStore(path).close()


def test_readers_follow_a_writer_and_cannot_write(path: Path) -> None:
    with closing(SqliteStore(path)) as store:
        store.append("x", 0, events([1]), execution())
        store.commit()
        with closing(SqliteReader(path)) as reader:
            assert [recorded.seq for recorded in reader.events("x")] == [1]
            store.append("x", 1, events([2]), execution())
            store.commit()
            assert [recorded.seq for recorded in reader.events("x", after=1)] == [2]
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                reader._reading.execute("DELETE FROM events")


def test_a_request_from_another_process_reaches_the_writer(path: Path) -> None:
    with closing(SqliteStore(path)) as store:
        store.append("x", 0, events([1]), execution())
        store.commit()
        send_request(path, "x", "pause")
        assert [(request.execution_id, request.action) for request in store.requests()] == [("x", "pause")]
        with pytest.raises(StoreError, match="there is no execution y"):
            send_request(path, "y", "pause")


@pytest.mark.parametrize(("durability", "synchronous"), [("full", 2), ("relaxed", 1)])
def test_full_durability_syncs_every_commit_and_relaxed_does_not(path: Path, durability: str, synchronous: int) -> None:
    with closing(SqliteStore(path, durability)) as store:  # type: ignore[arg-type]
        assert store._connection.execute("PRAGMA synchronous").fetchone() == (synchronous,)
        assert store._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_where_every_commit_is_synced_the_write_ahead_log_is_written_over_instead_of_growing(path: Path) -> None:
    sizes = []
    with closing(SqliteStore(path)) as store:
        for seq in range(300):
            store.append("x", seq, events([seq + 1]), execution())
            store.commit()
            sizes.append(path.with_name(f"{path.name}-wal").stat().st_size)
    assert sizes[0] < sizes[99] == sizes[299]


def test_the_events_of_a_step_take_little_of_the_file(tmp_path: Path) -> None:
    names = ("step.scheduled", "step.started", "task.done", "step.done", "next.evaluated")
    outcome = {"status": "ok", "result": None, "meta": {"attempt": 1, "duration_ms": 0.02, "ts": 1_700_000_000.0}}
    data = {"outcome": outcome, "do": "continue", "pc": 4}
    identifier = "0190a6c0-8f7e-7cc3-98c4-dc0c0c07398f"
    sizes = {}
    for steps in (1, 1_001):
        told = [Event(name, data if name == "task.done" else {}, run) for run in range(steps) for name in names]
        path = tmp_path / f"{steps}.db"
        with closing(SqliteStore(path, "relaxed")) as store:
            recorded = [Recorded(seq, identifier, 1_700_000_000.5, event) for seq, event in enumerate(told, 1)]
            store.append("x", 0, recorded, execution())
            store.commit()
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


def test_an_event_that_somebody_wrote_past_the_lock_is_a_conflict_and_ends_the_writer(path: Path) -> None:
    with closing(SqliteStore(path)) as store:
        store.append("x", 0, events([1]), execution())
        store.commit()
        with closing(sqlite3.connect(path, isolation_level=None)) as intruder:
            intruder.execute(
                "INSERT INTO events SELECT place + 1, event_id, timestamp, name, run, iteration, task, label, "
                "attempt, data FROM events"
            )
        store.append("x", 1, events([2, 3]), execution(status="failed"))
        with pytest.raises(ConflictError, match="somebody else"):
            store.commit()
        with pytest.raises(StoreError, match="open the store anew"):
            store.append("x", 3, events([4]), execution())
        with pytest.raises(StoreError, match="open the store anew"):
            store.commit()
    with closing(SqliteReader(path)) as reader:
        found = reader.execution("x")
    assert found is not None
    assert (found.status, read(path)) == ("running", [1, 2])


def test_a_disk_that_is_full_loses_nothing_that_was_committed(path: Path) -> None:
    with closing(SqliteStore(path)) as store:
        store.append("x", 0, events([1]), execution())
        store.commit()
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        store.append("x", 1, [event(2, text="a" * 100_000)], execution())
        with pytest.raises(StoreError, match="full"):
            store.commit()
    assert read(path) == [1]


def test_a_commit_that_was_interrupted_ends_the_writer(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(pending: object) -> None:
        raise KeyboardInterrupt

    with closing(SqliteStore(path)) as store:
        store.append("x", 0, events([1]), execution())
        monkeypatch.setattr(store, "_write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.commit()
        with pytest.raises(StoreError, match="open the store anew"):
            store.append("x", 1, events([2]), execution())


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
        store.append("x", 2, events([3]), execution())
        store.commit()
    assert read(path) == [1, 2, 3]


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
