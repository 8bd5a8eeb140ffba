"""Syntax errors of Python sources are found where they are, and only real ones."""

from __future__ import annotations

import pytest

from tests.noetlc.rules.lint_text import lint, place

TASK = """\
- step: start
  tool:
    kind: python
    code: |
      %s
"""


def with_source(source: str) -> str:
    return TASK % source.replace("\n", "\n      ")


@pytest.mark.parametrize(
    ("source", "line", "column"),
    [
        ("def main(:\n    return 1", 1, 10),
        ("x = 1\nfor a in [1]\n    x += a", 2, 13),
        ("x = (1", 1, 5),
        ("x = 'é' +* 2", 1, 10),
        ("result = await thing()", 1, 10),
        ("x = 1\nreturn (yield)\nbreak", 3, 1),
        ("result = {{ workload.a }} +", 1, 28),
    ],
)
def test_a_syntax_error_is_found_at_its_place(source: str, line: int, column: int) -> None:
    text = with_source(source)
    (finding,) = lint(text, "P219")
    assert place(finding, text) == (line + 4, column + 6)
    assert f"line {line} of the source" in finding.message


@pytest.mark.parametrize(
    "source",
    [
        "return {'a': 1}",
        "if True:\n    return 1\nresult = 2",
        "def main(a):\n    return a",
        "pattern = '\\d'",
    ],
)
def test_valid_sources_have_no_finding(source: str) -> None:
    assert lint(with_source(source), "P219") == []


@pytest.mark.parametrize("source", ["result = {{ workload.a }}", "{% if workload.a %}x = ({% endif %}"])
def test_templates_are_values_and_blocks_are_not_judged(source: str) -> None:
    assert lint(with_source(source), "P219") == []


def test_a_source_that_nests_too_deep_is_a_finding_and_no_crash() -> None:
    assert [found.code for found in lint(with_source("x = " + "(" * 20_000), "P219")] == ["P219"]
