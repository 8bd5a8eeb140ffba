"""What a check of a database finds, and what it repairs."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgpack import packb, unpackb  # type: ignore[import-untyped]  # it ships no types

from noetlc.compile import compile_playbooks
from noetlvm.bytecode.codec.container import bundle_id
from noetlvm.data.references import Reference
from noetlvm.store.fsck import Damage
from noetlvm.store.interface import DamagedError, QueuedCommand, Snapshot
from noetlvm.store.postgres import PostgresStore
from noetlvm.store.sqlite import SqliteReader, SqliteStore
from tests.noetlvm.engine.runs import Session
from tests.noetlvm.store.records import append, event, execution

PLAYBOOK = b"""
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: small, path: small }
workflow:
  - step: start
    tool: { kind: noop }
"""
BUNDLE = compile_playbooks([("small.yaml", PLAYBOOK)]).data
REFERENCE = Reference("results", "ab" * 32, 70_000, "list of 9")


def fill(store: SqliteStore | PostgresStore) -> None:
    """Write executions x, whose five events are a chunk each, and y, whose events are one chunk."""
    row = execution(bundle=bundle_id(BUNDLE), counts={"steps": 1})
    log = [event(1, a=1), event(2, result=REFERENCE), *(event(seq) for seq in range(3, 6))]
    store.write([append(row, 0, log[:1], start_key="k")], {bundle_id(BUNDLE): BUNDLE})
    for seq in range(1, 4):
        store.write([append(row, seq, log[seq : seq + 1])])
    command, snapshot = QueuedCommand("x", 1, "", 1), Snapshot(bundle_id(BUNDLE), 3, {"a": 1})
    store.write([append(row, 4, log[4:], opened=[command], snapshot=snapshot)])
    store.write([append(row._replace(execution_id="y"), 0, [event(seq) for seq in range(1, 5)])])
    store.register("p", bundle_id(BUNDLE), BUNDLE, 1.0)
    store.request("x", "pause")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "runs.db"
    with closing(SqliteStore(file)) as store:
        fill(store)
    return file


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            assert connection.execute(statement).rowcount, statement


def found(path: Path) -> list[Damage]:
    with closing(SqliteReader(path)) as reader:
        return list(reader.damage())


def repaired(path: Path) -> list[Damage]:
    """Repair what can be, and return what is left."""
    with closing(SqliteStore(path)) as store:
        store.repair()
        return list(store.damage())


def test_a_sound_database_has_no_damage(path: Path) -> None:
    assert found(path) == []
    assert repaired(path) == []


def test_a_database_at_work_has_no_damage(path: Path) -> None:
    with closing(SqliteStore(path)):
        assert found(path) == []


X = "place >> 32 = 1 AND place & 255"
LOST = [
    (f"UPDATE chunks SET data = x'80' WHERE {X} = 2", "event 2 of x is damaged: its checksum differs"),
    (f"UPDATE chunks SET sum = sum + 1 WHERE {X} = 5", "event 5 of x is damaged: its checksum differs"),
    ("UPDATE chunks SET sum = sum + 1 WHERE last = 4", "events 1 to 4 of y is damaged: its checksum differs"),
    (
        "UPDATE chunks SET last = 9 WHERE place >> 32 = 2",
        "events 1 to 9 of y is damaged: its data are not those events",
    ),
    ("UPDATE chunks SET last = 'x' WHERE place >> 32 = 2", "event 1 of y is damaged: a column has another type"),
    (f"DELETE FROM chunks WHERE {X} IN (2, 3)", "events 2 to 3 of x is missing"),
    (f"DELETE FROM chunks WHERE {X} = 5", "event 5 of x is missing"),
    ("UPDATE executions SET key = 1 << 62 WHERE key = 1", "the database cannot be read to its end"),
    ("UPDATE executions SET started = 'soon' WHERE key = 1", "the row of execution 'x' is damaged"),
    ("DELETE FROM executions WHERE key = 2", "the row of the execution with key 2 is missing"),
    (f"UPDATE chunks SET sum = 1.5 WHERE {X} = 3", "event 3 of x is damaged: a column has another type"),
    ("UPDATE bundles SET data = x'00'", "is damaged: M001"),
    ("UPDATE bundles SET data = 1.5", "is damaged: "),
    ("UPDATE bundles SET data = substr(data, 1, length(data) - 1)", "is damaged: M0"),
    ("DELETE FROM bundles", "of `p`, version 1, is missing"),
    ("DELETE FROM bundles", "of x is missing"),
]


@pytest.mark.parametrize(("statement", "message"), LOST)
def test_what_nothing_else_holds_is_reported_and_left_alone(path: Path, statement: str, message: str) -> None:
    change(path, statement)
    assert any(message in one.what and not one.repair for one in found(path)), found(path)
    assert any(message in one.what for one in repaired(path))


REPAIRED = [
    ("UPDATE executions SET counts = '{' WHERE key = 1", "its counts cannot be decoded"),
    ("UPDATE executions SET seq = 3 WHERE key = 1", "events 4 to 5 of x comes after the last event of its row, 3"),
    (f"INSERT INTO chunks SELECT place + 1, last + 1, data, sum FROM chunks WHERE {X} = 5", "event 6 of x comes after"),
    ("UPDATE executions SET seq = 3 WHERE key = 2", "event 4 of y comes after the last event of its row, 3"),
    ("UPDATE snapshots SET data = x'81'", "the snapshot of x cannot be decoded"),
    ("UPDATE snapshots SET seq = 9", "the snapshot of x is of event 9"),
    ("UPDATE snapshots SET execution = 9", "the snapshot of key 9 belongs to no execution"),
    ("UPDATE commands SET execution = 9", "commands of an execution that does not exist (key 9)"),
    ("UPDATE start_keys SET execution_id = 'z'", "the start key 'k' of z"),
    ("UPDATE requests SET data = x'81'", "request 1 to x cannot be decoded"),
    ('DELETE FROM "references"', "x refers to the result abab"),
    ('INSERT INTO "references" VALUES (\'cd\', 9)', "references of an execution that does not exist (key 9)"),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "message"), REPAIRED)
def test_what_follows_from_the_rest_is_repaired(path: Path, statement: str, message: str) -> None:
    change(path, statement)
    (one,) = found(path)
    assert message in one.what
    assert one.repair
    assert repaired(path) == []
    with closing(SqliteReader(path)) as reader:
        assert [recorded.seq for recorded in reader.events("x")] == [1, 2, 3, 4, 5]
        assert list(reader.references()) == ["ab" * 32]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("status", "'running'"), ("ended", "NULL"), ("ended", "1"), ("path", "'other'"), ("bundle", "'other'"),
        ("parent", "'other'"), ("trace", "'other'"),
    ],
)  # fmt: skip
def test_a_row_that_differs_from_its_log_gets_what_the_log_says(tmp_path: Path, column: str, value: str) -> None:
    file = tmp_path / "runs.db"
    with closing(SqliteStore(file)) as store:
        Session(store=store).run("- step: start\n  tool: { kind: playbook, path: small }\n", PLAYBOOK.decode())
    assert found(file) == []
    change(file, f"UPDATE executions SET {column} = {value} WHERE parent <> ''")
    assert any(f"has the {column} " in one.what and one.repair for one in found(file)), found(file)
    assert repaired(file) == []


def test_the_log_of_a_bundle_that_is_no_data_cannot_be_decided_again(path: Path) -> None:
    change(path, "UPDATE bundles SET data = 1.5")
    with closing(SqliteReader(path)) as reader, pytest.raises(DamagedError, match="its data is not binary"):
        reader.bundle(bundle_id(BUNDLE))


def test_an_index_that_differs_from_its_table_is_rebuilt(path: Path) -> None:
    schema = "SELECT sql FROM sqlite_master WHERE name = 'children'"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        (made,) = connection.execute(schema).fetchone()
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET sql = ? WHERE name = 'children'", (made.replace("parent", "name"),)
        )
    assert any("an index differs" in one.what for one in found(path))
    assert repaired(path) == []


def test_pages_that_were_overwritten_are_reported(path: Path) -> None:
    with closing(SqliteStore(path)) as store:
        row = execution("z", bundle=bundle_id(BUNDLE))
        store.write([append(row, 0, [event(seq, text="a" * 500) for seq in range(1, 400)])])
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"\xff" * 8_192)
    assert found(path)


@pytest.mark.parametrize("value", ["'x'", "x'00'", "1.5", "1e300"])
def test_a_command_whose_number_is_none_does_not_prevent_a_repair(path: Path, value: str) -> None:
    change(path, f"UPDATE commands SET number = {value}")
    repaired(path)
    with closing(SqliteStore(path)) as store:
        assert len(store.executions()) == 2


@pytest.mark.parametrize("column", ["started", "ended"])
@pytest.mark.parametrize("value", ["9e999", "-9e999", "1e300", "1e12", "-1"])
def test_a_time_that_is_none_is_damage_of_its_row(path: Path, column: str, value: str) -> None:
    change(path, f"UPDATE executions SET {column} = {value} WHERE key = 1")
    with (
        closing(SqliteReader(path)) as reader,
        pytest.raises(DamagedError, match="the row of execution 'x' is damaged"),
    ):
        reader.executions()


@pytest.mark.parametrize("value", ["soon", None, float("inf"), float("nan"), 1e12, -1.0])
def test_events_at_a_time_that_is_none_are_damaged(path: Path, value: Any) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        (place, data) = connection.execute("SELECT place, data FROM chunks WHERE place >> 32 = 2").fetchone()
        changed = packb([value, *unpackb(data)[1:]])
        connection.execute("UPDATE chunks SET data = ?, sum = NULL WHERE place = ?", (changed, place))
    assert any("events 1 to 4 of y is damaged: its data " in one.what for one in found(path))


@pytest.mark.parametrize("value", ["x''", "7", "1.5"])
def test_a_listed_result_of_another_type_has_a_name(path: Path, value: str) -> None:
    change(path, f'UPDATE "references" SET result = {value}')
    with closing(SqliteReader(path)) as reader:
        assert all(type(key) is str for key in reader.references())
