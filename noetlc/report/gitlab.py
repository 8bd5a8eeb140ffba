"""`--format gitlab`: a Code Quality report, which GitLab shows in merge requests."""

from __future__ import annotations

import json
from typing import Any

from noetlc.finding import Severity
from noetlc.report.report import Report
from noetlc.report.row import Row, fingerprint, with_ordinals

_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.NOTE: "info"}


def render(report: Report) -> str:
    """Return an array of issues. Their fingerprints stay the same when lines move."""
    return json.dumps([_issue(row, ordinal) for row, ordinal in with_ordinals(report.rows)], indent=2) + "\n"


def _issue(row: Row, ordinal: int) -> dict[str, Any]:
    return {
        "description": f"{row.code}: {row.message}",
        "check_name": row.code,
        "fingerprint": fingerprint(row, ordinal),
        "severity": _SEVERITIES[row.severity],
        "location": {
            "path": row.path.replace("\\", "/").removeprefix("./"),
            "lines": {"begin": row.place.line, "end": row.place.end_line},
        },
    }
