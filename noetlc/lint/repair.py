"""Fixes files: works out what each would become, writes it, or shows the difference.

Only findings that the run reports are fixed; what is ignored or in the baseline stays as it is.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from noetlc.finding import Finding
from noetlc.lint.atomic import write_atomically
from noetlc.lint.examine import check, rows_of
from noetlc.lint.fixing import fix_text
from noetlc.lint.linted import Linted, Reported, Run
from noetlc.report.row import Row
from noetlvm.record import Record

_LINES = re.compile(r"[^\n]*\n|[^\n]+")


class Repair(Record):
    """What fixing makes of one file."""

    path: str
    before: str
    after: str
    count: int
    problem: str | None = None


def repairs(linted: Linted, run: Run, reported: Reported) -> Iterator[Repair]:
    """Work out the fixes of each file that has any."""
    for path, rows in linted.rows.items():
        if any(row.fix is not None and (row.fix.safe or run.options.unsafe_fixes) for row in rows):
            yield _repair(path, run, reported)


def write(repair: Repair, linted: Linted, run: Run, reported: Reported) -> Linted:
    """Save a fixed file and return what is left to report."""
    problem = repair.problem
    rows = linted.rows
    if repair.after != repair.before:
        data = repair.after.encode("utf-8")
        try:
            if run.stdin is None:
                write_atomically(repair.path, data)
            rows = rows | {repair.path: tuple(reported(rows_of(check(repair.path, data, run.terms))))}
        except OSError as error:
            problem = f"{repair.path}: cannot be written: {error.strerror}"
    return linted._replace(rows=rows, problems=(*linted.problems, *([problem] if problem else [])))


def difference(repair: Repair) -> str:
    """Return a unified diff."""
    lines = difflib.unified_diff(
        _LINES.findall(repair.before), _LINES.findall(repair.after), repair.path, f"{repair.path} (fixed)"
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _repair(path: str, run: Run, reported: Reported) -> Repair:
    try:
        text = run.read(path).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:  # it was readable a moment ago: somebody is changing it
        return Repair(path, "", "", 0, f"{path}: not fixed: {error}")

    def findings(text: str) -> list[Finding]:
        checked = check(path, text.encode("utf-8"), run.terms)
        rows = rows_of(checked)
        wanted = {_identity(row) for row in reported(rows)}
        return [finding for finding, row in zip(checked.findings, rows, strict=True) if _identity(row) in wanted]

    fixed = fix_text(text, findings, unsafe=run.options.unsafe_fixes)
    problem = f"{path}: {fixed.problem}" if fixed.problem else None
    return Repair(path, text, fixed.text, fixed.count, problem)


def _identity(row: Row) -> tuple[object, ...]:
    return row.code, row.place, row.message
