"""Seeds of the simulator: first those that once failed, then 2,000, in portions that test processes share."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from noetlvm.sim.campaign import run_seed
from noetlvm.sim.faults import FAULTS

CORPUS = json.loads((Path(__file__).parent / "corpus.json").read_text(encoding="utf-8"))["seeds"]
SEEDS = 2_000
PORTION = 100
EMBEDDED_SEEDS = 150
LEAST_SHARE = 0.05


@pytest.mark.parametrize("row", CORPUS, ids=lambda row: str(row["seed"]))
def test_a_seed_that_once_failed_breaks_nothing(row: dict[str, Any]) -> None:
    result = run_seed(row["seed"], is_embedded=row.get("embedded", False))
    assert [str(one) for one in result.violations] == []


@pytest.mark.parametrize("first", range(1_000, 1_000 + SEEDS, PORTION))
def test_no_seed_breaks_an_invariant(first: int) -> None:
    broken = [(seed, list(map(str, run_seed(seed).violations))) for seed in range(first, first + PORTION)]
    assert [(seed, found) for seed, found in broken if found] == []


@pytest.mark.parametrize("first", range(0, EMBEDDED_SEEDS, PORTION // 2))
def test_no_seed_of_an_embedded_engine_breaks_an_invariant(first: int) -> None:
    seeds = range(first, first + PORTION // 2)
    broken = [(seed, list(map(str, run_seed(seed, is_embedded=True).violations))) for seed in seeds]
    assert [(seed, found) for seed, found in broken if found] == []


def test_every_kind_of_fault_strikes_in_five_per_cent_of_the_seeds() -> None:
    struck: Counter[str] = Counter()
    seeds = 300
    for seed in range(seeds):
        struck.update(run_seed(seed).happened)
    assert len(FAULTS) >= 15
    assert [kind for kind in FAULTS if struck[kind] < LEAST_SHARE * seeds] == []
