"""Rows for tests, from little text."""

from __future__ import annotations

from noetlc.finding import Severity
from noetlc.report.located_finding import LocatedFinding, Range


def row(
    code: str = "P103",
    path: str = "a.yaml",
    line: int = 1,
    label: str = "workflow.start",
    severity: Severity = Severity.ERROR,
) -> LocatedFinding:
    return LocatedFinding(code, severity, f"message of {code}", "help", path, Range(line, 1, line, 2), (), None, label)
