"""A part of the comparison with Jinja2; `make oracle` runs all of it."""

from __future__ import annotations

import pytest

from tests.whole.oracle.expressions import compare


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 6))])
def test_generated_expressions_give_what_jinja_gives(seed: int) -> None:
    found = compare(500, seed)
    assert found.different == []
    assert found.counts["same value"] > 250
