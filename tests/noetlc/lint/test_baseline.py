from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from noetlc.lint.baseline import read_baseline, write_baseline
from noetlvm.command_line.process import CommandError
from tests.noetlc.lint.rows import row

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "baseline.json"


def test_recorded_findings_are_not_new_even_after_their_lines_moved(file: Path) -> None:
    write_baseline(file, [row(line=3), row("P501", line=9)], ["a.yaml"])
    assert read_baseline(file).new([row(line=30), row("P501", line=90)]) == []


def test_one_more_of_the_same_is_new(file: Path) -> None:
    write_baseline(file, [row(line=3)], ["a.yaml"])
    assert read_baseline(file).new([row(line=3), row(line=5)]) == [row(line=5)]


def test_another_place_is_new(file: Path) -> None:
    write_baseline(file, [row()], ["a.yaml"])
    moved = row(label="workflow.end")
    assert read_baseline(file).new([moved]) == [moved]


def test_the_file_is_sorted_and_the_same_each_time(file: Path) -> None:
    rows = [row("P501", "b.yaml"), row(), row(line=2)]
    write_baseline(file, rows, ["a.yaml", "b.yaml"])
    first = file.read_text()
    write_baseline(file, list(reversed(rows)), ["a.yaml", "b.yaml"])
    assert file.read_text() == first
    assert json.loads(first)["findings"] == [
        {"path": "a.yaml", "code": "P103", "label": "workflow.start", "count": 2},
        {"path": "b.yaml", "code": "P501", "label": "workflow.start", "count": 1},
    ]


def test_paths_are_relative_to_the_baseline(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file.parent / "sub").mkdir()
    write_baseline(file, [row(path="sub/a.yaml")], ["sub/a.yaml"])
    monkeypatch.chdir(file.parent / "sub")
    assert read_baseline(file).new([row(path="a.yaml")]) == []


def test_files_that_were_not_looked_at_keep_their_entries_while_they_exist(file: Path) -> None:
    (file.parent / "b.yaml").write_text("")
    write_baseline(file, [row(path="a.yaml"), row(path="b.yaml"), row(path="gone.yaml")], ["a.yaml", "b.yaml"])
    assert write_baseline(file, [], ["a.yaml"]) == 0
    assert [entry["path"] for entry in json.loads(file.read_text())["findings"]] == ["b.yaml"]


BAD = {
    "{": "not JSON",
    "[" * 100_000: "not JSON",
    "[]": "damaged",
    '{"version": 2, "findings": []}': "version 2",
    '{"version": 1, "findings": [{"path": "a"}]}': "damaged",
    '{"version": 1, "findings": [{"path": 1, "code": "P1", "label": "", "count": 1}]}': "not a string",
    '{"version": 1, "findings": [{"path": "a", "code": "P1", "label": "", "count": 0}]}': "not a count",
}


@pytest.mark.parametrize(("text", "why"), BAD.items(), ids=[key[:60] for key in BAD])
def test_a_bad_file_stops_the_run_with_a_reason(file: Path, text: str, why: str) -> None:
    file.write_text(text)
    with pytest.raises(CommandError, match=why):
        read_baseline(file)


def test_a_missing_file_stops_the_run_with_advice(file: Path) -> None:
    with pytest.raises(CommandError, match="--write-baseline"):
        read_baseline(file)
