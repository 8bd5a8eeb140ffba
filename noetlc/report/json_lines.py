"""`--format jsonl`: one finding a line, for tools that read streams."""

from __future__ import annotations

import json

from noetlc.report.report import Report


def render(report: Report) -> str:
    """Return one JSON object a line."""
    return "".join(f"{json.dumps(row.to_json())}\n" for row in report.rows)
