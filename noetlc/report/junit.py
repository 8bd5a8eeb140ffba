"""`--format junit`: XML for CI systems that show tests. A file is a suite, a finding a test case.

Findings below the failing severity are passed cases with their text as output, so that the report is red exactly
when the exit code is.
"""

from __future__ import annotations

import re
from itertools import groupby
from xml.etree import ElementTree

from noetlc.report.located_finding import LocatedFinding
from noetlc.report.report import Report

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report) -> str:
    by_path = {path: list(rows) for path, rows in groupby(report.rows, key=lambda row: row.path)}
    suites = ElementTree.Element("testsuites", name="noetlc lint", tests="0", failures=_failures(report.rows, report))
    for path in dict.fromkeys((*report.paths, *by_path)):
        rows = by_path.get(path, [])
        suite = ElementTree.SubElement(
            suites, "testsuite", name=cleaned(path), tests="0", failures=_failures(rows, report)
        )
        for row in rows:
            _add_case(suite, row, report)
        if not rows:
            ElementTree.SubElement(suite, "testcase", name="lint", classname=cleaned(path))
        suite.set("tests", str(len(suite)))
    suites.set("tests", str(sum(len(suite) for suite in suites)))
    ElementTree.indent(suites)
    data: bytes = ElementTree.tostring(suites, encoding="UTF-8", xml_declaration=True)
    return data.decode("utf-8") + "\n"


def _failures(rows: tuple[LocatedFinding, ...] | list[LocatedFinding], report: Report) -> str:
    return str(sum(report.fails(row) for row in rows))


def _add_case(suite: ElementTree.Element, row: LocatedFinding, report: Report) -> None:
    where = f"{row.range.line}:{row.range.column}"
    case = ElementTree.SubElement(
        suite, "testcase", name=cleaned(f"{row.code} at {where}"), classname=cleaned(row.path)
    )
    if report.fails(row):
        shown = ElementTree.SubElement(case, "failure", type=row.severity.value, message=cleaned(row.message))
    else:
        shown = ElementTree.SubElement(case, "system-out")
    shown.text = cleaned(f"{row.path}:{where}: {row.severity} {row.code} {row.message}\n{row.help}")


def cleaned(text: str) -> str:
    """Return a text without characters that neither XML nor UTF-8 files can hold."""
    return _NOT_XML.sub("\ufffd", text)
