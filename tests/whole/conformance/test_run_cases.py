"""Every case of the stage `run`: scripted tools, virtual time, and under every schedule the same ending."""

from __future__ import annotations

from typing import Any

import pytest

from noetlvm.bridge import CompilationError
from noetlvm.conformance.verdict import IN_ANY_ORDER, complaints
from noetlvm.testing.__main__ import refused, run_given
from tests.whole.conformance.suite import Case, read_cases


def reported(case: Case, schedule: int | None = None) -> dict[str, Any]:
    texts = [path.read_text(encoding="utf-8") for path in (case.path, *case.companions)]
    try:
        return run_given(texts, case.expect.get("given", {}), schedule).to_data()
    except CompilationError as problem:
        return refused(problem)


@pytest.mark.parametrize("case", read_cases("run"), ids=lambda case: case.id)
def test_a_run_goes_as_its_case_says(case: Case) -> None:
    assert complaints(case.expect, reported(case)) == []


@pytest.mark.parametrize(
    "case",
    [case for case in read_cases("run") if "schedules" in case.expect.get("given", {})],
    ids=lambda case: case.id,
)
def test_no_schedule_changes_how_it_ends(case: Case) -> None:
    expect = {key: value for key, value in case.expect.items() if key in IN_ANY_ORDER}
    for seed in range(case.expect["given"]["schedules"]):
        assert complaints(expect, reported(case, seed)) == []
