"""Comments that silence findings: `# noetlc: ignore[P103]` for a line, `# noetlc: ignore-file[P5]` for a file.

A comment at the end of a line is about that line; one alone on its line is about the next. Where a scalar runs over
several lines, in which no comment can stand, the comment on its first line is about all of it. An ignore that
silences nothing is itself a finding.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from noetlc.finding import Edit, Finding, Fix, Severity, current_codes
from noetlc.syntax.span import Source, Span

UNUSED_IGNORE = "P013"
_MARK = "noetlc:"
_COMMENT = re.compile(r"(?<![^\s])#[^\r\n]*")
_FORM = re.compile(r"#\s*noetlc:\s*(?P<verb>ignore-file|ignore)(?:\[(?P<codes>[^\]]*)\](?P<why>.*)|\s*)$")
_NOT_UNDERSTOOD = "this comment is not understood; write `# noetlc: ignore[CODE]` or `# noetlc: ignore-file[CODE]`"
_ANY = ""
"""The prefix of every code: what an ignore without codes lists."""
_SHOWN_MAX = 5
_CODE = re.compile(r"[A-Z][0-9]{1,3}$")
_NOT_LEADING = re.compile(r"^(?!\s*#|\s*$|---|%)", re.MULTILINE)


class Ignore(NamedTuple):
    """One ignore comment: what it silences, and where."""

    span: Span
    codes: tuple[str, ...]
    """Codes or prefixes; none means all."""
    first_line: int
    last_line: int
    whole_file: bool
    removal: Edit
    """Removes the comment, with the space or the line around it."""
    codes_span: Span | None = None
    """Where the list of codes stands."""
    has_reason: bool = False
    """Whether the comment holds text besides the ignore."""
    problem: str | None = None
    """Why the comment silences nothing at all."""


def find_ignores(text: str, scalar_spans: Iterable[Span]) -> list[Ignore]:
    """Return the ignore comments of a file; inside a scalar (given by its span) a `#` starts no comment."""
    if _MARK not in text:
        return []
    source = Source("", text)
    scalars = _Scalars(source, scalar_spans)
    leading = _NOT_LEADING.search(text)
    leading_end = leading.start() if leading else len(text)
    return [_read(comment, source, scalars, leading_end) for comment in _comments(text, scalars) if _MARK in comment[0]]


class Sorted(NamedTuple):
    """The findings of a file after its ignore comments."""

    reported: list[Finding]
    silenced: list[Finding]


def apply_ignores(
    findings: Iterable[Finding], ignores: Sequence[Ignore], source: Source, *, all_rules_ran: bool
) -> Sorted:
    """Separate the findings that a comment silences and, if all rules ran, add one for each unused comment."""
    if not ignores:
        return Sorted(list(findings), [])
    ledger = _Ledger(ignores)
    result = Sorted([], [])
    for finding in findings:
        is_silenced = ledger.silences(finding.code, _line(finding, source))
        (result.silenced if is_silenced else result.reported).append(finding)
    if all_rules_ran:
        unused = [found for ignore in ignores if (found := _unused(ignore, ledger.used[ignore])) is not None]
        result.reported.extend(
            found for found in unused if not ledger.silences_by_name(found.code, _line(found, source))
        )
        result.reported.sort(key=lambda finding: (finding.span, finding.code))
    return result


class _Ledger:
    """Which ignores cover what, and which of their codes were used. Indexed by line and by code."""

    def __init__(self, ignores: Sequence[Ignore]) -> None:
        self.used: dict[Ignore, set[str]] = {ignore: set() for ignore in ignores}
        self._by_line: dict[int, list[Ignore]] = {}
        self._by_code: dict[str, Ignore] = {}
        for ignore in ignores:
            if ignore.problem is None:
                self._enter(ignore)

    def silences(self, code: str, line: int) -> bool:
        """Return whether a finding on this line is silenced, and mark what silences it as used."""
        return self._note(self._covering(code, line))

    def silences_by_name(self, code: str, line: int) -> bool:
        """Like `silences`, but only by ignores that name exactly this code."""
        return self._note([(ignore, match) for ignore, match in self._covering(code, line) if match == code])

    def _enter(self, ignore: Ignore) -> None:
        if ignore.whole_file:
            for code in ignore.codes or (_ANY,):
                self._by_code.setdefault(code, ignore)
            return
        for line in range(ignore.first_line, ignore.last_line + 1):
            self._by_line.setdefault(line, []).append(ignore)

    def _covering(self, code: str, line: int) -> list[tuple[Ignore, str]]:
        prefixes = [code[:length] for length in range(len(code) + 1)]
        found = [(self._by_code[prefix], prefix) for prefix in prefixes if prefix in self._by_code]
        for ignore in self._by_line.get(line, ()):
            found += [(ignore, listed) for listed in ignore.codes or (_ANY,) if code.startswith(listed)]
        return found

    def _note(self, found: list[tuple[Ignore, str]]) -> bool:
        for ignore, listed in found:
            self.used[ignore].add(listed)
        return bool(found)


class _Scalars:
    """The ranges of text in which a `#` starts no comment, in order."""

    def __init__(self, source: Source, spans: Iterable[Span]) -> None:
        self._source = source
        ordered = sorted(spans)
        self._anchors = [span.start for span in ordered]
        self._contents = [_content(source, span) for span in ordered]
        self._starts = [span.start for span in self._contents]

    def around(self, offset: int) -> Span | None:
        index = bisect_right(self._starts, offset) - 1
        return self._contents[index] if index >= 0 and offset < self._contents[index].end else None

    def last_line_from(self, line: int) -> int:
        """Return the last line of the scalars that begin on `line`."""
        start = self._source.line_start(line)
        end = start + len(self._source.line_text(line))
        begun = slice(bisect_left(self._anchors, start), bisect_right(self._anchors, end))
        lasts = (self._source.position(max(span.start, span.end - 1)).line for span in self._contents[begun])
        return max(lasts, default=line)


def _content(source: Source, span: Span) -> Span:
    """Return the part of a scalar that can hold no comment: of a block scalar, all but its header line."""
    if source.text[span.start : span.start + 1] not in ("|", ">"):
        return span
    line = source.position(span.start).line
    start = source.line_start(line + 1) if line < source.line_count else span.end
    return Span(start, start + len(source.text[start : span.end].rstrip()))


def _comments(text: str, scalars: _Scalars) -> Iterator[re.Match[str]]:
    position = 0
    while (comment := _COMMENT.search(text, position)) is not None:
        scalar = scalars.around(comment.start())
        if scalar is None:
            yield comment
        position = comment.end() if scalar is None else scalar.end


def _read(comment: re.Match[str], source: Source, scalars: _Scalars, leading_end: int) -> Ignore:
    span = Span(*comment.span())
    line = source.position(span.start).line
    before = source.text[source.line_start(line) : span.start]
    alone = not before.strip()
    first = line + 1 if alone and line < source.line_count else line
    form = _FORM.match(comment[0].rstrip())
    if form is None:
        return Ignore(
            span, (), first, first, False, _removal(source, span, alone), has_reason=True, problem=_NOT_UNDERSTOOD
        )
    codes, problem = _read_codes(form["codes"])
    whole_file = form["verb"] == "ignore-file"
    if whole_file and span.start >= leading_end:
        problem = "`ignore-file` works only in the comment at the top of the file"
    codes_span = Span(span.start + form.start("codes"), span.start + form.end("codes"))
    has_reason = bool(form["why"] and form["why"].strip())
    last = scalars.last_line_from(first)
    removal = _removal(source, span, alone)
    return Ignore(span, codes, first, last, whole_file, removal, codes_span, has_reason, problem)


def _removal(source: Source, span: Span, alone: bool) -> Edit:
    line = source.position(span.start).line
    start = source.line_start(line)
    if not alone:
        return Edit(Span(start + len(source.text[start : span.start].rstrip()), span.end), "")
    end = source.line_start(line + 1) if line < source.line_count else span.end
    return Edit(Span(start, end), "")


def _read_codes(listed: str | None) -> tuple[tuple[str, ...], str | None]:
    if listed is None:
        return (), None
    codes = tuple(dict.fromkeys(code for one in listed.split(",") for code in current_codes(one.strip())))
    wrong = next((code for code in codes if not _CODE.match(code)), None)
    if wrong is None:
        return codes, None
    return codes, f"`{wrong}` is not a rule code; write codes as in `ignore[P103,P501]`"


def _line(finding: Finding, source: Source) -> int:
    return source.position(finding.span.start).line


def _unused(ignore: Ignore, used: set[str]) -> Finding | None:
    if ignore.problem is not None:
        return Finding(UNUSED_IGNORE, Severity.NOTE, ignore.span, ignore.problem, "Correct the comment or remove it.")
    idle = [code for code in ignore.codes if code not in used and code != UNUSED_IGNORE]
    if not idle and (ignore.codes or used):
        return None
    shown = idle[:_SHOWN_MAX]
    more = f" and {len(idle) - len(shown)} more" if len(idle) > len(shown) else ""
    what = f": there is no {' and no '.join(f'`{code}`' for code in shown)}{more} here" if idle else ""
    left = [code for code in ignore.codes if code in used or code == UNUSED_IGNORE]
    whole = f"Remove {', '.join(shown)}{more}" if left else "Remove the comment"
    remedy = f"{whole}: what it was for is gone, or stands on another line."
    message = f"this ignore silences nothing{what}"
    return Finding(UNUSED_IGNORE, Severity.NOTE, ignore.span, message, remedy, fix=_shortening(ignore, left))


def _shortening(ignore: Ignore, left: list[str]) -> Fix | None:
    """Remove the unused codes. A comment that gives a reason is left to a person."""
    if left and ignore.codes_span is not None:
        return Fix("Remove the codes that silence nothing", (Edit(ignore.codes_span, ",".join(left)),), safe=True)
    return None if ignore.has_reason else Fix("Remove the comment", (ignore.removal,), safe=True)
