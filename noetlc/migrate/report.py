"""The result for each file: as text, JSON or Markdown, with a summary."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any

from noetlc.finding import Finding
from noetlc.migrate.constructs import CONSTRUCTS, Rewrite
from noetlc.migrate.dialect import TITLES
from noetlc.migrate.lines import lines_before
from noetlc.migrate.migration import Migration
from noetlc.syntax.span import Source
from noetlvm.command_line.printed import counted
from noetlvm.record import Record

_NO_SUCH_KEY = "P020"
"""What a construct that has no counterpart is to lint."""


class MigrationStatus(StrEnum):
    """The result for a file."""

    CANONICAL = "already canonical"
    MIGRATED = "migrated"
    HAND = "needs a hand"
    UNREADABLE = "not readable"


class Remark(Record):
    """One reason why a file needs a hand: a construct, or an error that lint still finds."""

    code: str
    line: int
    message: str
    help: str


class FileReport(Record):
    path: str
    migration: Migration
    errors: tuple[Remark, ...] = ()
    """Errors that lint finds in the result."""

    @property
    def remarks(self) -> tuple[Remark, ...]:
        source = Source(self.path, self.migration.before)
        return (*(remark_on(change, source) for change in self.migration.open_changes), *self.errors)

    @property
    def status(self) -> MigrationStatus:
        if self.migration.problem:
            return MigrationStatus.UNREADABLE
        if self.remarks:
            return MigrationStatus.HAND
        return MigrationStatus.MIGRATED if self.migration.changed else MigrationStatus.CANONICAL


def remark_on(change: Rewrite, source: Source) -> Remark:
    line = source.position(change.span.start).line
    return Remark(change.code, line, change.message, change.construct.meaning)


WORSE = Remark(
    "R916", 1, "the result would have more errors than the file, which is left as it is", "correct these first"
)


def remarks_on(migration: Migration, errors: Sequence[Finding], result: Source) -> Iterator[Remark]:
    """Yield the errors of a result at the lines of the original, without those that a change already reports."""
    before = Source(result.path, migration.before)
    reported = {remark_on(change, before).line for change in migration.open_changes}
    lines = lines_before(migration)
    for error in errors:
        line = result.position(error.span.start).line
        old = lines[line - 1] if line <= len(lines) else before.line_count
        if error.code != _NO_SUCH_KEY or old not in reported:
            yield Remark(error.code, old, f"{error.message} (line {line} of the result)", error.help)


def summary(reports: Sequence[FileReport]) -> str:
    """Return one line: how many files of each status."""
    counts = Counter(report.status for report in reports)
    parts = [f"{counts[status]} {status}" for status in MigrationStatus if counts[status]]
    return f"{len(reports)} file{'' if len(reports) == 1 else 's'}: {', '.join(parts) or 'none'}"


def as_text(reports: Sequence[FileReport]) -> str:
    """Return a line for each file that is not canonical, with what needs a hand below it."""
    lines = []
    for report in reports:
        if report.status is MigrationStatus.CANONICAL:
            continue
        dialect = TITLES[report.migration.recognised.dialect]
        detail = report.migration.problem or f"{dialect}, {counted(len(report.migration.changes), 'construct')}"
        lines.append(f"{report.path}: {report.status} ({detail})")
        lines += [
            f"  {report.path}:{each.line}: {each.code} {each.message}\n    {each.help}" for each in report.remarks
        ]
    return "".join(f"{line}\n" for line in (*lines, summary(reports)))


def as_json(reports: Sequence[FileReport]) -> str:
    counts = Counter(report.status for report in reports)
    value = {
        "summary": {status.value: counts[status] for status in MigrationStatus},
        "files": [_file_data(report) for report in reports],
    }
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _file_data(report: FileReport) -> dict[str, Any]:
    source = Source(report.path, report.migration.before)
    changes = [(change, remark_on(change, source)) for change in report.migration.changes]
    return {
        "path": report.path,
        "dialect": None if report.migration.problem else report.migration.recognised.dialect.value,
        "status": report.status.value,
        "changed": report.migration.changed,
        "problem": report.migration.problem or None,
        "changes": [
            {
                "code": remark.code,
                "line": remark.line,
                "effect": change.construct.effect.value,
                "message": remark.message,
            }
            for change, remark in changes
        ],
        "needs_a_hand": [
            {"code": each.code, "line": each.line, "message": each.message, "help": each.help}
            for each in report.remarks
        ],
    }


def as_markdown(reports: Sequence[FileReport]) -> str:
    """Return the report as Markdown: a summary, a table of files, and what needs a hand."""
    lines = [
        "# Migration",
        "",
        summary(reports),
        "",
        "| file | dialect | status | constructs |",
        "| --- | --- | --- | --- |",
    ]
    for report in reports:
        codes = Counter(change.code for change in report.migration.changes)
        listed = ", ".join(f"{code} ({count})" if count > 1 else code for code, count in sorted(codes.items()))
        dialect = report.migration.problem or report.migration.recognised.dialect
        lines.append(f"| `{report.path}` | {dialect} | {report.status} | {listed} |")
    waiting = [report for report in reports if report.remarks]
    if waiting:
        lines += ["", "## Needs a hand"]
    for report in waiting:
        lines += ["", f"### `{report.path}`", ""]
        lines += [f"- line {each.line}, {each.code}: {each.message}. {each.help}" for each in report.remarks]
    return "\n".join(lines) + "\n"


def explain(report: FileReport, line: int) -> str:
    """Return what happens to the constructs on a line of the original, and why."""
    source = Source(report.path, report.migration.before)
    parts = []
    for change in report.migration.changes:
        first, last = (
            source.position(change.span.start).line,
            source.position(max(change.span.start, change.span.end - 1)).line,
        )
        if first <= line <= last:
            row = CONSTRUCTS[change.code]
            parts.append(
                f"{change.code} ({row.effect}), line {first}: {change.message}\n"
                f"  written: {row.written}\n  becomes: {row.becomes}\n  meaning: {row.meaning}\n"
            )
    return "\n".join(parts) or f"{report.path}:{line}: nothing on this line changes\n"
