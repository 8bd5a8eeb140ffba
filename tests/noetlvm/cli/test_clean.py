"""`noetlvm clean`: orphans go, what is referred to stays."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tests.commands import Command

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
    kept = {path for path in folder.rglob("*") if path.is_file()}
    assert kept
    orphan = b"nobody refers to this"
    name = hashlib.sha256(orphan).hexdigest()
    some = next(iter(kept))
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
    assert {path for path in folder.rglob("*") if path.is_file()} == kept


def test_a_database_that_is_not_there_is_refused(noetlvm: Command, tmp_path: Path) -> None:
    assert noetlvm("clean", "--db", str(tmp_path / "none.db")).code == 2
