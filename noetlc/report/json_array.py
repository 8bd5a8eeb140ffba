"""`--format json`: one array of all findings."""

from __future__ import annotations

import json

from noetlc.report.report import Report


def render(report: Report) -> str:
    """Return the findings as an indented array; plain ASCII, so that it survives any encoding."""
    return json.dumps([row.to_json() for row in report.rows], indent=2) + "\n"
