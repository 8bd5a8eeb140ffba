"""What a check of a PostgreSQL store finds, and what it repairs; and stores that make no checksums."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from noetlvm.bytecode.codec.container import bundle_id
from noetlvm.store.chunks import CHECKSUMS_VARIABLE
from noetlvm.store.fsck import Damage
from noetlvm.store.interface import DamagedError, StoreError
from noetlvm.store.postgres import PostgresStore
from noetlvm.store.sqlite import SqliteStore
from tests.noetlvm.store.records import append, event, execution
from tests.noetlvm.store.test_fsck import BUNDLE, fill

NUMBERS = count()


@pytest.fixture
def store(postgres: str) -> Iterator[PostgresStore]:
    with closing(PostgresStore(postgres, f"fsck{next(NUMBERS)}")) as store:
        fill(store)
        yield store


def change(store: PostgresStore, statement: str) -> None:
    with store.database.connection() as connection:
        assert connection.execute(statement.encode()).rowcount, statement


def test_a_sound_store_has_no_damage(store: PostgresStore) -> None:
    assert store.damage() == []
    assert store.repair() == []


X = "execution = 1 AND seq"
LOST = [
    (f"UPDATE chunks SET data = '\\x80' WHERE {X} = 2", "event 2 of x is damaged: its checksum differs"),
    (f"UPDATE chunks SET sum = sum + 1 WHERE {X} = 5", "event 5 of x is damaged: its checksum differs"),
    ("UPDATE chunks SET sum = sum + 1 WHERE execution = 2", "events 1 to 4 of y is damaged: its checksum differs"),
    (f"DELETE FROM chunks WHERE {X} IN (2, 3)", "events 2 to 3 of x is missing"),
    (f"DELETE FROM chunks WHERE {X} = 5", "event 5 of x is missing"),
    ("DELETE FROM executions WHERE key = 2", "the row of the execution with key 2 is missing"),
    ("UPDATE bundles SET data = '\\x00'", "is damaged: M001"),
    ("DELETE FROM bundles", "of `p`, version 1, is missing"),
    ("DELETE FROM bundles", "of x is missing"),
]


@pytest.mark.parametrize(("statement", "message"), LOST)
def test_what_nothing_else_holds_is_reported_and_left_alone(store: PostgresStore, statement: str, message: str) -> None:
    change(store, statement)
    store.repair()
    assert any(message in one.what and not one.repair for one in store.damage()), store.damage()


REPAIRED = [
    ("UPDATE executions SET counts = '{' WHERE key = 1", "its counts cannot be decoded"),
    ("UPDATE executions SET seq = 3 WHERE key = 1", "events 4 to 5 of x comes after the last event of its row, 3"),
    (f"INSERT INTO chunks SELECT period, execution, 6, 6, data, sum FROM chunks WHERE {X} = 5",
     "event 6 of x comes after"),
    ("UPDATE executions SET seq = 3 WHERE key = 2", "event 4 of y comes after the last event of its row, 3"),
    ("UPDATE snapshots SET data = '\\x81'", "the snapshot of x cannot be decoded"),
    ("UPDATE snapshots SET seq = 9", "the snapshot of x is of event 9"),
    ("UPDATE snapshots SET execution = 9", "the snapshot of key 9 belongs to no execution"),
    ("UPDATE commands SET execution = 9", "commands of an execution that does not exist (key 9)"),
    ("UPDATE start_keys SET execution_id = 'z'", "the start key 'k' of z"),
    ("UPDATE requests SET data = '\\x81'", "request 1 to x cannot be decoded"),
    ("DELETE FROM result_references", "x refers to the result abab"),
    ("INSERT INTO result_references VALUES ('cd', 9)", "references of an execution that does not exist (key 9)"),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "message"), REPAIRED)
def test_what_follows_from_the_rest_is_repaired(store: PostgresStore, statement: str, message: str) -> None:
    change(store, statement)
    (one,) = store.damage()
    assert message in one.what
    assert store.repair() == [one]
    assert store.damage() == []
    assert [recorded.seq for recorded in store.events("x")] == [1, 2, 3, 4, 5]
    assert list(store.references()) == ["ab" * 32]


def test_a_log_longer_than_a_page_is_checked_to_its_end(store: PostgresStore) -> None:
    row = execution("long", bundle=bundle_id(BUNDLE))
    store.write([append(row, 0, [event(1)])])
    for seq in range(1, 130):
        store.write([append(row, seq, [event(seq + 1)])])
    assert store.damage() == []
    change(store, "UPDATE chunks SET data = data || '\\xc0' WHERE seq = 120")
    assert [one.what for one in store.damage()] == ["event 120 of long is damaged: its checksum differs"]


def test_a_server_may_write_during_a_check(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    from noetlvm.store import fsck

    checked = fsck._of_events

    def write_meanwhile(*given: object) -> Iterator[Damage]:
        row = store.execution("y")
        assert row is not None
        store.write([append(row, row.seq, [event(row.seq + 1)])])
        return checked(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(fsck, "_of_events", write_meanwhile)
    assert store.damage() == []


# ---- without checksums


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> object:
    """Return a function that opens one store, with or without checksums."""
    if request.param == "sqlite":
        return lambda checksums: SqliteStore(tmp_path / "runs.db", checksums=checksums)
    address, schema = request.getfixturevalue("postgres"), f"sums{next(NUMBERS)}"
    return lambda checksums: PostgresStore(address, schema, checksums=checksums)


def test_a_log_may_be_written_with_and_without_checksums_in_turns(opened: object) -> None:
    assert callable(opened)
    row = execution()
    for known, checksums in enumerate((True, False, False, True, True)):
        with closing(opened(checksums)) as store:
            store.write([append(row, known, [event(known + 1)])])
    with closing(opened(True)) as store:
        store.write([append(row, 5, [event(6)])])
        assert [recorded.seq for recorded in store.events("x")] == [1, 2, 3, 4, 5, 6]
        assert [one.what for one in store.damage() if "event" in one.what] == []


def test_a_changed_event_is_found_by_its_checksum_and_without_one_by_its_encoding_only(postgres: str) -> None:
    for checksums in (True, False):
        with closing(PostgresStore(postgres, f"changed{next(NUMBERS)}", checksums=checksums)) as store:
            store.write([append(execution(), 0, [event(1), event(2, a="same")])])
            change(
                store,
                "UPDATE chunks SET data = overlay(data placing 'other'::bytea from position('same'::bytea in data))",
            )
            if checksums:
                with pytest.raises(DamagedError, match="its checksum differs"):
                    list(store.events("x"))
            else:
                assert len(list(store.events("x"))) == 2


def test_the_environment_turns_checksums_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHECKSUMS_VARIABLE, "off")
    with closing(SqliteStore(tmp_path / "runs.db")) as store:
        store.write([append(execution(), 0, [event(1)])])
        assert store._select("SELECT sum FROM chunks") == [(None,)]
    monkeypatch.setenv(CHECKSUMS_VARIABLE, "no")
    with pytest.raises(StoreError, match="give on or off"):
        SqliteStore(tmp_path / "other.db")
