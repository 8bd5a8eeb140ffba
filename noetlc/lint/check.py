"""Checks one playbook: reads it, runs every rule, applies its ignore comments. Pure: same text, same findings.

Which findings are reported, and how severe they are, is decided by `Settings` afterwards, so that one cached result
serves every configuration.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from noetlc.analysis.inputs import Respelling
from noetlc.analysis.label_paths import LabelPaths
from noetlc.analysis.model import Model
from noetlc.canon.spelling import canonical_spelling
from noetlc.finding import Finding, Severity
from noetlc.lint.ignores import apply_ignores, find_ignores
from noetlc.migrate.lines import lines_before, span_before
from noetlc.migrate.migration import migrate_document
from noetlc.report.located_finding import LocatedFinding, resolve_all
from noetlc.rules.catalogue import all_rules
from noetlc.rules.p024_document_kind import DocumentKind, is_other_document
from noetlc.settings import DialectChoice, Settings
from noetlc.syntax import ast
from noetlc.syntax.playbook_parser import parse_playbook
from noetlc.syntax.span import Problem, Source, Span
from noetlc.syntax.yaml_reader import Document, decode, read_document
from noetlvm.record import Record, changed

if TYPE_CHECKING:
    from noetlc.migrate.migration import Migration


DEFAULT_SETTINGS = Settings()
_OWN_WORDS = frozenset({DialectChoice.IO, DialectChoice.EVAL, DialectChoice.CASE})


class CheckedFile(Record):
    """A file, its tree and its findings, ordered by position."""

    source: Source
    document: Document
    findings: tuple[Finding, ...]
    playbook: ast.Playbook | None = None
    """None where the file has no readable root."""
    silenced: tuple[Finding, ...] = ()
    """What an ignore comment covers."""

    def rows(self) -> tuple[LocatedFinding, ...]:
        """Return the findings with lines and columns instead of offsets."""
        paths = LabelPaths(self.document.root)
        return tuple(resolve_all(self.findings, self.source, paths.at))


def check_bytes(path: str, data: bytes, settings: Settings = DEFAULT_SETTINGS) -> CheckedFile:
    """Check the content of a file, whatever it is."""
    text, problem = decode(data, settings.limits)
    source = Source(path, text)
    if problem is None:
        return check_source(source, settings)
    return _checked(source, Document(None, (problem,), ()), None, (), settings)


def check_source(source: Source, settings: Settings = DEFAULT_SETTINGS) -> CheckedFile:
    document = read_document(source.text, settings.limits)
    if settings.dialect in _OWN_WORDS:
        return _check_in_own_words(source, document, settings)
    if document.root is None:
        return _checked(source, document, None, (), settings)
    parsed = parse_playbook(document.root)
    if parsed.playbook is None:
        return _checked(source, document, None, parsed.problems, settings)
    spelled = canonical_spelling(parsed.playbook, source.text)
    return _checked(source, document, spelled.playbook, parsed.problems, settings, spelled.respellings)


def read_valid(path: str, data: bytes) -> tuple[Source, ast.Playbook]:
    """Read a playbook that has no errors, without checking it."""
    source = Source(path, decode(data)[0])
    root = read_document(source.text).root
    playbook = None if root is None else parse_playbook(root).playbook
    if playbook is None:
        raise ValueError(f"{path} is not a playbook")
    return source, canonical_spelling(playbook, source.text).playbook


def _check_in_own_words(source: Source, document: Document, settings: Settings) -> CheckedFile:
    """Check what a file of another dialect means: its migrated form, at the lines of the original."""
    migration = migrate_document(source.text, document)
    as_v10 = settings._replace(dialect=DialectChoice.V10)
    found = check_source(Source(source.path, migration.after), as_v10).findings
    moved = dict.fromkeys(findings_before(migration, source.path, found))
    return CheckedFile(source, document, tuple(sorted(moved, key=_by_position)))


def _checked(
    source: Source,
    document: Document,
    playbook: ast.Playbook | None,
    problems: tuple[Problem, ...],
    settings: Settings,
    respellings: tuple[Respelling, ...] = (),
) -> CheckedFile:
    model = Model(
        source,
        document,
        playbook or ast.Playbook(span=Span(0, 0)),
        document.problems + problems,
        frozenset(settings.tool_kinds),
        settings.allow_unknown_kinds,
        respellings,
    )
    findings = run_rules(model, on_damaged_only=playbook is None or document.is_damaged)
    findings = about_the_dialect(findings, settings.dialect)
    ignores = find_ignores(source.text, document.scalar_spans)
    reported, silenced = apply_ignores(findings, ignores, source, all_rules_ran=not document.is_damaged)
    return CheckedFile(source, document, tuple(reported), playbook, tuple(silenced))


def run_rules(model: Model, *, on_damaged_only: bool) -> list[Finding]:
    """Return what the rules find, each finding once, ordered by position."""
    rules = [rule for rule in all_rules() if rule.on_damaged or not on_damaged_only]
    if is_other_document(model.playbook):  # whatever else is in it follows other rules
        rules = [DocumentKind]
    findings = {finding: None for rule in rules for finding in rule().check(model)}
    return sorted(findings, key=_by_position)


def _by_position(finding: Finding) -> tuple[Span, str, str]:
    return finding.span, finding.code, finding.message


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
    before, after = Source(path, migration.before), Source(path, migration.after)
    lines = lines_before(migration)
    for rewrite in migration.open_changes:
        yield Finding(OTHER_DIALECT, Severity.ERROR, rewrite.span, rewrite.message, rewrite.construct.meaning)
    for finding in found:
        span = span_before(migration, finding.span, before, after, lines)
        yield changed(finding, span=span, related=(), fix=None)
