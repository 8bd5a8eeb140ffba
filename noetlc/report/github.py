"""`--format github`: workflow commands, which GitHub Actions shows beside the lines of a pull request."""

from __future__ import annotations

from noetlc.finding import Severity
from noetlc.report.report import Report, visible
from noetlc.report.row import Row

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
_IN_MESSAGE = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_PROPERTY = _IN_MESSAGE | str.maketrans({":": "%3A", ",": "%2C"})


def render(report: Report) -> str:
    """Return one workflow command for each finding."""
    return "".join(f"{_command(row)}\n" for row in report.rows)


def _command(row: Row) -> str:
    properties = {
        "file": row.path.replace("\\", "/"),
        "line": row.place.line,
        "endLine": row.place.end_line,
        "title": f"noetlc {row.code}",
    }
    if row.place.line == row.place.end_line:  # GitHub ignores columns that end on another line
        properties |= {"col": row.place.column, "endColumn": row.place.end_column}
    written = ",".join(f"{name}={str(value).translate(_IN_PROPERTY)}" for name, value in properties.items())
    lines = [*row.message.split("\n"), *row.help.split("\n")] if row.help else row.message.split("\n")
    message = "\n".join(visible(line) for line in lines)
    return f"::{_COMMANDS[row.severity]} {written}::{message.translate(_IN_MESSAGE)}"
