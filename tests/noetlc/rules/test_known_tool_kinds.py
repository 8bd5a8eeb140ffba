"""Tool kinds that are known by name and need a plugin."""

from __future__ import annotations

import pytest

from noetlc.finding import Finding, Severity
from noetlc.lint.check import check_bytes
from noetlvm.language.tool_kinds import PLUGIN_KINDS

PLAYBOOK = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{ name: p, path: p }}
workflow:
  - step: start
    tool:
      - work: {{ kind: {kind}, anything: 1 }}
"""


@pytest.mark.parametrize("kind", PLUGIN_KINDS)
def test_a_kind_that_needs_a_plugin_is_a_warning_that_names_the_entry_point(kind: str) -> None:
    found = [finding for finding in findings_of(PLAYBOOK.format(kind=kind)) if finding.code == "P106"]
    assert [finding.severity for finding in found] == [Severity.WARNING]
    assert "needs a plugin" in found[0].message
    assert f"`{kind}` in `noetlvm.tools`" in (found[0].help or "")


def test_a_kind_that_nobody_knows_is_an_error() -> None:
    found = [finding for finding in findings_of(PLAYBOOK.format(kind="snowflakes2")) if finding.code == "P106"]
    assert [finding.severity for finding in found] == [Severity.ERROR]


def findings_of(text: str) -> tuple[Finding, ...]:
    return tuple(check_bytes("p.yaml", text.encode()).findings)
