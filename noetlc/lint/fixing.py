"""Applies fixes to a file's text: in rounds, because one fix may make room for the next.

Fixes that touch each other wait for the next round. A round that adds an error is discarded. Nothing here reads or
writes files.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable

from noetlc.finding import Edit, Finding, Fix
from noetlc.syntax.span import Span
from noetlvm.record import Record

ROUNDS_MAX = 10
_READING = "P00"
"""The family of findings about YAML itself: a fix must not bring a new one."""
Check = Callable[[str], list[Finding]]
"""Returns the reported findings of a text: only they are fixed."""


class Fixed(Record):
    """A text after fixing, how many findings were fixed, and a problem if there was one."""

    text: str
    count: int = 0
    problem: str | None = None


def fix_text(text: str, check: Check, *, unsafe: bool) -> Fixed:
    """Apply fixes until none is left or none helps."""
    newline = _newline_of(text)
    count = 0
    findings = check(text)
    for _ in range(ROUNDS_MAX):
        chosen = _compatible(_applicable(findings, unsafe=unsafe))
        if not chosen:
            break
        changed = apply_edits(text, (edit for fix in chosen for edit in fix.edits), newline)
        after = check(changed)
        if _breaks(findings, after):
            problem = f"the fix “{chosen[0].description}” would leave text that cannot be read; it was not applied"
            return Fixed(text, count, problem)
        if changed == text:
            break
        text, findings, count = changed, after, count + len(chosen)
    return Fixed(text, count)


def apply_edits(text: str, edits: Iterable[Edit], newline: str = "\n") -> str:
    """Replace each edit's span, the last one first so that the other offsets stay valid."""
    for edit in sorted(set(edits), key=lambda edit: edit.span, reverse=True):
        replacement = edit.text.replace("\r\n", "\n").replace("\n", newline)
        text = text[: edit.span.start] + replacement + text[edit.span.end :]
    return text


def _applicable(findings: Iterable[Finding], *, unsafe: bool) -> list[Fix]:
    return [finding.fix for finding in findings if finding.fix and finding.fix.edits and (unsafe or finding.fix.safe)]


def _compatible(fixes: Iterable[Fix]) -> list[Fix]:
    """Choose fixes that do not touch each other, the earlier ones first; two with equal edits are one."""
    chosen: list[Fix] = []
    edits: set[tuple[Edit, ...]] = set()
    taken: list[Span] = []
    for fix in fixes:
        if fix.edits not in edits:
            if any(_touches(edit.span, taken) for edit in fix.edits):
                continue
            edits.add(fix.edits)
            for edit in fix.edits:
                insort(taken, edit.span)
        chosen.append(fix)
    return chosen


def _touches(span: Span, taken: list[Span]) -> bool:
    """Return whether a span overlaps or adjoins one of `taken`, which are sorted and disjoint."""
    index = bisect_left(taken, span)
    neighbours = taken[max(0, index - 1) : index + 1]
    return any(span.start <= other.end and other.start <= span.end for other in neighbours)


def _breaks(before: Iterable[Finding], after: Iterable[Finding]) -> bool:
    known = {finding.code for finding in before}
    return any(finding.code.startswith(_READING) and finding.code not in known for finding in after)


def _newline_of(text: str) -> str:
    """Return the line break that the file's first line ends with."""
    end = text.find("\n")
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"
