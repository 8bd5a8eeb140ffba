from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.commands import Answer

    Noetlc = Callable[..., Answer]
    Write = Callable[[str, str], Path]

pytestmark = pytest.mark.usefixtures("words")


def codes(answer: Answer) -> list[str]:
    return [line.split()[2] for line in answer.out.splitlines()]


def concise(noetlc: Noetlc, *arguments: str) -> list[str]:
    return codes(noetlc("lint", *arguments, "--format", "concise"))


def test_a_clean_file_is_exit_code_0(noetlc: Noetlc, write: Write) -> None:
    write("a.yaml", "a: fine\n")
    assert noetlc("lint", "a.yaml") == (0, "No findings in 1 file.\n", "")


def test_an_error_is_exit_code_1_with_an_excerpt(noetlc: Noetlc, write: Write) -> None:
    write("a.yaml", "a: bad\n")
    answer = noetlc("lint", "a.yaml")
    assert answer.code == 1
    assert "error[P007]: `bad` is no word\n --> a.yaml:2:4\n  |\n2 | a: bad\n  |    ^^^\n" in answer.out
    assert "1 error in 1 file (1 can be fixed with --fix)" in answer.out


def test_without_paths_this_folder_is_linted(noetlc: Noetlc, write: Write, tmp_path: Path) -> None:
    write("deep/a.yaml", "a: bad\n")
    (tmp_path / "other.yaml").write_text("bad: bad\n")
    assert concise(noetlc) == ["P007"]


