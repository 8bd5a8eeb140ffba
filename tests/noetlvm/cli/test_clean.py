"""`noetlvm clean`: orphans go, what is referred to stays."""

from __future__ import annotations

import hashlib
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from noetlvm.store.postgres import PostgresStore
from tests.commands import Command
from tests.noetlvm.store.records import add, execution

PLAYBOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: bulky, path: tests/bulky }
workflow:
  - step: start
    tool: { kind: python, code: "result = 'x' * 200000" }
"""


def test_orphans_go_and_results_stay(noetlvm: Command, tmp_path: Path) -> None:
    playbook = tmp_path / "bulky.yaml"
    playbook.write_text(PLAYBOOK, encoding="utf-8")
    database = tmp_path / "run.db"
    assert noetlvm("run", str(playbook), "--db", str(database), "--json").code == 0
    folder = tmp_path / "run.db.results"
    left = {path for path in folder.rglob("*") if path.is_file()}
    assert left
    orphan = b"nobody refers to this"
    name = hashlib.sha256(orphan).hexdigest()
    some = next(iter(left))
    relative = some.relative_to(folder)
    place = (
        folder.joinpath(*[name[: len(part)] for part in relative.parts[:-1]], name)
        if len(relative.parts) > 1
        else folder / name
    )
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(orphan)
    answer = noetlvm("clean", "--db", str(database), "--json")
    assert answer.code == 0
    assert answer.data["results"] == 1
    assert {path for path in folder.rglob("*") if path.is_file()} == left


def test_a_database_that_is_not_there_is_refused(noetlvm: Command, tmp_path: Path) -> None:
    assert noetlvm("clean", "--db", str(tmp_path / "none.db")).code == 2


def test_old_months_of_a_service_store_go_and_an_unfinished_one_stays(noetlvm: Command, postgres: str) -> None:
    with closing(PostgresStore(postgres)) as store:
        for name, month, ended in (("old", 11, True), ("open", 12, False)):
            started = datetime(2024, month, 20, tzinfo=UTC).timestamp()
            add(store, execution(name, started=started, ended=started + 5 if ended else None), 0)
        answer = noetlvm("clean", "--store", postgres, "--older-than", "8w", "--json")
        assert answer.data == {"executions": 1, "results": 0, "bytes": 0}
        assert [row.execution_id for row in store.executions()] == ["open"]
        store.delete(["open"])


def test_a_service_on_sqlite_is_cleaned_by_its_file(noetlvm: Command) -> None:
    answer = noetlvm("clean", "--store", "sqlite:noetl.db")
    assert (answer.code, "--db FILE" in answer.err) == (2, True)
