"""A finding with lines and columns instead of offsets, as reports print it, the cache stores it and JSON shows it.

Rules and fixes work with offsets (`Finding`); a row needs no source text to be printed. Its JSON form is a public
interface.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from noetlc.finding import Edit, Finding, Fix, Severity

if TYPE_CHECKING:
    from noetlc.syntax.span import Source, Span


class Range(NamedTuple):
    """A range of text; lines and columns count from 1, columns count characters, the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Range:
        return cls(*(int(data[name]) for name in cls._fields))


class RelatedRow(NamedTuple):
    """A second position that explains the finding."""

    message: str
    range: Range


class EditRow(NamedTuple):
    """Replace the text at `range` by `text`."""

    range: Range
    text: str


class FixRow(NamedTuple):
    """Edits that remove the finding; none where an earlier finding of the file has them."""

    description: str
    safe: bool
    edits: tuple[EditRow, ...]


class LocatedFinding(NamedTuple):
    code: str
    severity: Severity
    message: str
    help: str
    path: str
    range: Range
    related: tuple[RelatedRow, ...]
    fix: FixRow | None
    label: str
    """Label path of the position (`workflow.fetch.next`): survives edits that move lines."""

    def to_json(self) -> dict[str, Any]:
        """Return the finding as `--format json` shows it."""
        return {
            "code": self.code,
            "severity": self.severity.value,
            "message": self.message,
            "help": self.help,
            "path": self.path,
            **self.range._asdict(),
            "label": self.label,
            "related": [{"message": r.message, "path": self.path, **r.range._asdict()} for r in self.related],
            "fix": None if self.fix is None else _fix_to_json(self.fix),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any], path: str) -> LocatedFinding:
        """Read back what `to_json` wrote, for a file that may now be called `path`."""
        return cls(
            data["code"],
            Severity(data["severity"]),
            data["message"],
            data["help"],
            path,
            Range.from_json(data),
            tuple(RelatedRow(r["message"], Range.from_json(r)) for r in data["related"]),
            None if data["fix"] is None else _fix_from_json(data["fix"]),
            data["label"],
        )


def resolve_all(
    findings: Iterable[Finding], source: Source, label_at: Callable[[int], str] = lambda _offset: ""
) -> Iterator[LocatedFinding]:
    """Turn the offsets of a file's findings into lines and columns.

    A fix that several findings share, such as the migration of the file, has its edits at the first of them only.
    """
    seen: set[int] = set()
    for one in findings:
        related = tuple(RelatedRow(r.message, _range(r.span, source)) for r in one.related)
        fix = None if one.fix is None else _resolve_fix(one.fix, source, () if id(one.fix) in seen else one.fix.edits)
        seen.add(id(one.fix))
        place, label = _range(one.span, source), label_at(one.span.start)
        yield LocatedFinding(one.code, one.severity, one.message, one.help, source.path, place, related, fix, label)


def with_ordinals(rows: Iterable[LocatedFinding]) -> list[tuple[LocatedFinding, int]]:
    """Number the rows that share path, code and label from 1: the identity of a finding without its line."""
    seen: Counter[tuple[str, str, str]] = Counter()
    numbered = []
    for row in rows:
        key = (row.path, row.code, row.label)
        seen[key] += 1
        numbered.append((row, seen[key]))
    return numbered


def fingerprint(row: LocatedFinding, ordinal: int) -> str:
    """Return an identity of the finding that survives edits which only move it."""
    identity = "\0".join((row.code, row.path.replace("\\", "/"), row.label, str(ordinal)))
    return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _range(span: Span, source: Source) -> Range:
    return Range(*source.position(span.start), *source.position(span.end))


def _resolve_fix(fix: Fix, source: Source, edits: tuple[Edit, ...]) -> FixRow:
    return FixRow(fix.description, fix.safe, tuple(EditRow(_range(e.span, source), e.text) for e in edits))


def _fix_to_json(fix: FixRow) -> dict[str, Any]:
    edits = [{**edit.range._asdict(), "text": edit.text} for edit in fix.edits]
    return {"description": fix.description, "safe": fix.safe, "edits": edits}


def _fix_from_json(data: dict[str, Any]) -> FixRow:
    edits = tuple(EditRow(Range.from_json(edit), edit["text"]) for edit in data["edits"])
    return FixRow(data["description"], bool(data["safe"]), edits)
