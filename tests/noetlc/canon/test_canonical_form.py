"""The canonical form is a playbook without errors, and its own canonical form, whatever playbook it is of."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from noetlc.cli.canon import canonical_text
from noetlc.lint.check import check_bytes, check_source
from noetlc.rules.catalogue import all_rules
from noetlc.syntax.span import Source
from tests.noetlc.canon.canonical import printed
from tests.noetlc.rules.lint_text import whole_playbook

ROOT = Path(__file__).parents[3]
FILES = [*sorted((ROOT / "conformance/lint").glob("*.yaml")), *sorted((ROOT / "examples").glob("*.yaml"))]
PAIRS = sorted((ROOT / "conformance/canon").glob("*.yaml"))


def assert_canonical(path: str, text: str) -> None:
    again = check_source(Source(path, text))
    assert [finding for finding in again.findings if finding.severity == "error"] == []
    assert canonical_text(again) == (text, ())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_without_errors_has_a_canonical_form_that_stays_as_it_is(path: Path) -> None:
    checked = check_bytes(path.name, path.read_bytes())
    text, errors = canonical_text(checked)
    if text is None:
        assert [error for error in errors if error.severity == "error"]
    else:
        assert_canonical(path.name, text)


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_what_rules_call_good_has_a_canonical_form_that_stays_as_it_is(rule: type) -> None:
    text, errors = canonical_text(check_source(Source("good.yaml", whole_playbook(dedent(rule.good)))))
    assert errors == ()
    assert text is not None
    assert_canonical("good.yaml", text)


@pytest.mark.parametrize("path", PAIRS, ids=lambda path: path.stem)
def test_each_pair_of_the_conformance_suite(path: Path) -> None:
    expected = path.with_suffix(".canon.yml").read_text(encoding="utf-8")
    assert canonical_text(check_bytes(path.name, path.read_bytes())) == (expected, ())
    assert_canonical(path.name, expected)


def test_comments_and_layout_leave_no_trace() -> None:
    steps = "- step: start\n  tool: {kind: noop, text: a}\n"
    assert printed(steps) == printed("- step: start   # here\n\n  # hello\n  tool:\n    kind: noop\n    text: 'a'\n")


def test_keys_stand_in_one_order_whatever_the_author_wrote() -> None:
    assert printed(
        "- {next: {arcs: [{step: b}]}, tool: {text: a, kind: noop}, step: a}\n- {tool: {kind: noop}, step: b}\n"
    ) == (
        printed(
            "- {step: a, tool: {kind: noop, text: a}, next: {arcs: [{step: b}]}}\n- {step: b, tool: {kind: noop}}\n"
        )
    )
