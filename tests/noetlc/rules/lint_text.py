"""What rule tests need: a fragment made whole, a text checked, a finding's place."""

from __future__ import annotations

from noetlc.finding import Finding
from noetlc.lint.check import check_source
from noetlc.rules.catalogue import whole_playbook
from noetlc.syntax.span import Source


def lint(text: str, code: str | None = None) -> list[Finding]:
    """Check a playbook or a list of steps; keep only findings of `code` if one is given."""
    checked = check_source(Source("playbook.yaml", whole_playbook(text)))
    return [finding for finding in checked.findings if code is None or finding.code == code]


def steps(fragment: str) -> str:
    """Make a list of steps a whole playbook."""
    return whole_playbook(fragment)


def place(finding: Finding, text: str) -> tuple[int, int]:
    """Return a finding's line and column in a text as it was given to `lint`."""
    position = Source("playbook.yaml", whole_playbook(text)).position(finding.span.start)
    return position.line - (HEADER_LINES if not text.lstrip().startswith("apiVersion") else 0), position.column


HEADER_LINES = whole_playbook("- step: start\n").count("\n") - 1


def fixed(text: str, finding: Finding) -> str:
    """Return the whole text after a finding's fix."""
    assert finding.fix is not None
    result = whole_playbook(text)
    for edit in sorted(finding.fix.edits, key=lambda edit: edit.span, reverse=True):
        result = result[: edit.span.start] + edit.text + result[edit.span.end :]
    return result
