"""How lint treats files of other dialects: one finding on the whole file, or a check in the file's own words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from noetlc.finding import Finding, Severity
from noetlc.settings import DialectChoice
from noetlc.syntax.span import Source
from noetlvm.record import changed

if TYPE_CHECKING:
    from noetlc.migrate.migration import Migration

OTHER_DIALECT = "P900"
_READING = "P01"
"""Codes below it are about YAML: they are true in every dialect."""


def about_the_dialect(findings: Sequence[Finding], choice: DialectChoice) -> list[Finding]:
    """Return the findings that count: of a file in another dialect, that it is one and what is wrong with its YAML."""
    if choice is DialectChoice.V10:
        return [finding for finding in findings if finding.code != OTHER_DIALECT]
    if not any(finding.code == OTHER_DIALECT for finding in findings):
        return list(findings)
    return [finding for finding in findings if finding.code == OTHER_DIALECT or finding.code < _READING]


def findings_before(migration: Migration, path: str, found: Sequence[Finding]) -> Iterator[Finding]:
    """Yield what needs a hand, and the findings in a migrated text at the lines of the original that they come from."""
    from noetlc.migrate.lines import lines_before, span_before

    before, after = Source(path, migration.before), Source(path, migration.after)
    lines = lines_before(migration)
    for rewrite in migration.open_changes:
        yield Finding(OTHER_DIALECT, Severity.ERROR, rewrite.span, rewrite.message, rewrite.construct.meaning)
    for finding in found:
        span = span_before(migration, finding.span, before, after, lines)
        yield changed(finding, span=span, related=(), fix=None)
