"""`--format concise`: one line a finding, as compilers print them, for editors and grep."""

from __future__ import annotations

from noetlc.report.report import Report, visible
from noetlc.report.row import Row


def render(report: Report) -> str:
    """Return `path:line:column: severity CODE message` for each finding."""
    return "".join(f"{_line(row)}\n" for row in report.rows)


def _line(row: Row) -> str:
    where = f"{visible(row.path)}:{row.place.line}:{row.place.column}"
    return f"{where}: {row.severity} {row.code} {visible(row.message)}"
