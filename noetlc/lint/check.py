"""Checks one playbook: reads it, lays it out, runs every rule. Pure: same text in, same findings out.

Which findings to show (selection, ignores, baselines) is decided elsewhere.
"""

from __future__ import annotations

from noetlc.analysis.inputs import Respelling
from noetlc.analysis.model import Model, label_path
from noetlc.canon.spelling import canonical_spelling
from noetlc.finding import Finding
from noetlc.rules.catalogue import all_rules
from noetlc.syntax import ast
from noetlc.syntax.input import DEFAULT_LIMITS, ReadLimits
from noetlc.syntax.playbook_parser import parse_playbook
from noetlc.syntax.problem import Problem
from noetlc.syntax.span import Source, Span
from noetlc.syntax.yaml_reader import Document, decode, read_document
from noetlvm.record import Record


class KindPolicy(Record):
    """Which tool kinds count as known besides those that are installed."""

    allowed: frozenset[str] = frozenset()
    allow_unknown: bool = False


KNOWN_KINDS = KindPolicy()
"""Only the installed kinds count as known."""


class CheckedFile(Record):
    """What one file gave."""

    source: Source
    document: Document
    findings: tuple[Finding, ...]
    playbook: ast.Playbook | None = None
    """The tree; None where there is none to speak of."""

    def label_path(self, offset: int) -> str:
        """Return the path of names to what stands at `offset` (for baselines)."""
        return label_path(self.document.root, offset)


def check_bytes(
    path: str, data: bytes, limits: ReadLimits = DEFAULT_LIMITS, kinds: KindPolicy = KNOWN_KINDS
) -> CheckedFile:
    """Check a file's bytes, whatever they are."""
    text, problem = decode(data, limits)
    source = Source(path, text)
    if problem is None:
        return check_source(source, limits, kinds)
    return _run(source, Document(None, (problem,), ()), None, (), kinds)


def check_source(source: Source, limits: ReadLimits = DEFAULT_LIMITS, kinds: KindPolicy = KNOWN_KINDS) -> CheckedFile:
    """Check a text, whatever it is."""
    document = read_document(source.text, limits)
    if document.root is None:
        return _run(source, document, None, (), kinds)
    parsed = parse_playbook(document.root)
    if parsed.playbook is None:
        return _run(source, document, None, parsed.problems, kinds)
    spelled = canonical_spelling(parsed.playbook)
    return _run(source, document, spelled.playbook, parsed.problems, kinds, spelled.respellings)


def _run(
    source: Source,
    document: Document,
    playbook: ast.Playbook | None,
    problems: tuple[Problem, ...],
    kinds: KindPolicy,
    respellings: tuple[Respelling, ...] = (),
) -> CheckedFile:
    model = Model(
        source,
        document,
        playbook or ast.Playbook(span=Span(0, 0)),
        document.problems + problems,
        kinds.allowed,
        kinds.allow_unknown,
        respellings,
    )
    whole = playbook is not None and not document.is_damaged
    findings = {finding: None for rule in all_rules() if whole or rule.on_damaged for finding in rule().check(model)}
    ordered = sorted(findings, key=lambda finding: (finding.span, finding.code, finding.message))
    return CheckedFile(source, document, tuple(ordered), playbook)
