from __future__ import annotations

import pytest

from noetlc.finding import Severity
from noetlc.report.located_finding import LocatedFinding, Range
from noetlc.report.report import Report
from noetlc.report.text import BLOCKS_MAX, render
from noetlc.syntax.span import Source
from tests.noetlc.report.sample import REPORT


def excerpt(line: str, start: int, end: int) -> tuple[str, str]:
    """Return the shown line and its underline for columns `start` to `end` of a one-line text."""
    row = LocatedFinding("P103", Severity.ERROR, "wrong", "", "a.yaml", Range(1, start, 1, end), (), None, "")
    text = render(Report((row,), ("a.yaml",), "1", source=lambda path: Source(path, line)))
    shown, underline = text.splitlines()[3:5]
    return shown.removeprefix("1 | "), underline.removeprefix("  | ")


@pytest.mark.parametrize(
    ("line", "start", "end", "shown", "underline"),
    [
        ("a: bad", 4, 7, "a: bad", "   ^^^"),
        ("東京: bad", 5, 8, "東京: bad", "      ^^^"),
        ("a: 東京", 4, 6, "a: 東京", "   ^^^^"),
        ("\ta: bad", 5, 8, "    a: bad", "       ^^^"),
        ("ab\tc", 4, 5, "ab  c", "    ^"),
        ("e\u0301: bad", 5, 8, "e\u0301: bad", "   ^^^"),
        ("a: \x1b[31m", 4, 5, "a: \\u001b[31m", "   ^^^^^^"),
        ("a:", 3, 3, "a:", "  ^"),
    ],
)
def test_the_underline_stands_below_its_text(line: str, start: int, end: int, shown: str, underline: str) -> None:
    assert excerpt(line, start, end) == (shown, underline)


@pytest.mark.parametrize("at", [1, 60, 119, 500, 4_000_000])
def test_a_very_long_line_is_cut_around_the_place(at: int) -> None:
    line = "x" * (at - 1) + "bad" + "y" * 4_000_000
    shown, underline = excerpt(line, at, at + 3)
    assert len(shown) < 130
    start = underline.index("^")
    assert shown[start : start + 3] == "bad"
    assert underline.strip() == "^^^"


def test_a_place_longer_than_the_window_is_underlined_as_far_as_it_is_shown() -> None:
    shown, underline = excerpt("a: " + "x" * 100_000, 4, 100_004)
    assert len(underline) <= len(shown)


def test_a_file_that_is_gone_still_gets_its_finding() -> None:
    text = render(REPORT._replace(source=lambda path: None))
    assert "no step is called" in text


def test_quiet_has_no_summary() -> None:
    assert "in 1 file" not in render(REPORT._replace(quiet=True))


def test_a_report_on_a_terminal_keeps_to_its_width() -> None:
    long = "word " * 60
    row = LocatedFinding("P103", Severity.ERROR, long, long, "a.yaml", Range(1, 150, 1, 155), (), None, "")
    report = Report((row,), ("a.yaml",), "1", width=72, source=lambda path: Source(path, "x" * 400))
    text = render(report)
    assert max(map(len, text.splitlines())) <= 72
    assert text.count("word") == 120
    assert "^^^^^" in text


def test_many_findings_get_one_line_each() -> None:
    row = LocatedFinding("P103", Severity.ERROR, "wrong", "help", "a.yaml", Range(1, 1, 1, 2), (), None, "")
    lines = render(Report((row,) * (BLOCKS_MAX + 1), ("a.yaml",), "1")).splitlines()
    assert lines[0] == "a.yaml:1:1: error P103 wrong"
    assert len(lines) == BLOCKS_MAX + 4
    assert lines[-1] == f"{BLOCKS_MAX + 1} errors in 1 file"
