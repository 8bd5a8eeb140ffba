"""What every fix keeps: it removes its finding, the text still reads, comments stay, a second run changes nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache

import pytest

from noetlc.finding import Finding
from noetlc.lint.check import check_source
from noetlc.lint.fixing import apply_edits, fix_text
from noetlc.rules.catalogue import all_rules, whole_playbook
from noetlc.syntax.span import Source
from tests.whole.conformance.suite import read_cases

COMMENT = "  # kept: ümläut 日本"


PORTIONS = 20
"""Texts are tested in so many portions; to know which have a fix takes to lint all, which collecting tests does not."""


@cache
def findings(text: str) -> list[Finding]:
    return list(check_source(Source("playbook.yaml", text)).findings)


def with_comments(text: str) -> str:
    """Put a comment behind each line that is a plain `key: value`, where one changes nothing."""
    return re.sub(r"^( *(?:- )?[\w.]+: [\w./-]+)$", rf"\1{COMMENT}", text, flags=re.MULTILINE)


def sources() -> Iterator[tuple[str, str]]:
    for rule in all_rules():
        yield rule.code, whole_playbook(rule.bad)
    for case in read_cases("lint"):
        with suppress(UnicodeDecodeError):  # what is not text has no fixes
            yield case.id, case.data.decode()


@pytest.mark.parametrize("portion", range(PORTIONS))
def test_a_fix_removes_its_finding_and_touches_nothing_else(portion: int) -> None:
    texts = [(name, with_comments(text)) for name, text in list(sources())[portion::PORTIONS] if "\udce9" not in text]
    fixable = [(name, text) for name, text in texts if any(finding.fix for finding in findings(text))]
    assert fixable
    for name, text in fixable:
        for unsafe in (False, True):
            assert_idempotent_and_keeps_comments_and_reads(name, text, unsafe)
        assert_each_fix_removes_its_finding(name, text)
        assert_no_new_error(name, text)


def assert_idempotent_and_keeps_comments_and_reads(name: str, text: str, unsafe: bool) -> None:
    once = fix_text(text, findings, unsafe=unsafe)
    assert once.problem is None, name
    assert fix_text(once.text, findings, unsafe=unsafe).text == once.text, name
    assert once.text.count(COMMENT) == text.count(COMMENT), name
    before = {finding.code for finding in findings(text) if finding.code.startswith("P00")}
    after = {finding.code for finding in findings(once.text) if finding.code.startswith("P00")}
    assert after <= before, name


def assert_each_fix_removes_its_finding(name: str, text: str) -> None:
    for finding in findings(text):
        if finding.fix is None:
            continue
        fixed = apply_edits(text, finding.fix.edits)
        same = [other for other in findings(fixed) if (other.code, other.message) == (finding.code, finding.message)]
        reported = [other for other in findings(text) if (other.code, other.message) == (finding.code, finding.message)]
        assert len(same) < len(reported), (name, finding)
        first = min(edit.span.start for edit in finding.fix.edits)
        assert fixed[:first] == text[:first], name


def assert_no_new_error(name: str, text: str) -> None:
    fixed = fix_text(text, findings, unsafe=False).text
    known = {finding.code for finding in findings(text)}
    assert {finding.code for finding in findings(fixed) if finding.severity == "error"} <= known, name
