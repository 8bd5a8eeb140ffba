"""The input of every output format, what the formats share, and the table of formats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from enum import StrEnum
from importlib import import_module
from typing import NamedTuple

from noetlc.finding import Severity
from noetlc.report.located_finding import LocatedFinding
from noetlc.syntax.span import Source
from noetlvm.command_line.printed import counted


def no_source(path: str) -> Source | None:
    """Return no text, for reports without excerpts."""
    return None


class Report(NamedTuple):
    """The findings of a run, in order, and the files they are about."""

    rows: tuple[LocatedFinding, ...]
    paths: tuple[str, ...]
    """Every file that was linted, clean ones included."""
    version: str
    fail_on: Severity | None = Severity.ERROR
    """The lowest severity that fails; None when nothing does."""
    color: bool = False
    quiet: bool = False
    width: int | None = None
    """Columns of the terminal; None if the report does not go to one."""
    source: Callable[[str], Source | None] = no_source
    """Returns the text of a linted file, for excerpts; None if it is gone."""

    def fails(self, row: LocatedFinding) -> bool:
        """Return whether this finding alone makes lint fail."""
        return self.fail_on is not None and row.severity.rank >= self.fail_on.rank


def severity_counts(rows: Iterable[LocatedFinding]) -> str:
    """Return `3 errors, 1 warning`."""
    counts = Counter(row.severity for row in rows)
    return ", ".join(counted(counts[severity], severity.value) for severity in Severity if counts[severity])


def summary(report: Report) -> str:
    """Return the counts of findings and files, and how many findings have a safe fix."""
    if not report.rows:
        return f"No findings in {counted(len(report.paths), 'file')}."
    files = len({row.path for row in report.rows})
    safe = sum(row.fix is not None and row.fix.safe for row in report.rows)
    fixable = f" ({safe} can be fixed with --fix)" if safe else ""
    return f"{severity_counts(report.rows)} in {counted(files, 'file')}{fixable}"


def statistics(report: Report, names: dict[str, str]) -> str:
    """Return how often each rule fired, the most frequent first."""
    counts = Counter(row.code for row in report.rows)
    width = len(str(max(counts.values(), default=0)))
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return "".join(f"{count:>{width}}  {code}  {names.get(code, '')}\n" for code, count in ranked)


class OutputFormat(StrEnum):
    """The output formats, as the user names them."""

    TEXT = "text"
    CONCISE = "concise"
    JSON = "json"
    JSONL = "jsonl"
    SARIF = "sarif"
    GITHUB = "github"
    GITLAB = "gitlab"
    JUNIT = "junit"


FORMATS: dict[OutputFormat, tuple[str, str]] = {
    OutputFormat.TEXT: ("text", "render"),
    OutputFormat.CONCISE: ("lines", "concise"),
    OutputFormat.JSON: ("lines", "json_array"),
    OutputFormat.JSONL: ("lines", "json_lines"),
    OutputFormat.SARIF: ("sarif", "render"),
    OutputFormat.GITHUB: ("lines", "github"),
    OutputFormat.GITLAB: ("lines", "gitlab"),
    OutputFormat.JUNIT: ("junit", "render"),
}
"""Module of `noetlc.report` and function `(report) -> str` of each format; only the one in use is imported."""


def render(format: OutputFormat, report: Report) -> str:
    """Return the report in one format, ending with a line break unless it is empty."""
    module, function = FORMATS[format]
    text: str = getattr(import_module(f"noetlc.report.{module}"), function)(report)
    return text
