"""`--format text`: findings for people, each with its line, related lines and what to do.

Columns are counted in terminal cells, so that the underline stands below its text also after tabs and wide
characters. Nothing from a playbook reaches the terminal uncleaned.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from noetlc.finding import Severity
from noetlc.report.lines import concise_line
from noetlc.report.located_finding import LocatedFinding, Range
from noetlc.report.report import Report, summary
from noetlc.syntax.span import Source
from noetlvm.command_line.printed import cut, visible_line

_TAB = 4
_WIDTH_MAX = 120
"""Cells of a source line that are shown; longer lines are cut around the marked range."""
_WIDTH_MIN = 40
"""Least number of columns that a terminal is assumed to have."""
BLOCKS_MAX = 500
"""More findings than this are printed without their source."""
_LEAD = 30
"""Cells shown before the marked range of a line that is cut."""

_RESET = "\x1b[0m"
_BOLD = "\x1b[1m"
_BLUE = "\x1b[1;34m"
_GREEN = "\x1b[1;32m"
_SEVERITY_COLORS = {Severity.ERROR: "\x1b[1;31m", Severity.WARNING: "\x1b[1;33m", Severity.NOTE: "\x1b[1;36m"}


class _Excerpt(NamedTuple):
    """A shown line and the cells to underline in it."""

    line: str
    start: int
    width: int


def render(report: Report) -> str:
    """Return the findings and a summary line. More findings than anyone reads get one line each."""
    painter = _Painter(report.color)
    if len(report.rows) > BLOCKS_MAX:
        parts = [f"{_cut_text(concise_line(row), report.width)}\n" for row in report.rows]
        parts.append(
            f"\nOne line each, because there are more than {BLOCKS_MAX}; lint fewer files to see the source.\n"
        )
    else:
        parts = [f"{_block(row, report, painter)}\n\n" for row in report.rows]
    if report.paths and not report.quiet:
        parts.append(f"{painter(_BOLD if report.rows else _GREEN, summary(report))}\n")
    return "".join(parts)


class _Painter:
    """Adds colours, or does not."""

    def __init__(self, color: bool) -> None:
        self._color = color

    def __call__(self, style: str, text: str) -> str:
        return f"{style}{text}{_RESET}" if self._color and text else text


def _block(row: LocatedFinding, report: Report, paint: _Painter) -> str:
    severity = _SEVERITY_COLORS[row.severity]
    source = report.source(row.path)
    lines = [row.range.line, *(related.range.line for related in row.related)]
    margin = len(str(max(lines)))
    message = _wrapped(visible_line(row.message), report, len(row.severity) + len(row.code) + 4)
    head = f"{paint(severity, f'{row.severity}[{row.code}]')}{paint(_BOLD, ': ' + message)}"
    where = f"{visible_line(row.path)}:{row.range.line}:{row.range.column}"
    shown = [head, f"{' ' * margin}{paint(_BLUE, '-->')} {where}"]
    if source is not None:
        cells = min(_WIDTH_MAX, _columns(report) - margin - 4)
        shown += _excerpts(row, source, margin, cells, paint)
    bar = f"{' ' * margin} {paint(_BLUE, '=')} "
    for name, text in _remarks(row):
        indent = margin + len(name) + 5
        shown.append(f"{bar}{paint(_BOLD, name)}: {_wrapped(text, report, indent)}")
    return "\n".join(shown)


def _columns(report: Report) -> int:
    return _WIDTH_MAX * 2 if report.width is None else max(_WIDTH_MIN, report.width)


def _wrapped(text: str, report: Report, indent: int) -> str:
    """Break a text into lines of the terminal's width; the first one starts after `indent` cells."""
    if report.width is None or indent + len(text) <= _columns(report):
        return text
    lines = textwrap.wrap(text, _columns(report) - indent, break_on_hyphens=False)
    return f"\n{' ' * indent}".join(lines)


def _cut_text(text: str, width: int | None) -> str:
    return text if width is None else cut(text, max(_WIDTH_MIN, width))


def _remarks(row: LocatedFinding) -> Iterator[tuple[str, str]]:
    if row.help:
        yield "help", visible_line(row.help)
    if row.fix is not None:
        how = "apply with --fix" if row.fix.safe else "look at it with --diff --unsafe-fixes"
        yield "fix", f"{visible_line(row.fix.description)} ({how})"


def _excerpts(row: LocatedFinding, source: Source, margin: int, cells: int, paint: _Painter) -> Iterator[str]:
    empty = paint(_BLUE, f"{' ' * margin} |")
    yield empty
    yield from _marked(source, row.range, "^", "", margin, cells, _SEVERITY_COLORS[row.severity], paint)
    for related in row.related:
        yield empty
        yield from _marked(source, related.range, "-", visible_line(related.message), margin, cells, _BLUE, paint)
    yield empty


def _marked(
    source: Source, range: Range, mark: str, message: str, margin: int, cells: int, style: str, paint: _Painter
) -> Iterator[str]:
    """Yield a source line and the line below it that underlines the range."""
    excerpt = _cut(_cells(source, range), cells)
    yield f"{paint(_BLUE, f'{range.line:>{margin}} |')} {excerpt.line}".rstrip()
    underline = mark * excerpt.width + (f" {message}" if message else "")
    yield f"{paint(_BLUE, f'{chr(32) * margin} |')} {' ' * excerpt.start}{paint(style, underline)}"


def _cells(source: Source, range: Range) -> _Excerpt:
    """Find the cells of a range in its first line."""
    text = source.line_text(range.line) if range.line <= source.line_count else ""
    end = range.end_column - 1 if range.end_line == range.line else len(text)
    window_start = max(0, range.column - 1 - _WIDTH_MAX)  # a line may have megabytes; look at what can be seen
    window_end = range.column + 2 * _WIDTH_MAX
    before, at = _shown(text[window_start : range.column - 1], 0)
    inside, after_inside = _shown(text[range.column - 1 : min(end, window_end)], at)
    rest, _ = _shown(text[min(end, window_end) : window_end], after_inside)
    cut = "…" if window_start else ""
    return _Excerpt(cut + before + inside + rest, at + len(cut), max(1, after_inside - at))


def _shown(text: str, at: int) -> tuple[str, int]:
    """Return text as it is shown when it starts in cell `at`, and the cell after it."""
    if text.isascii() and text.isprintable():
        return text, at + len(text)
    shown = []
    for char in text:
        cell = " " * (_TAB - at % _TAB) if char == "\t" else visible_line(char)
        shown.append(cell)
        at += len(cell) if len(cell) != 1 else _width(cell)
    return "".join(shown), at


def _width(char: str) -> int:
    """Return how many cells a terminal gives the character."""
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


def _cut(excerpt: _Excerpt, cells: int) -> _Excerpt:
    """Shorten a long line to what is around the marked cells."""
    line, start, width = excerpt
    if (len(line) if line.isascii() else sum(map(_width, line))) <= cells:
        return excerpt
    if start + width > cells:
        dropped, line = _without_cells(line, start - min(_LEAD, cells // 3))
        line, start = "…" + line, start - dropped + 1
    head: list[str] = []
    at = 0
    for char in line:
        at += _width(char)
        if at > cells:
            return _Excerpt("".join(head) + "…", start, max(1, min(width, cells - start)))
        head.append(char)
    return _Excerpt(line, start, width)


def _without_cells(line: str, cells: int) -> tuple[int, str]:
    """Drop at least this many cells from the front; return how many were dropped, and the rest."""
    dropped = index = 0
    while dropped < cells:
        dropped += _width(line[index])
        index += 1
    return dropped, line[index:]
