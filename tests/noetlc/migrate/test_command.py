"""`noetlc migrate`, and `noetlc lint` over files of other dialects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from noetlc.lint.check import check_source
from noetlc.migrate import lines
from noetlc.settings import DialectChoice, Settings
from noetlc.syntax.span import Source

if TYPE_CHECKING:
    from tests.commands import Command

CASES = Path(__file__).parents[3] / "conformance" / "migrate"
OLDER = (CASES / "eval-retry-then-continue.yaml").read_text("utf-8")
CANONICAL = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: x, path: x }
workflow:
  - step: start # as it is
    tool: { kind: noop }
"""
OPEN = CANONICAL.replace("{ kind: noop }", "{ kind: noop }\n    on_no_match: fail\n    next: start")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"a.yaml": CANONICAL, "b.yaml": OLDER, "c.yaml": OPEN, "d.yaml": "not: a playbook\n"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_one_file_is_printed_as_migrated_text(noetlc: Command, folder: Path) -> None:
    answer = noetlc("migrate", "b.yaml")
    assert answer.code == 0
    assert "spec:\n            policy:\n              rules:" in answer.out
    assert "# the server is sometimes busy" in answer.out
    assert (folder / "b.yaml").read_text("utf-8") == OLDER


def test_standard_input_goes_to_standard_output(noetlc: Command) -> None:
    answer = noetlc("migrate", "-", stdin=OLDER.encode())
    assert answer.code == 0
    assert "arcs:" in answer.out


def test_check_fails_where_a_file_would_change(noetlc: Command, folder: Path) -> None:
    assert noetlc("migrate", "a.yaml", "--check").code == 0
    answer = noetlc("migrate", ".", "--check")
    assert answer.code == 1
    assert "3 files: 1 already canonical, 1 migrated, 1 needs a hand" in answer.out
    assert "c.yaml:7: R904" in answer.out
    assert (folder / "b.yaml").read_text("utf-8") == OLDER


def test_diff_shows_only_what_changes(noetlc: Command, folder: Path) -> None:
    answer = noetlc("migrate", "b.yaml", "--diff")
    assert "-          eval:\n" in answer.out
    assert "+          spec:\n" in answer.out
    assert "-kind: Playbook" not in answer.out
    assert (folder / "b.yaml").read_text("utf-8") == OLDER


def test_write_migrates_a_folder_once(noetlc: Command, folder: Path) -> None:
    assert noetlc("migrate", "b.yaml", "--write").code == 0
    once = (folder / "b.yaml").read_text("utf-8")
    assert "eval:" not in once
    assert noetlc("migrate", "a.yaml", "b.yaml", "--check").code == 0
    noetlc("migrate", ".", "--write")
    assert (folder / "b.yaml").read_text("utf-8") == once
    assert (folder / "a.yaml").read_text("utf-8") == CANONICAL
    assert (folder / "d.yaml").read_text("utf-8") == "not: a playbook\n"


def test_the_json_report_lists_files_changes_and_reasons(noetlc: Command, folder: Path) -> None:
    report = noetlc("migrate", ".", "--report", "json").data
    assert report["summary"] == {"already canonical": 1, "migrated": 1, "needs a hand": 1, "not readable": 0}
    by_path = {file["path"]: file for file in report["files"]}
    assert by_path["b.yaml"]["dialect"] == "eval"
    assert {"code": "R401", "line": 12, "effect": "rewritten", "message": "`eval` is `spec.policy.rules`"} in (
        by_path["b.yaml"]["changes"]
    )
    assert by_path["c.yaml"]["needs_a_hand"][0]["code"] == "R904"
    assert by_path["a.yaml"]["changes"] == []


def test_the_markdown_report_has_a_summary_and_what_needs_a_hand(noetlc: Command, folder: Path) -> None:
    answer = noetlc("migrate", ".", "--report", "markdown")
    assert answer.out.startswith("# Migration\n\n3 files: ")
    assert "| `b.yaml` | eval | migrated |" in answer.out
    assert "- line 7, R904: `on_no_match` has no counterpart: write a last arc" in answer.out


def test_explain_says_what_becomes_of_a_line(noetlc: Command, folder: Path) -> None:
    answer = noetlc("migrate", "b.yaml", "--explain", "12")
    assert answer.code == 0
    assert "R401 (rewritten), line 12" in answer.out
    assert "becomes: `spec.policy.rules` with `when`" in answer.out
    assert "nothing on this line changes" in noetlc("migrate", "b.yaml", "--explain", "1").out


@pytest.mark.parametrize(
    "arguments", [("--check", "--write"), (".", "--explain", "1"), ("missing.yaml",), ("-", "a.yaml")]
)
def test_what_cannot_run_exits_with_two(noetlc: Command, folder: Path, arguments: tuple[str, ...]) -> None:
    assert noetlc("migrate", *arguments).code == 2