def test_a_named_file_is_linted_whatever_it_is(noetlc: Noetlc, tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("bad: 1\n")
    assert concise(noetlc, "other.txt") == ["P007"]


def test_a_folder_without_playbooks_is_clean_and_says_so(noetlc: Noetlc, tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("bad: 1\n")
    assert noetlc("lint") == (0, "", "noetlc: no playbooks in .\n")


def test_a_missing_file_is_exit_code_2_and_the_others_are_linted(noetlc: Noetlc, write: Write) -> None:
    write("a.yaml", "a: fine\n")
    answer = noetlc("lint", "nowhere.yaml", "a.yaml")
    assert answer == (2, "No findings in 1 file.\n", "noetlc: nowhere.yaml: no such file or folder\n")


def test_a_rule_with_a_defect_spoils_only_its_file(noetlc: Noetlc, write: Write) -> None:
    write("a.yaml", "a: crash\n")
    write("b.yaml", "a: bad\n")
    answer = noetlc("lint", ".", "--format", "concise")
    assert answer.code == 2
    assert codes(answer) == ["P007"]
    assert "a.yaml: internal error: ZeroDivisionError" in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.parametrize(
    ("fail_on", "text", "code"),
    [
        ("error", "odd", 0),
        ("warning", "odd", 1),
        ("warning", "ugly", 0),
        ("note", "ugly", 1),
        ("never", "bad", 0),
    ],
)
def test_fail_on_sets_the_failing_severity(noetlc: Noetlc, write: Write, fail_on: str, text: str, code: int) -> None:
    write("a.yaml", f"a: {text}\n")
    assert noetlc("lint", "a.yaml", "--fail-on", fail_on).code == code


def test_codes_are_selected_and_ignored(noetlc: Noetlc, write: Write) -> None:
    write("a.yaml", "a: bad ugly odd\n")
    assert concise(noetlc, "--select", "P007,P011") == ["P007", "P011"]
    assert concise(noetlc, "--select", "P007", "--select", "P012") == ["P007", "P012"]
    assert concise(noetlc, "--ignore", "P01") == ["P007"]


def test_an_unknown_code_is_exit_code_2_with_a_suggestion(noetlc: Noetlc) -> None:
    answer = noetlc("lint", "--select", "duplicate-key")
    assert answer.code == 2
    assert "Did you mean `P007`" in answer.err


def test_an_unknown_option_is_exit_code_2(noetlc: Noetlc) -> None:
    answer = noetlc("lint", "--slect", "P0")
    assert answer.code == 2
    assert "--select" in answer.err


def test_configuration_is_found_and_the_command_line_wins(noetlc: Noetlc, write: Write, tmp_path: Path) -> None:
    write("a.yaml", "a: bad ugly odd\n")
    (tmp_path / "noetlc.toml").write_text(
        'ignore = ["P007"]\nfail-on = "never"\nseverity = { P012 = "error" }\n[per-file-ignores]\n"a.*" = ["P011"]\n'
    )
    answer = noetlc("lint", "--format", "concise")
    assert (answer.code, answer.out) == (0, "a.yaml:2:13: error P012 `odd` is no word\n")
    assert noetlc("lint", "--fail-on", "error").code == 1
    assert concise(noetlc, "--ignore", "P012") == ["P007"]


def test_bad_configuration_is_exit_code_2(noetlc: Noetlc, tmp_path: Path) -> None:
    (tmp_path / "noetlc.toml").write_text('failon = "never"\n')
    answer = noetlc("lint")
    assert answer.code == 2
    assert "unknown key `failon`. Did you mean `fail-on`?" in answer.err


def test_an_ignore_comment_silences_and_an_idle_one_is_reported(noetlc: Noetlc, write: Write) -> None:
    write("a.yaml", "a: bad # noetlc: ignore[P007]\nb: fine # noetlc: ignore[P007]\n")
    assert concise(noetlc) == ["P013"]


def test_standard_input_is_linted_under_a_name(noetlc: Noetlc) -> None:
    answer = noetlc("lint", "-", "--stdin-filename", "x/y.yaml", "--format", "concise", stdin=b"a: bad\n")
    assert answer == (1, "x/y.yaml:1:4: error P007 `bad` is no word\n", "")
    assert noetlc("lint", "-", stdin=b"a: bad\n").out.splitlines()[1] == " --> <stdin>:1:4"


def test_the_report_can_go_to_a_file(noetlc: Noetlc, write: Write, tmp_path: Path) -> None:
    write("a.yaml", "a: bad\n")
    assert noetlc("lint", "a.yaml", "--format", "json", "--output", "report.json", "--quiet") == (1, "", "")
    assert [finding["code"] for finding in json.loads((tmp_path / "report.json").read_text())] == ["P007"]
    answer = noetlc("lint", "a.yaml", "--output", "report.json")
    assert answer.err == "noetlc: 1 error in 1 file (1 can be fixed with --fix); report in report.json\n"
    answer = noetlc("lint", "a.yaml", "--output", "nowhere/report.json")
    assert answer.code == 2
    assert "cannot write nowhere/report.json" in answer.err


def test_statistics_count_rules_beside_the_report(noetlc: Noetlc, write: Write) -> None:
    write("a.yaml", "a: odd bad bad\n")
    answer = noetlc("lint", "--statistics", "--format", "concise")
    assert [line.split()[:2] for line in answer.err.splitlines()] == [["2", "P007"], ["1", "P012"]]


def test_quiet_leaves_only_findings(noetlc: Noetlc, write: Write) -> None:
    assert noetlc("lint", "-q") == (0, "", "")
    write("a.yaml", "a: odd\n")
    assert "in 1 file" not in noetlc("lint", "-q").out


def test_colour_can_be_forced(noetlc: Noetlc, write: Write) -> None:
    write("a.yaml", "a: bad\n")
    assert "\x1b[" in noetlc("lint", "--color", "always").out
    assert "\x1b[" not in noetlc("lint").out


def test_a_baseline_hides_what_it_records_and_nothing_else(noetlc: Noetlc, write: Write) -> None:
    write("a.yaml", "a: bad\n")
    recorded = noetlc("lint", "--baseline", "base.json", "--write-baseline")
    assert recorded == (0, "", "noetlc: recorded 1 finding in base.json\n")
    assert noetlc("lint", "--baseline", "base.json").code == 0
    write("a.yaml", "x: fine\na: bad\nb: bad\n")
    answer = noetlc("lint", "--baseline", "base.json", "--format", "concise")
    assert answer == (1, "a.yaml:4:4: error P007 `bad` is no word\n", "")


def test_a_baseline_wants_a_file(noetlc: Noetlc) -> None:
    assert noetlc("lint", "--write-baseline").code == 2
    assert noetlc("lint", "--baseline", "nowhere.json").code == 2


def test_fix_mends_the_file_and_reports_the_rest(noetlc: Noetlc, write: Write) -> None:
    file = write("a.yaml", "a: bad # bad\r\nb: [ugly,  bad]\r\n")
    answer = noetlc("lint", "--fix", "--format", "concise")
    assert file.read_bytes() == b"kind: Playbook\na: good # good\r\nb: [ugly,  good]\r\n"
    assert (answer.code, codes(answer)) == (0, ["P011"])
    assert answer.err == "noetlc: fixed 3 findings in 1 file\n"
    assert noetlc("lint", "--fix").err == "noetlc: fixed 0 findings in 0 files\n"


def test_unsafe_fixes_are_applied_on_request(noetlc: Noetlc, write: Write) -> None:
    file = write("a.yaml", "a: ugly\n")
    noetlc("lint", "--fix", "--unsafe-fixes")
    assert file.read_text() == "kind: Playbook\na: pretty\n"
    assert noetlc("lint", "--unsafe-fixes").code == 2


def test_ignored_and_accepted_findings_are_not_fixed(noetlc: Noetlc, write: Write) -> None:
    file = write("a.yaml", "a: bad # noetlc: ignore[P007]\nb: bad\n")
    before = file.read_text()
    noetlc("lint", "--fix", "--ignore", "P007")
    noetlc("lint", "--baseline", "base.json", "--write-baseline")
    noetlc("lint", "--fix", "--baseline", "base.json")
    assert file.read_text() == before


def test_fix_keeps_permissions_and_a_byte_order_mark(noetlc: Noetlc, tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(b"\xef\xbb\xbfkind: Playbook\na: bad")
    file.chmod(0o600)
    noetlc("lint", "--fix")
    assert file.read_bytes() == b"\xef\xbb\xbfkind: Playbook\na: good"
    assert file.stat().st_mode & 0o777 == 0o600


def test_diff_shows_the_fixes_and_changes_nothing(noetlc: Noetlc, write: Write) -> None:
    file = write("a.yaml", "a: bad")
    answer = noetlc("lint", "--diff")
    assert answer.code == 1
    assert "-a: bad\n\\ No newline at end of file\n+a: good\n\\ No newline at end of file\n" in answer.out
    assert answer.err == "noetlc: would fix 1 finding in 1 file\n"
    assert file.read_text() == "kind: Playbook\na: bad"


def test_diff_without_fixes_is_exit_code_0(noetlc: Noetlc, write: Write) -> None:
    write("a.yaml", "a: odd\n")
    assert noetlc("lint", "--diff")[:2] == (0, "")


def test_standard_input_is_fixed_to_standard_output(noetlc: Noetlc) -> None:
    answer = noetlc("lint", "-", "--fix", "--format", "concise", stdin=b"a: bad\r\nb: odd\r\n")
    assert answer.out == "a: good\r\nb: odd\r\n"
    assert "warning P012" in answer.err


def test_standard_input_without_fixes_is_passed_on(noetlc: Noetlc) -> None:
    assert noetlc("lint", "-", "--fix", "-q", stdin=b"a: odd\n").out == "a: odd\n"


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_many_files_come_in_order_whichever_process_checks_them(noetlc: Noetlc, write: Write, jobs: str) -> None:
    for number in range(60):
        write(f"{number:02}.yaml", "a: bad\n")
    answer = noetlc("lint", "--jobs", jobs, "--format", "concise")
    assert [line[:7] for line in answer.out.splitlines()] == [f"{number:02}.yaml" for number in range(60)]


def test_a_process_that_dies_is_reported_and_ends_nothing_else(
    noetlc: Noetlc, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        write(f"{number}.yaml", "a: bad\n")
    monkeypatch.setattr("noetlc.lint.pool._lint_chunk", _die)
    answer = noetlc("lint", "--jobs", "2", "--format", "concise")
    assert answer.code == 2
    assert codes(answer) == ["P007"]
    assert answer.err.count("died") == 3


def _die(*_: object) -> None:
    os._exit(1)


def test_an_unchanged_file_is_not_checked_again(noetlc: Noetlc, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write("a.yaml", "a: bad\n")
    first = noetlc("lint")
    monkeypatch.setattr("noetlc.lint.check.run_rules", lambda *_, **__: pytest.fail("checked again"))
    assert noetlc("lint") == first
    assert concise(noetlc, "--ignore", "P007") == []


def test_a_changed_file_and_no_cache_are_checked(noetlc: Noetlc, write: Write) -> None:
    write("a.yaml", "a: bad\n")
    assert concise(noetlc) == ["P007"]
    write("a.yaml", "a: odd\n")
    assert concise(noetlc) == ["P012"]
    assert concise(noetlc, "--no-cache") == ["P012"]


def test_contradictions_are_refused(noetlc: Noetlc) -> None:
    assert noetlc("lint", "-", "a.yaml").code == 2
    assert noetlc("lint", "--fix", "--write-baseline", "--baseline", "b.json").code == 2


def test_plain_paths_and_options_mean_the_same(noetlc: Noetlc, write: Write) -> None:
    write("a.yaml", "a: bad\n")
    assert noetlc("lint", "a.yaml") == noetlc("lint", "a.yaml", "--format", "text")
