"""The Python API: the examples of its page run, errors have places, and paths and stores work."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from noetlc import api
from noetlc.api import CompiledBundle, PlaybookError, analyse, lint
from noetlvm.api import BundleError, CompilationError, Ending, UnresolvedError, run, run_async
from noetlvm.store.sqlite import SqliteReader
from tests.whole.imports import ROOT

PAGE = ROOT / "docs" / "python-api.md"
HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: one, path: t/one }\n"
ONE = HEAD + "workflow:\n  - step: start\n    tool: { kind: python, code: result = 1 }\n"


def test_every_example_of_the_page_runs() -> None:
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(examples) >= 5
    names: dict[str, Any] = {}
    for example in examples:
        exec(example, names)


def test_a_file_is_judged_by_the_configuration_above_it(tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(ONE.replace("kind: python", "kind: pyton"))
    assert [one.path for one in lint(file)] == [str(file)]
    (tmp_path / "noetlc.toml").write_text('ignore = ["P106"]\nallow-unknown-kinds = true\n')
    assert lint(file) == []
    other = tmp_path / "other.toml"
    other.write_text("")
    assert [one.code for one in lint(file, config=other)] == ["P106"]


def test_a_playbook_with_errors_is_refused_with_places() -> None:
    broken = ONE.replace("tool", "tol")
    with pytest.raises(PlaybookError, match=r"^playbook\.yaml:6:5: P020 "):
        api.compile(broken)
    with pytest.raises(CompilationError) as error:
        run(broken)
    assert error.value.findings[0]["line"] == 6
    assert "playbook.yaml:6:5: P020 " in str(error.value)
    with pytest.raises(PlaybookError):
        analyse("a: [")


def test_a_file_name_as_text_is_explained() -> None:
    (finding,) = lint("flows/etl.yaml")
    assert "pathlib.Path" in finding.help


def test_a_bundle_runs_as_bytes_as_a_file_and_as_it_is(tmp_path: Path) -> None:
    bundle = api.compile(ONE)
    bundle.save(tmp_path / "one.nbc")
    (tmp_path / "one.yaml").write_text(ONE)
    given: list[str | bytes | Path | CompiledBundle] = [
        bundle,
        bundle.data,
        ONE,
        tmp_path / "one.nbc",
        tmp_path / "one.yaml",
    ]
    assert [run(one).result for one in given] == [1] * 5
    assert repr(bundle).startswith(f"<bundle {bundle.id[:16]}, ")
    with pytest.raises(BundleError):
        run(b"no bundle")


def test_a_database_records_the_run_and_large_results_come_whole(tmp_path: Path) -> None:
    large = ONE.replace("result = 1", "\"result = ['x' * 100000] * 2\"")
    ending = run(large, db=tmp_path / "runs.db")
    assert ending.result == ["x" * 100_000] * 2
    reader = SqliteReader(tmp_path / "runs.db")
    try:
        assert [row.execution_id for row in reader.executions()] == [ending.execution_id]
    finally:
        reader.close()


def test_a_missing_credential_is_an_exception() -> None:
    with pytest.raises(UnresolvedError, match="token"):
        run(ONE.replace("workflow:", "keychain: [{ name: token, kind: environment }]\nworkflow:"))


def test_a_playbook_runs_inside_an_event_loop() -> None:
    async def both() -> list[Ending]:
        return [await run_async(ONE), run(ONE)]

    assert [ending.status for ending in asyncio.run(both())] == ["success", "success"]


def test_observers_get_the_events() -> None:
    names: list[str] = []
    run(ONE, observers=[lambda _row, recorded: names.extend(one.event.name for one in recorded)])
    assert names[-1] == "playbook.processed"
