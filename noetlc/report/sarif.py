"""`--format sarif`: SARIF 2.1.0, for code scanning services and editors."""

from __future__ import annotations

import json
import os
from typing import Any
from urllib.parse import quote

from noetlc.report.located_finding import FixRow, LocatedFinding, Range, fingerprint, with_ordinals
from noetlc.report.pages import indented
from noetlc.report.report import Report
from noetlc.rules.catalogue import all_rules
from noetlc.rules.rule import Rule

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def render(report: Report) -> str:
    """Return the log with one run. The rules that fired are described in it."""
    fired = {row.code for row in report.rows}
    rules = [_rule(rule) for rule in all_rules() if rule.code in fired]
    indexes = {rule["id"]: index for index, rule in enumerate(rules)}
    run = {
        "tool": {"driver": {"name": "noetlc", "version": report.version, "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(row, ordinal, indexes) for row, ordinal in with_ordinals(report.rows)],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(rule: type[Rule]) -> dict[str, Any]:
    page = f"{rule.why}\n\nInstead of\n\n{indented(rule.bad)}\n\nwrite\n\n{indented(rule.good)}\n"
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.why},
        "help": {"text": page, "markdown": page},
        "defaultConfiguration": {"level": rule.severity.value},
    }


def _result(row: LocatedFinding, ordinal: int, indexes: dict[str, int]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": row.code,
        "level": row.severity.value,
        "message": {"text": f"{row.message}\n{row.help}" if row.help else row.message},
        "locations": [{**_location(row.path, row.range), "logicalLocations": [{"fullyQualifiedName": row.label}]}],
        "partialFingerprints": {"noetlcLabelPath/v1": fingerprint(row, ordinal)},
    }
    if row.code in indexes:
        result["ruleIndex"] = indexes[row.code]
    if row.related:
        result["relatedLocations"] = [
            {"id": number, "message": {"text": related.message}, **_location(row.path, related.range)}
            for number, related in enumerate(row.related)
        ]
    if row.fix is not None and row.fix.edits:
        result["fixes"] = [_fix(row.path, row.fix)]
    return result


def _fix(path: str, fix: FixRow) -> dict[str, Any]:
    replacements = [
        {"deletedRegion": _region(edit.range), "insertedContent": {"text": edit.text}} for edit in fix.edits
    ]
    change = {"artifactLocation": _artifact(path), "replacements": replacements}
    return {"description": {"text": fix.description}, "artifactChanges": [change]}


def _location(path: str, range: Range) -> dict[str, Any]:
    return {"physicalLocation": {"artifactLocation": _artifact(path), "region": _region(range)}}


def _artifact(path: str) -> dict[str, str]:
    """A relative path is a relative reference; the reader resolves it in its checkout."""
    uri = quote(path.replace(os.sep, "/").encode("utf-8", "surrogateescape"))
    return {"uri": f"file://{uri}" if uri.startswith("/") else uri}


def _region(range: Range) -> dict[str, int]:
    return {
        "startLine": range.line,
        "startColumn": range.column,
        "endLine": range.end_line,
        "endColumn": range.end_column,
    }
