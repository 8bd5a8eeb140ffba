from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest

from noetlc.finding import Severity
from noetlc.lint.check import check_bytes
from noetlc.report.located_finding import LocatedFinding
from noetlc.report.report import FORMATS, OutputFormat, render
from noetlc.rules.rule import Rule
from tests.noetlc.report.sample import CLEAN, REPORT, ROWS

if TYPE_CHECKING:
    from collections.abc import Callable

ENDINGS = {
    OutputFormat.TEXT: "txt",
    OutputFormat.CONCISE: "concise.txt",
    OutputFormat.JSON: "json",
    OutputFormat.JSONL: "jsonl",
    OutputFormat.SARIF: "sarif",
    OutputFormat.GITHUB: "github.txt",
    OutputFormat.GITLAB: "gitlab.json",
    OutputFormat.JUNIT: "xml",
}


class Misnamed(Rule):
    severity = Severity.ERROR
    summary = "A name leads nowhere."
    why = "The run stops at night."
    example = """
    - - step: fetchh
    + - step: fetch
    """


Misnamed.code, Misnamed.name = "P003", "misnamed"


@pytest.fixture(autouse=True)
def one_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """Describe one rule, so that the pages of real rules can change without these tests."""
    monkeypatch.setattr("noetlc.report.sarif.all_rules", lambda: (Misnamed,))


def test_every_format_has_a_renderer() -> None:
    assert set(FORMATS) == set(OutputFormat)


@pytest.mark.parametrize("format", OutputFormat)
def test_the_report_is_as_reviewed(format: OutputFormat, golden: Callable[[str, str], None]) -> None:
    golden(f"findings.{ENDINGS[format]}", render(format, REPORT))


@pytest.mark.parametrize("format", OutputFormat)
def test_a_report_without_findings_is_as_reviewed(format: OutputFormat, golden: Callable[[str, str], None]) -> None:
    golden(f"clean.{ENDINGS[format]}", render(format, CLEAN))


def test_the_report_in_colour_is_as_reviewed(golden: Callable[[str, str], None]) -> None:
    golden("findings.color.txt", render(OutputFormat.TEXT, REPORT._replace(color=True)))


@pytest.mark.parametrize("format", [OutputFormat.TEXT, OutputFormat.CONCISE, OutputFormat.GITHUB])
def test_no_escape_sequence_of_a_playbook_reaches_a_terminal(format: OutputFormat) -> None:
    assert "\x1b" not in render(format, REPORT)


@pytest.mark.parametrize("format", [OutputFormat.JSON, OutputFormat.JSONL, OutputFormat.SARIF, OutputFormat.GITLAB])
def test_json_is_plain_ascii(format: OutputFormat) -> None:
    assert render(format, REPORT).isascii()


def test_a_finding_in_json_has_exactly_the_promised_keys() -> None:
    first, *_ = json.loads(render(OutputFormat.JSON, REPORT))
    place = {"line", "column", "end_line", "end_column"}
    assert set(first) == {"code", "severity", "message", "help", "path", "related", "fix", "label", *place}
    assert set(first["related"][0]) == {"message", "path", *place}
    assert set(first["fix"]) == {"description", "safe", "edits"}
    assert set(first["fix"]["edits"][0]) == {"text", *place}


def test_json_and_jsonl_say_the_same() -> None:
    lines = render(OutputFormat.JSONL, REPORT).splitlines()
    assert [json.loads(line) for line in lines] == json.loads(render(OutputFormat.JSON, REPORT))


def test_a_row_survives_json() -> None:
    for row in ROWS:
        assert LocatedFinding.from_json(json.loads(json.dumps(row.to_json())), row.path) == row


def sarif_run() -> dict[str, Any]:
    log = json.loads(render(OutputFormat.SARIF, REPORT))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert isinstance(run, dict)
    return run


def test_sarif_describes_the_rules_that_fired() -> None:
    run = sarif_run()
    (rule,) = run["tool"]["driver"]["rules"]
    assert (rule["id"], rule["name"], rule["defaultConfiguration"]["level"]) == ("P003", "misnamed", "error")
    assert rule["shortDescription"]["text"] == Misnamed.summary
    assert "    - step: fetch\n" in rule["help"]["text"]
    assert [result.get("ruleIndex") for result in run["results"]] == [0, None, None, None]


def test_sarif_results_have_places_fixes_and_distinct_fingerprints() -> None:
    run = sarif_run()
    assert run["columnKind"] == "unicodeCodePoints"
    results = run["results"]
    for result, row in zip(results, ROWS, strict=True):
        (location,) = result["locations"]
        region = location["physicalLocation"]["region"]
        assert (region["startLine"], region["endColumn"]) == (row.range.line, row.range.end_column)
        assert " " not in location["physicalLocation"]["artifactLocation"]["uri"]
        assert ("fixes" in result) == (row.fix is not None)
        assert ("relatedLocations" in result) == bool(row.related)
    prints = [result["partialFingerprints"]["noetlcLabelPath/v1"] for result in results]
    assert len(set(prints)) == len(prints)


def test_fingerprints_stay_when_lines_move() -> None:
    moved = REPORT._replace(rows=tuple(row._replace(range=row.range._replace(line=row.range.line + 9)) for row in ROWS))
    before, after = (json.loads(render(OutputFormat.GITLAB, report)) for report in (REPORT, moved))
    assert [issue["fingerprint"] for issue in before] == [issue["fingerprint"] for issue in after]


@pytest.mark.parametrize(
    ("fail_on", "failures"), [(Severity.ERROR, 1), (Severity.WARNING, 2), (Severity.NOTE, 4), (None, 0)]
)
def test_junit_is_red_exactly_when_lint_fails(fail_on: Severity | None, failures: int) -> None:
    root = ElementTree.fromstring(render(OutputFormat.JUNIT, REPORT._replace(fail_on=fail_on)))
    assert root.get("failures") == str(failures)
    assert len(root.findall(".//failure")) == failures
    assert root.get("tests") == str(len(root.findall(".//testcase"))) == "5"


def test_junit_survives_what_xml_cannot_hold() -> None:
    odd = ROWS[0]._replace(message="\x00\x1b\ud800\ufffe ]]> & <")
    text = render(OutputFormat.JUNIT, REPORT._replace(rows=(odd,)))
    assert ElementTree.fromstring(text.encode()).find(".//failure") is not None


def test_github_escapes_what_would_end_a_property() -> None:
    first = render(OutputFormat.GITHUB, REPORT).splitlines()[0]
    assert "file=flows/etl%2C nightly.yaml," in first
    assert "100%25 wrong%0Asecond line" in first


def test_edits_that_several_findings_share_are_written_once() -> None:
    """A file of an older dialect has thousands of findings with one fix: the migration of the whole file."""
    steps = [f"  - step: s{number}\n    tool: {{pipe: [{{kind: noop}}]}}\n" for number in range(30)]
    head = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: a, path: a}\nworkflow:\n"
    rows = [row for row in check_bytes("old.yaml", (head + "".join(steps)).encode()).rows() if row.fix]
    first, *others = [row.fix.edits for row in rows if row.fix]
    assert len(rows) >= 30
    assert first
    assert not any(others)
    sarif = json.loads(render(OutputFormat.SARIF, REPORT._replace(rows=tuple(rows))))
    results = sarif["runs"][0]["results"]
    assert ["fixes" in result for result in results] == [True] + [False] * (len(rows) - 1)
