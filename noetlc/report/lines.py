"""Formats of one line a finding (`concise`, `github`) and formats in JSON (`json`, `jsonl`, `gitlab`)."""

from __future__ import annotations

import json
from typing import Any

from noetlc.finding import Severity
from noetlc.report.located_finding import LocatedFinding, fingerprint, with_ordinals
from noetlc.report.report import Report
from noetlvm.command_line.printed import visible_line

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
_IN_MESSAGE = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_PROPERTY = _IN_MESSAGE | str.maketrans({":": "%3A", ",": "%2C"})


def concise(report: Report) -> str:
    """Return `path:line:column: severity CODE message` for each finding, for editors and grep."""
    return "".join(f"{concise_line(row)}\n" for row in report.rows)


def concise_line(row: LocatedFinding) -> str:
    where = f"{visible_line(row.path)}:{row.range.line}:{row.range.column}"
    return f"{where}: {row.severity} {row.code} {visible_line(row.message)}"


def github(report: Report) -> str:
    """Return one workflow command a finding; GitHub shows them beside the lines of a pull request."""
    return "".join(f"{_command(row)}\n" for row in report.rows)


def _command(row: LocatedFinding) -> str:
    properties = {
        "file": row.path.replace("\\", "/"),
        "line": row.range.line,
        "endLine": row.range.end_line,
        "title": f"noetlc {row.code}",
    }
    if row.range.line == row.range.end_line:  # GitHub ignores columns that end on another line
        properties |= {"col": row.range.column, "endColumn": row.range.end_column}
    written = ",".join(f"{name}={str(value).translate(_IN_PROPERTY)}" for name, value in properties.items())
    lines = [*row.message.split("\n"), *row.help.split("\n")] if row.help else row.message.split("\n")
    message = "\n".join(visible_line(line) for line in lines)
    return f"::{_COMMANDS[row.severity]} {written}::{message.translate(_IN_MESSAGE)}"


_GITLAB_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.NOTE: "info"}


def json_array(report: Report) -> str:
    return json.dumps([row.to_json() for row in report.rows], indent=2) + "\n"


def json_lines(report: Report) -> str:
    """Return one JSON object a line, for readers of streams."""
    return "".join(f"{json.dumps(row.to_json())}\n" for row in report.rows)


def gitlab(report: Report) -> str:
    """Return the issues that GitLab shows in a merge request. Their fingerprints do not depend on lines."""
    return json.dumps([_issue(row, ordinal) for row, ordinal in with_ordinals(report.rows)], indent=2) + "\n"


def _issue(row: LocatedFinding, ordinal: int) -> dict[str, Any]:
    return {
        "description": f"{row.code}: {row.message}",
        "check_name": row.code,
        "fingerprint": fingerprint(row, ordinal),
        "severity": _GITLAB_SEVERITIES[row.severity],
        "location": {
            "path": row.path.replace("\\", "/").removeprefix("./"),
            "lines": {"begin": row.range.line, "end": row.range.end_line},
        },
    }
