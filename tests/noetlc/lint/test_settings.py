from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from noetlc.finding import Severity
from noetlc.lint.cannot_run import CannotRun
from noetlc.lint.options import FailOn
from noetlc.lint.settings import Settings, find_settings, load_settings

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    assert find_settings(()).fail_on is FailOn.ERROR


def test_every_key_is_read(tmp_path: Path) -> None:
    file = tmp_path / "noetlc.toml"
    file.write_text(
        """
        select = ["P1"]
        ignore = ["P103"]
        fail-on = "warning"
        exclude = ["build"]
        baseline = "base.json"
        max-document-bytes = 1000
        tool-kinds = ["our_tool"]
        allow-unknown-kinds = true
        severity = { P214 = "note" }
        [per-file-ignores]
        "tests/**" = ["P5"]
        """
    )
    assert find_settings(()) == Settings(
        file=str(file),
        select=("P1",),
        ignore=("P103",),
        fail_on=FailOn.WARNING,
        exclude=("build",),
        baseline="base.json",
        severity={"P214": Severity.NOTE},
        per_file_ignores={"tests/**": ("P5",)},
        max_document_bytes=1000,
        tool_kinds=("our_tool",),
        allow_unknown_kinds=True,
    )


def test_the_nearest_file_above_everything_linted_is_used(tmp_path: Path) -> None:
    inner = tmp_path / "inner" / "deep"
    inner.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[tool.noetlc]\nselect = ["P1"]\n')
    (inner.parent / "noetlc.toml").write_text('select = ["P2"]\n')
    assert find_settings(("inner/deep",)).select == ("P2",)
    assert find_settings(("inner/deep/*.yaml",)).select == ("P2",)
    assert find_settings(("inner/deep", ".")).select == ("P1",)
    assert find_settings(()).select == ("P1",)


def test_a_pyproject_without_our_table_is_passed_over(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "pyproject.toml").write_text('[project]\nname = "noetlc-user"\n')
    (tmp_path / "noetlc.toml").write_text('select = ["P2"]\n')
    assert find_settings(("inner",)).select == ("P2",)


WRONG = {
    'selct = ["P1"]': ("unknown key `selct`", "Did you mean `select`?"),
    'select = "P1"': ("`select`", "list of strings"),
    "fail-on = true": ("`fail-on`", '"error"'),
    'severity = { P214 = "fatal" }': ("P214", "'fatal'"),
    'severity = "note"': ("`severity`", "table"),
    'per-file-ignores = ["a"]': ("`per-file-ignores`", "table"),
    "max-document-bytes = 0": ("`max-document-bytes`", "greater than zero"),
    "max-document-bytes = true": ("`max-document-bytes`", "whole number"),
    "allow-unknown-kinds = 1": ("`allow-unknown-kinds`", "true or false"),
    "baseline = 1": ("`baseline`", "string"),
    "select = [": ("not TOML",),
}


@pytest.mark.parametrize(("text", "parts"), WRONG.items(), ids=WRONG.keys())
def test_what_is_wrong_is_said_with_file_and_key(tmp_path: Path, text: str, parts: tuple[str, ...]) -> None:
    file = tmp_path / "noetlc.toml"
    file.write_text(text)
    with pytest.raises(CannotRun) as caught:
        find_settings(())
    for part in (str(file), *parts):
        assert part in str(caught.value)


def test_a_named_file_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match="cannot read the configuration file"):
        load_settings(tmp_path / "nowhere.toml")
