"""The page for people who come from NoETL: its playbooks lint as it says, its spellings and findings exist."""

from __future__ import annotations

import re

from noetlc import api
from noetlc.finding import Severity
from noetlc.rules.catalogue import rules_by_code
from noetlvm.language.tool_kinds import find_kind
from tests.whole.imports import ROOT

PAGE = (ROOT / "docs" / "from-noetl.md").read_text(encoding="utf-8")


def test_the_playbook_after_the_change_has_no_finding_and_the_one_before_has_an_error() -> None:
    before, after = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)
    assert any(finding.severity is Severity.ERROR for finding in api.lint(before))
    assert api.lint(after) == []


def test_every_spelling_means_what_the_page_says() -> None:
    rows = re.findall(r"^\| (`.*?`) of (`.*?`) \| `(\w+)` \|$", PAGE, flags=re.MULTILINE)
    assert len(rows) >= 6
    for written, kinds, means in rows:
        for name in re.findall(r"`(\w+)`", kinds):
            kind = find_kind(name)
            assert kind is not None
            for spelling in re.findall(r"`(\w+)`", written):
                assert kind.spellings.get(spelling) == means, f"{spelling} of {name}"


def test_every_finding_of_the_page_exists() -> None:
    codes = set(re.findall(r"\bP\d{3}\b", PAGE))
    assert len(codes) >= 6
    assert codes <= set(rules_by_code())
