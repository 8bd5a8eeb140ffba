"""Formats in JSON: `json` (one array), `jsonl` (one finding a line), `gitlab` (a Code Quality report). Plain ASCII."""

from __future__ import annotations

import json
from typing import Any

from noetlc.finding import Severity
from noetlc.report.located_finding import LocatedFinding, fingerprint, with_ordinals
from noetlc.report.report import Report

_GITLAB_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.NOTE: "info"}


def array(report: Report) -> str:
    """Return the findings as one indented array."""
    return json.dumps([row.to_json() for row in report.rows], indent=2) + "\n"


def lines(report: Report) -> str:
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
