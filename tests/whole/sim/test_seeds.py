"""Seeds of the simulator: those that once failed, the first 300, and 2,000 more, in portions that processes share."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from noetlvm.sim.campaign import SeedResult, run_seed
from noetlvm.sim.faults import FAULTS

CORPUS = json.loads((Path(__file__).parent / "corpus.json").read_text(encoding="utf-8"))["seeds"]
SEEDS = 300
"""Every planted bug that the simulator finds by itself is found by one of the first 26."""
MORE_SEEDS = 2_000
EMBEDDED_SEEDS, MORE_EMBEDDED_SEEDS = 50, 150
PORTION = 100
LEAST_SHARE = 0.05


def broken(results: list[SeedResult]) -> list[tuple[int, list[str]]]:
    return [(result.seed, list(map(str, result.violations))) for result in results if result.violations]


@pytest.mark.parametrize("row", CORPUS, ids=lambda row: str(row["seed"]))
def test_a_seed_that_once_failed_breaks_nothing(row: dict[str, Any]) -> None:
    assert broken([run_seed(row["seed"], is_embedded=row.get("embedded", False))]) == []


@pytest.fixture(scope="module")
def results() -> list[SeedResult]:
    return [run_seed(seed) for seed in range(SEEDS)]


def test_no_seed_breaks_an_invariant(results: list[SeedResult]) -> None:
    assert broken(results) == []


def test_every_kind_of_fault_strikes_in_five_per_cent_of_the_seeds(results: list[SeedResult]) -> None:
    struck: Counter[str] = Counter()
    for result in results:
        struck.update(result.happened)
    assert len(FAULTS) >= 15
    assert [kind for kind in FAULTS if struck[kind] < LEAST_SHARE * SEEDS] == []


def test_no_seed_of_an_embedded_engine_breaks_an_invariant() -> None:
    assert broken([run_seed(seed, is_embedded=True) for seed in range(EMBEDDED_SEEDS)]) == []


@pytest.mark.long
@pytest.mark.parametrize("first", range(1_000, 1_000 + MORE_SEEDS, PORTION))
def test_none_of_many_seeds_breaks_an_invariant(first: int) -> None:
    assert broken([run_seed(seed) for seed in range(first, first + PORTION)]) == []


@pytest.mark.long
@pytest.mark.parametrize("first", range(EMBEDDED_SEEDS, MORE_EMBEDDED_SEEDS, PORTION // 2))
def test_none_of_many_seeds_of_an_embedded_engine_breaks_an_invariant(first: int) -> None:
    assert broken([run_seed(seed, is_embedded=True) for seed in range(first, first + PORTION // 2)]) == []
