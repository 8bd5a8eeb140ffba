from __future__ import annotations

import pytest

from noetlc.finding import Severity
from noetlc.lint.cannot_run import CannotRun
from noetlc.lint.options import Options
from noetlc.lint.selection import Selection, require_known, select_for
from noetlc.lint.settings import Settings
from tests.noetlc.lint.rows import row

KNOWN = {"P103": "unknown-step", "P201": "unknown-name", "P501": "race"}


@pytest.mark.parametrize(
    ("select", "ignore", "reported"),
    [
        ((), (), {"P103", "P201", "P501"}),
        (("P1", "P2"), (), {"P103", "P201"}),
        ((), ("P2", "P501"), {"P103"}),
        (("P",), ("P2", "P5"), {"P103"}),
        (("P201",), ("P2",), {"P201"}),
        (("P2",), ("P2",), set()),
    ],
)
def test_the_longest_prefix_decides(select: tuple[str, ...], ignore: tuple[str, ...], reported: set[str]) -> None:
    selection = Selection(select, ignore)
    assert {code for code in KNOWN if selection.wants(code)} == reported


def test_a_file_that_cannot_be_read_is_never_clean_by_selection() -> None:
    assert Selection(select=("P5",)).wants("P003")
    assert not Selection(select=("P5",), ignore=("P003",)).wants("P003")


def test_configuration_changes_severities() -> None:
    changed = Selection(severity={"P": Severity.WARNING, "P103": Severity.NOTE}).apply([row("P103"), row("P201")])
    assert [one.severity for one in changed] == [Severity.NOTE, Severity.WARNING]


def test_codes_are_ignored_in_files_that_a_pattern_matches() -> None:
    selection = Selection(per_file_ignores={"tests/**": ("P1",)}, folder=".")
    rows = [row("P103", "tests/x/a.yaml"), row("P201", "tests/x/a.yaml"), row("P103", "src/a.yaml")]
    assert selection.apply(rows) == rows[1:]


def test_select_on_the_command_line_starts_afresh() -> None:
    settings = Settings(select=("P1",), ignore=("P5",))
    assert select_for(Options(select=("P5",)), settings).wants("P501")
    assert not select_for(Options(ignore=("P103",)), settings).wants("P103")
    assert not select_for(Options(), settings).wants("P501")


@pytest.mark.parametrize(
    ("code", "hint"),
    [("P130", "`P103`"), ("unknown-step", "`P103`"), ("p501", "`P501`"), ("X", "noetlc explain"), ("", "``")],
)
def test_a_code_that_fits_no_rule_stops_the_run(code: str, hint: str) -> None:
    with pytest.raises(CannotRun, match=hint):
        require_known(Selection(ignore=(code,)), lambda: KNOWN)


def test_rules_are_not_loaded_to_check_nothing() -> None:
    require_known(Selection(), lambda: pytest.fail("rules were loaded"))
