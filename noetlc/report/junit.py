"""`--format junit`: XML for CI systems that show tests. A file is a suite, a finding a test case.

Findings below the failing severity are passed cases with their text as output, so that the report is red exactly
when the exit code is.
"""

from __future__ import annotations

import re
from itertools import groupby

from noetlc.report.located_finding import LocatedFinding
from noetlc.report.report import Report

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}
)


def render(report: Report) -> str:
    """Return the XML document."""
    by_path = {path: list(rows) for path, rows in groupby(report.rows, key=lambda row: row.path)}
    suites = [_suite(path, by_path.get(path, []), report) for path in dict.fromkeys((*report.paths, *by_path))]
    tests = sum(max(1, len(by_path.get(path, []))) for path in dict.fromkeys((*report.paths, *by_path)))
    failures = sum(report.fails(row) for row in report.rows)
    head = f'<testsuites name="noetlc lint" tests="{tests}" failures="{failures}">'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', head, *suites, "</testsuites>"]
    return "\n".join(lines) + "\n"


def _suite(path: str, rows: list[LocatedFinding], report: Report) -> str:
    name = _escaped(path)
    failures = sum(report.fails(row) for row in rows)
    cases = [_case(row, name, report) for row in rows] or [f'    <testcase name="lint" classname="{name}"/>']
    head = f'  <testsuite name="{name}" tests="{len(cases)}" failures="{failures}">'
    return "\n".join([head, *cases, "  </testsuite>"])


def _case(row: LocatedFinding, name: str, report: Report) -> str:
    place = f"{row.range.line}:{row.range.column}"
    body = _escaped(f"{row.path}:{place}: {row.severity} {row.code} {row.message}\n{row.help}")
    if report.fails(row):
        inner = f'<failure type="{row.severity}" message="{_escaped(row.message)}">{body}</failure>'
    else:
        inner = f"<system-out>{body}</system-out>"
    return f'    <testcase name="{_escaped(row.code)} at {place}" classname="{name}">{inner}</testcase>'


def _escaped(text: str) -> str:
    """Escape for attributes and text; what XML cannot hold at all becomes a replacement character."""
    return _NOT_XML.sub("\ufffd", text).translate(_ESCAPES)
