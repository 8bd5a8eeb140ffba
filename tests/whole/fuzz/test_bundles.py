"""A bounded run of the fuzzer. `make fuzz` runs as many cases as one likes."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from noetlvm.bytecode.codec.encoder import encode
from noetlvm.bytecode.program import Program
from noetlvm.bytecode.verify.verifier import load, verify
from tests.noetlvm.bytecode.programs import programs
from tests.whole.fuzz.campaign import run
from tests.whole.fuzz.fitted import fitted
from tests.whole.fuzz.seeds import seeds

CASES = 500


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3, 4))])
def test_nothing_but_a_bundle_error_comes_of_a_changed_bundle_and_what_is_accepted_runs(seed: int) -> None:
    findings = run(CASES, seed)

    assert findings.defects == []
    # The changes are neither so small that nothing is refused nor so large that nothing is left to run.
    assert findings.counts["refused"] > CASES / 5
    assert findings.counts["accepted"] > CASES / 20
    assert findings.counts["evaluated"] > CASES / 5


def test_the_same_seed_gives_the_same_cases() -> None:
    assert run(50, 7).counts == run(50, 7).counts


def test_the_fuzzer_begins_with_valid_programs() -> None:
    for program in seeds():
        verify(program)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(programs())
def test_generated_programs_that_fit_are_loaded_as_they_were_written(program: Program) -> None:
    data = encode(fitted(program))

    assert encode(load(data)) == data
