"""Rows for tests, from little text."""

from __future__ import annotations

from noetlc.finding import Severity
from noetlc.report.row import Range, Row


def row(
    code: str = "P103",
    path: str = "a.yaml",
    line: int = 1,
    label: str = "workflow.start",
    severity: Severity = Severity.ERROR,
) -> Row:
    return Row(code, severity, f"message of {code}", "help", path, Range(line, 1, line, 2), (), None, label)
