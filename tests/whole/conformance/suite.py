"""The conformance suite of this checkout."""

from __future__ import annotations

from pathlib import Path

from noetlvm.conformance.suite import FILES, Case, Requirement, Suite

SUITE = Path(__file__).parents[3] / "conformance"
STAGES_WITH_CASES = tuple(stage for stage in FILES if stage != "migrate")
"""Those whose cases name requirements: a dialect of old has none."""

_SUITE = Suite(SUITE)


def read_cases(stage: str) -> list[Case]:
    return _SUITE.cases(stage)


def read_all_cases() -> list[Case]:
    return [case for stage in STAGES_WITH_CASES for case in read_cases(stage)]


def read_requirements() -> list[Requirement]:
    return _SUITE.requirements()
