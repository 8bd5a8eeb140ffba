"""Where a run's words go: the report to standard output or a file, remarks to standard error."""

from __future__ import annotations

import os
import sys
from collections import Counter
from functools import cache

from noetlc import __version__
from noetlc.finding import Severity
from noetlc.lint.atomic import write_atomically
from noetlc.lint.cannot_run import CannotRun
from noetlc.lint.linted import Linted, Run
from noetlc.lint.options import Color, FailOn
from noetlc.report.formats import render
from noetlc.report.report import Report
from noetlc.syntax.span import Source


def say(*remarks: str) -> None:
    """Tell the user something that is not part of the report."""
    for remark in remarks:
        print(f"noetlc: {remark}", file=sys.stderr)


def report_of(linted: Linted, run: Run) -> Report:
    """Make the report that the options ask for."""

    @cache
    def source(path: str) -> Source | None:
        try:
            return Source(path, run.read(path).decode("utf-8", "replace"))
        except OSError:  # deleted since; the finding is still worth telling
            return None

    fail_on = None if run.fail_on is FailOn.NEVER else Severity(run.fail_on.value)
    quiet, color = run.options.quiet, _colored(run)
    return Report(linted.all_rows(), tuple(linted.rows), __version__, fail_on, color, quiet, source)


def print_report(report: Report, run: Run, *, to_stderr: bool) -> None:
    """Render the report and put it where it belongs."""
    text = render(run.options.format, report)
    if run.options.output is not None:
        try:
            write_atomically(run.options.output, text.encode("utf-8", "backslashreplace"))
        except OSError as error:
            raise CannotRun(f"cannot write {run.options.output}: {error.strerror}") from error
        return
    print(text, end="", file=sys.stderr if to_stderr else sys.stdout)


def statistics(report: Report, names: dict[str, str]) -> str:
    """Return how often each rule fired, the most frequent first."""
    counts = Counter(row.code for row in report.rows)
    width = len(str(max(counts.values(), default=0)))
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return "".join(f"{count:>{width}}  {code}  {names.get(code, '')}\n" for code, count in ranked)


def _colored(run: Run) -> bool:
    if run.options.color is not Color.AUTO:
        return run.options.color is Color.ALWAYS
    if run.options.output is not None or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return sys.stdout.isatty()
