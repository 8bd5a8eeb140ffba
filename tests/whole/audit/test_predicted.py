"""Every predicted playbook ends as predicted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.whole.audit.predicted import Case, all_cases
from tests.whole.audit.runs import run_case

CASES = all_cases()


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_end_is_as_predicted(case: Case, tmp_path: Path) -> None:
    assert run_case(case, tmp_path) == []


def test_there_are_as_many_predictions_as_the_audit_had() -> None:
    assert len(CASES) >= 260
