"""Every parse case of the conformance suite, against this implementation."""

from __future__ import annotations

import json

import pytest

from noetlc.parse import parse_bytes
from noetlvm.conformance.suite import Case, Spot, as_listed
from tests.whole.conformance.suite import read_cases


@pytest.mark.parametrize("case", read_cases("parse"), ids=lambda case: case.id)
def test_parse_answers_as_the_case_expects(case: Case) -> None:
    answer = json.loads(parse_bytes(case.path.name, case.data).as_json())
    listed = case.spots("problems")
    assert sorted(as_listed({Spot.of(problem) for problem in answer["problems"]}, listed)) == sorted(listed)
    assert answer["ok"] is case.expect["ok"]
    if "playbook" in case.expect:
        assert answer["playbook"] == case.expect["playbook"]
