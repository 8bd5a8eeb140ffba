"""`noetlvm fsck`."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from noetlvm.bytecode.codec.container import bundle_id
from noetlvm.store.postgres import PostgresStore
from tests.commands import Command
from tests.noetlvm.store.records import append, event, execution
from tests.noetlvm.store.test_fsck import BUNDLE, REFERENCE

LARGE = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: large, path: large }
workflow:
  - step: start
    tool:
      - make: { kind: shell, command: ["sh", "-c", "head -c 200000 /dev/zero | tr '\\\\0' a"] }
"""


@pytest.fixture
def database(noetlvm: Command, tmp_path: Path) -> Path:
    (tmp_path / "large.yaml").write_text(LARGE)
    assert noetlvm("run", "large.yaml", "-q").code == 0
    return tmp_path / "executions.db"


def change(database: Path, statement: str) -> None:
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        assert connection.execute(statement).rowcount


def test_a_sound_database_is_reported_as_such(noetlvm: Command, database: Path) -> None:
    answer = noetlvm("fsck")
    assert (answer.code, answer.out.strip()) == (0, f"{database}: no damage")
    assert noetlvm("fsck", "--json").data == {"damage": [], "repaired": []}


def test_damage_that_can_be_repaired_is_reported_then_repaired(noetlvm: Command, database: Path) -> None:
    change(database, 'DELETE FROM "references"')
    answer = noetlvm("fsck")
    assert answer.code == 1
    assert "which is not listed; --repair: it is listed" in answer.out
    answer = noetlvm("fsck", "--repair")
    assert (answer.code, answer.out.startswith("repaired: ")) == (0, True)
    assert noetlvm("fsck").code == 0


def test_damage_that_cannot_be_repaired_stays_reported(noetlvm: Command, database: Path) -> None:
    change(database, "DELETE FROM chunks WHERE place & 255 > 1")
    answer = noetlvm("fsck", "--repair")
    assert answer.code == 1
    assert "damaged: events " in answer.out
    data = noetlvm("fsck", "--json").data
    assert [one["repairable"] for one in data["damage"]] == [False]


@pytest.mark.parametrize("is_missing", [True, False])
def test_a_result_that_cannot_be_read_is_reported(noetlvm: Command, database: Path, is_missing: bool) -> None:
    (result,) = Path(f"{database}.results").iterdir()
    if is_missing:
        result.unlink()
    else:
        result.write_bytes(b"other")
    answer = noetlvm("fsck")
    assert (answer.code, f"the result {result.name} cannot be read" in answer.out) == (1, True)


def test_a_missing_database_is_not_made(noetlvm: Command, tmp_path: Path) -> None:
    assert noetlvm("fsck", "--db", "none.db").code == 2
    assert not (tmp_path / "none.db").exists()


def test_the_command_checks_and_repairs_a_postgresql_store(noetlvm: Command, postgres: str) -> None:
    with closing(PostgresStore(postgres)) as store:
        row = execution(bundle=bundle_id(BUNDLE))
        store.write([append(row, 0, [event(1, result=REFERENCE)])], {bundle_id(BUNDLE): BUNDLE})
        store.database.run("DELETE FROM result_references RETURNING 1", ())
    answer = noetlvm("fsck", "--store", postgres)
    assert (answer.code, "which is not listed; --repair: it is listed" in answer.out) == (1, True)
    answer = noetlvm("fsck", "--store", postgres, "--repair", "--json")
    assert [one["what"] for one in answer.data["repaired"]] == [
        f"x refers to the result {REFERENCE.key}, which is not listed"
    ]
    assert f"the result {REFERENCE.key} cannot be read" in answer.data["damage"][0]["what"]
    assert noetlvm("fsck", "--store", "sqlite:x.db").code == 2
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP SCHEMA noetlvm CASCADE")
