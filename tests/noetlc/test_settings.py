from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from noetlc.finding import Severity
from noetlc.settings import KEYS, DialectChoice, FailOn, Settings, settings_for
from noetlvm.command_line.process import CommandError
from tests.noetlc.lint.rows import row

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    assert settings_for(()).fail_on is FailOn.ERROR


def test_every_key_is_read(tmp_path: Path) -> None:
    file = tmp_path / "noetlc.toml"
    file.write_text(
        """
        select = ["P1"]
        ignore = ["P103"]
        fail-on = "warning"
        min-severity = "warning"
        dialect = "v10"
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
    assert settings_for(()) == Settings(
        file=str(file),
        select=("P1",),
        ignore=("P103",),
        fail_on=FailOn.WARNING,
        min_severity=Severity.WARNING,
        dialect=DialectChoice.V10,
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
    assert settings_for(("inner/deep",)).select == ("P2",)
    assert settings_for(("inner/deep/*.yaml",)).select == ("P2",)
    assert settings_for(("inner/deep", ".")).select == ("P1",)
    assert settings_for(()).select == ("P1",)


def test_a_pyproject_without_our_table_is_passed_over(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "pyproject.toml").write_text('[project]\nname = "noetlc-user"\n')
    (tmp_path / "noetlc.toml").write_text('select = ["P2"]\n')
    assert settings_for(("inner",)).select == ("P2",)


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
    with pytest.raises(CommandError) as caught:
        settings_for(())
    for part in (str(file), *parts):
        assert part in str(caught.value)


def test_a_named_file_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot read the configuration file"):
        settings_for((), str(tmp_path / "nowhere.toml"))


# ---- which findings are reported, and how severe they are

KNOWN = {"P103": "unknown-step", "P201": "unknown-name", "P501": "race"}


def reported(settings: Settings, *codes: str) -> set[str]:
    return {code for code in codes or KNOWN if settings.judge(code, Severity.ERROR, "a.yaml") is not None}


@pytest.mark.parametrize(
    ("select", "ignore", "expected"),
    [
        ((), (), {"P103", "P201", "P501"}),
        (("P1", "P2"), (), {"P103", "P201"}),
        ((), ("P2", "P501"), {"P103"}),
        (("P",), ("P2", "P5"), {"P103"}),
        (("P201",), ("P2",), {"P201"}),
        (("P2",), ("P2",), set()),
    ],
)
def test_the_longest_prefix_decides(select: tuple[str, ...], ignore: tuple[str, ...], expected: set[str]) -> None:
    assert reported(Settings(select=select, ignore=ignore)) == expected


def test_a_file_that_cannot_be_read_is_never_clean_by_selection() -> None:
    assert reported(Settings(select=("P5",)), "P003")
    assert not reported(Settings(select=("P5",), ignore=("P003",)), "P003")


def test_configuration_changes_severities() -> None:
    changed = Settings(severity={"P": Severity.WARNING, "P103": Severity.NOTE}).apply([row("P103"), row("P201")])
    assert [one.severity for one in changed] == [Severity.NOTE, Severity.WARNING]


def test_findings_below_the_lowest_severity_are_not_reported() -> None:
    settings = Settings(min_severity=Severity.WARNING, severity={"P103": Severity.NOTE, "P201": Severity.WARNING})
    assert reported(settings) == {"P201", "P501"}


def test_codes_are_ignored_in_files_that_a_pattern_matches() -> None:
    settings = Settings(per_file_ignores={"tests/**": ("P1",)})
    rows = [row("P103", "tests/x/a.yaml"), row("P201", "tests/x/a.yaml"), row("P103", "src/a.yaml")]
    assert settings.apply(rows) == rows[1:]


@pytest.mark.parametrize(
    ("code", "hint"),
    [("P130", "`P103`"), ("unknown-step", "`P103`"), ("p501", "`P501`"), ("X", "noetlc explain"), ("", "``")],
)
def test_a_code_that_fits_no_rule_stops_the_run(code: str, hint: str) -> None:
    with pytest.raises(CommandError, match=hint):
        Settings(ignore=(code,)).require_known_codes(lambda: KNOWN)


def test_rules_are_not_loaded_to_check_nothing() -> None:
    Settings().require_known_codes(lambda: pytest.fail("rules were loaded"))


def test_every_key_is_a_setting() -> None:
    assert {key.replace("-", "_") for key in KEYS} == set(Settings._fields) - {"file"}