def test_a_file_that_is_no_yaml_is_reported_and_left(noetlc: Command, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("workflow: [", encoding="utf-8")
    answer = noetlc("migrate", "x.yaml", "--write")
    assert answer.code == 2
    assert "not readable" in answer.out
    assert (tmp_path / "x.yaml").read_text("utf-8") == "workflow: ["


# ---- lint


def codes(answer: str) -> list[tuple[str, int]]:
    return [(row["code"], row["line"]) for row in json.loads(answer)]


FOREIGN = (CASES / "eval-jump-and-break.yaml").read_text("utf-8")


def test_a_file_of_another_dialect_gets_one_finding_that_names_migrate(noetlc: Command, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(FOREIGN, encoding="utf-8")
    (found,) = json.loads(noetlc("lint", "x.yaml", "--format", "json").out)
    assert (found["code"], found["severity"]) == ("P900", "error")
    assert "noetlc migrate" in found["help"]
    assert "`eval` on a task (3)" in found["message"]


def test_v10_can_be_demanded(noetlc: Command, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(FOREIGN, encoding="utf-8")
    found = {code for code, _ in codes(noetlc("lint", "x.yaml", "--dialect", "v10", "--format", "json").out)}
    assert "P900" not in found
    assert {"P901", "P903"} <= found


def test_a_file_is_checked_in_its_own_words(noetlc: Command, tmp_path: Path) -> None:
    broken = FOREIGN.replace("to: page", "to: nowhere")
    line = broken[: broken.index("to: nowhere")].count("\n") + 1
    (tmp_path / "x.yaml").write_text(broken, encoding="utf-8")
    found = codes(noetlc("lint", "x.yaml", "--dialect", "eval", "--format", "json", "--min-severity", "error").out)
    assert found == [("P104", line)]


def test_its_own_words_without_mistakes_have_no_errors(noetlc: Command, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(FOREIGN, encoding="utf-8")
    assert noetlc("lint", "x.yaml", "--dialect", "eval").code == 0


def test_unsafe_fixes_migrate_the_file(noetlc: Command, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(FOREIGN, encoding="utf-8")
    assert noetlc("lint", "x.yaml", "--fix", "--unsafe-fixes").code == 0
    assert noetlc("migrate", "x.yaml", "--check").code == 0


@pytest.mark.parametrize(("case", "code"), [("io-set-iter-in-a-rule", "P020"), ("io-bare-output", "P215")])
def test_single_words_of_another_dialect_are_fixed_by_migration(
    noetlc: Command, tmp_path: Path, case: str, code: str
) -> None:
    (tmp_path / "x.yaml").write_text((CASES / f"{case}.yaml").read_text("utf-8"), encoding="utf-8")
    found = json.loads(noetlc("lint", "x.yaml", "--dialect", "v10", "--format", "json").out)
    assert code in {row["code"] for row in found}
    assert noetlc("lint", "x.yaml", "--dialect", "v10", "--fix", "--unsafe-fixes", "--select", code).code == 0
    assert noetlc("lint", "x.yaml").code == 0


def test_standard_input_that_is_canonical_is_written_as_it_is(noetlc: Command) -> None:
    assert (
        noetlc("migrate", "-", "--write", stdin=CANONICAL.encode()).out == f"{CANONICAL}1 file: 1 already canonical\n"
    )


def test_documents_of_other_kinds_in_a_folder_are_left_alone(noetlc: Command, folder: Path) -> None:
    (folder / "e.yaml").write_text("apiVersion: noetl.io/v2\nkind: Subscription\nvars: { x: 1 }\n", encoding="utf-8")
    (folder / "f.yaml").write_bytes(b"apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: \xff }\n")
    found = json.loads(noetlc("migrate", ".", "--report", "json").out)["files"]
    assert [(each["path"], each["dialect"]) for each in found] == [
        ("a.yaml", "v10"),
        ("b.yaml", "eval"),
        ("c.yaml", "eval"),
        ("f.yaml", None),
    ]


def test_a_line_that_the_file_does_not_have_is_not_explained(noetlc: Command, folder: Path) -> None:
    answer = noetlc("migrate", "b.yaml", "--explain", "9999")
    assert (answer.code, "b.yaml has" in answer.err) == (2, True)


def test_errors_of_a_result_are_reported_once_and_at_the_lines_of_the_file(noetlc: Command, folder: Path) -> None:
    older = OLDER.replace(
        "workflow:\n", "workflow:\n  - step: before\n    on_no_match: fail\n    tool: {kind: noopp}\n"
    )
    (folder / "g.yaml").write_text(older, encoding="utf-8")
    answer = noetlc("migrate", "g.yaml", "--check")
    codes = [line.split()[1] for line in answer.out.splitlines() if line.startswith("  g.yaml:")]
    assert "R904" in codes
    assert "P020" not in codes


def test_one_migration_is_the_fix_of_every_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    task = "{{ kind: noop, eval: [{{ else: {{ do: break }} }}] }}"
    step = "  - step: s{0}\n    tool: [{{ t: " + task + " }}]\n    next: [start]\n"
    text = CANONICAL + "".join(step.format(number) for number in range(30))
    compared: list[int] = []
    line_edits = lines.line_edits
    monkeypatch.setattr(lines, "line_edits", lambda migration: compared.append(1) or line_edits(migration))
    findings = check_source(Source("x.yaml", text), Settings(dialect=DialectChoice.V10)).findings
    assert sum(finding.fix is not None for finding in findings) >= 60
    assert len(compared) <= 1


@pytest.mark.parametrize(
    "name", ["case-several-targets", "older-workbook-task-by-name", "case-negated-result-after-failure"]
)
def test_a_short_file_of_another_dialect_gets_one_finding_too(name: str) -> None:
    text = (CASES / f"{name}.yaml").read_text("utf-8")
    text = text.replace("tool: { kind: workbook", "loop: { collection: [1], element: n }\n    tool: { kind: workbook")
    findings = check_source(Source("x.yaml", text)).findings
    assert [finding.code for finding in findings] == ["P900"]
    assert "noetlc migrate" in findings[0].help
