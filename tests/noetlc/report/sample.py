"""A report with one of everything, for all formats."""

from __future__ import annotations

from noetlc.finding import Severity
from noetlc.report.located_finding import EditRow, FixRow, LocatedFinding, Range, RelatedRow
from noetlc.report.report import Report
from noetlc.syntax.span import Source

TEXTS = {
    "flows/etl, nightly.yaml": (
        "workflow:\n  - step: start\n    next:\n      arcs:\n        - step: fetchh\n"
        "  - step: fetch\n    título: 東京\tx\n"
    ),
    "flows/clean.yaml": "kind: Playbook\n",
}

_PATH = "flows/etl, nightly.yaml"
ROWS = (
    LocatedFinding(
        "P003",
        Severity.ERROR,
        "no step is called `fetchh`: 100% wrong\nsecond line",
        "Did you mean `fetch`?",
        _PATH,
        Range(5, 17, 5, 23),
        (RelatedRow("a step of a similar name", Range(6, 11, 6, 16)),),
        FixRow("Write `fetch`", True, (EditRow(Range(5, 17, 5, 23), "fetch"),)),
        "workflow.start.next.arcs.1.step",
    ),
    LocatedFinding(
        "P007",
        Severity.WARNING,
        "a wide <value> & a control character \x1b[31m",
        "Write it in one word.",
        _PATH,
        Range(7, 13, 7, 16),
        (),
        FixRow("Shorten it", False, (EditRow(Range(7, 13, 7, 16), "x"),)),
        "workflow.fetch",
    ),
    LocatedFinding(
        "P013", Severity.NOTE, "runs over two lines", "", _PATH, Range(2, 5, 3, 10), (), None, "workflow.start"
    ),
    LocatedFinding(
        "P013", Severity.NOTE, "the same once more", "", _PATH, Range(3, 5, 3, 9), (), None, "workflow.start"
    ),
)


def source(path: str) -> Source | None:
    text = TEXTS.get(path)
    return None if text is None else Source(path, text)


REPORT = Report(ROWS, tuple(TEXTS), "1.2.3", source=source)
CLEAN = REPORT._replace(rows=())
