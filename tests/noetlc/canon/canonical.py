"""Canonical forms for tests: from a list of steps, or a whole playbook, to data."""

from __future__ import annotations

from typing import Any

import pytest

from noetlc.canon.canonicalize import CanonicalPlaybook, canonicalize
from noetlc.canon.errors import ExpansionError
from noetlc.cli.canon import canonical_text
from noetlc.finding import Finding
from noetlc.lint.check import check_source
from noetlc.syntax.playbook_parser import parse_playbook
from noetlc.syntax.playbook_printer import tree_data
from noetlc.syntax.span import Source
from noetlc.syntax.yaml_reader import read_document
from tests.noetlc.rules.lint_text import whole_playbook


def canonical(text: str) -> CanonicalPlaybook:
    """Return the canonical form of a text that lints without errors."""
    assert _errors(text) == []
    return form_of(text)


def _errors(text: str) -> list[Finding]:
    found = check_source(Source("playbook.yaml", whole_playbook(text))).findings
    return [finding for finding in found if finding.severity == "error"]


def form_of(text: str) -> CanonicalPlaybook:
    """Return the canonical form of a text, whatever lint finds in it."""
    source = Source("playbook.yaml", whole_playbook(text))
    root = read_document(source.text).root
    assert root is not None
    playbook = parse_playbook(root).playbook
    assert playbook is not None
    return canonicalize(playbook, source)


def data(text: str) -> dict[str, Any]:
    """Return the canonical form as plain data."""
    return tree_data(canonical(text).playbook)


def tasks(text: str, step: int = 0) -> dict[str, Any]:
    """Return a step's tasks by label, in order."""
    return {label: task for entry in data(text)["workflow"][step]["tool"] for label, task in entry.items()}


def labels(text: str, step: int = 0) -> list[str]:
    """Return the labels of a step's tasks."""
    return list(tasks(text, step))


def refused(text: str) -> tuple[str, str]:
    """Return what lint reports on a text that has no canonical form, and the text at the reported position."""
    with pytest.raises(ExpansionError) as caught:
        form_of(text)
    refusal = caught.value
    reported = (refusal.code, refusal.span, refusal.message, refusal.help)
    assert reported in [(found.code, found.span, found.message, found.help) for found in _errors(text)]
    assert refusal.help
    return refusal.message, whole_playbook(text)[slice(*refusal.span)]


def printed(text: str) -> str:
    """Return the canonical form as YAML."""
    made, errors = canonical_text(check_source(Source("playbook.yaml", whole_playbook(text))))
    assert errors == ()
    assert made is not None
    return made
