from __future__ import annotations

import pytest

from noetlc.finding import Severity
from noetlc.lint.cannot_run import CannotRun
from noetlc.lint.options import Options
from noetlc.lint.selection import Selection, require_known, select_for
from noetlc.lint.settings import Settings
from tests.noetlc.lint.rows import row

KNOWN = {"E103": "unknown-step", "E201": "unknown-name", "W501": "race"}


@pytest.mark.parametrize(
    ("select", "ignore", "reported"),
    [
        ((), (), {"E103", "E201", "W501"}),
        (("E",), (), {"E103", "E201"}),
        ((), ("E2", "W501"), {"E103"}),
        (("E",), ("E2",), {"E103"}),
        (("E201",), ("E2",), {"E201"}),
        (("E2",), ("E2",), set()),
    ],
)
def test_the_longest_prefix_decides(select: tuple[str, ...], ignore: tuple[str, ...], reported: set[str]) -> None:
    selection = Selection(select, ignore)
    assert {code for code in KNOWN if selection.wants(code)} == reported


def test_a_file_that_cannot_be_read_is_never_clean_by_selection() -> None:
    assert Selection(select=("W5",)).wants("E003")
    assert not Selection(select=("W5",), ignore=("E003",)).wants("E003")


def test_configuration_changes_severities() -> None:
    changed = Selection(severity={"E": Severity.WARNING, "E103": Severity.NOTE}).apply([row("E103"), row("E201")])
    assert [one.severity for one in changed] == [Severity.NOTE, Severity.WARNING]


def test_codes_are_ignored_in_files_that_a_pattern_matches() -> None:
    selection = Selection(per_file_ignores={"tests/**": ("E1",)}, folder=".")
    rows = [row("E103", "tests/x/a.yaml"), row("E201", "tests/x/a.yaml"), row("E103", "src/a.yaml")]
    assert selection.apply(rows) == rows[1:]


def test_select_on_the_command_line_starts_afresh() -> None:
    settings = Settings(select=("E1",), ignore=("W5",))
    assert select_for(Options(select=("W5",)), settings).wants("W501")
    assert not select_for(Options(ignore=("E103",)), settings).wants("E103")
    assert not select_for(Options(), settings).wants("W501")


@pytest.mark.parametrize(
    ("code", "hint"),
    [("E130", "`E103`"), ("unknown-step", "`E103`"), ("w501", "`W501`"), ("X", "noetlc explain"), ("", "``")],
)
def test_a_code_that_fits_no_rule_stops_the_run(code: str, hint: str) -> None:
    with pytest.raises(CannotRun, match=hint):
        require_known(Selection(ignore=(code,)), lambda: KNOWN)


def test_rules_are_not_loaded_to_check_nothing() -> None:
    require_known(Selection(), lambda: pytest.fail("rules were loaded"))
