"""Every lint case of the conformance suite, against this implementation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from noetlc.lint.check import check_bytes
from noetlvm.conformance.suite import Case, Spot, as_listed, unmet
from tests.whole.conformance.suite import read_cases

if TYPE_CHECKING:
    from noetlc.finding import Finding
    from noetlc.syntax.span import Source

CASES = read_cases("lint")


def place_of(source: Source, finding: Finding) -> Spot:
    return Spot(finding.code, *source.position(finding.span.start), finding.severity.value)


def shown(source: Source, finding: Finding) -> dict[str, object]:
    line, column = source.position(finding.span.start)
    place = {"code": finding.code, "severity": finding.severity.value, "line": line, "column": column}
    return place | {"message": finding.message, "help": finding.help, "fix": finding.fix}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_lint_answers_as_the_case_expects(case: Case) -> None:
    checked = check_bytes(case.path.name, case.data)
    expected = case.spots("findings")
    found = as_listed({place_of(checked.source, finding) for finding in checked.findings}, expected)
    absent = set(case.expect.get("absent", ()))
    judged = {
        place
        for place in found
        if place in expected or place.severity == "error" or place.what in absent or case.expect.get("exact", False)
    }
    assert sorted(judged) == sorted(expected)
    assert list(unmet(case.expect["findings"], [shown(checked.source, finding) for finding in checked.findings])) == []
    assert case.expect["exit"] == int(any(place.severity == "error" for place in found))


def test_the_examples_of_the_definition_expect_no_finding_that_fails() -> None:
    examples = [case for case in CASES if case.id.startswith("example-")]
    assert examples
    assert [case.id for case in examples if case.expect["findings"] or case.expect["exit"]] == []
