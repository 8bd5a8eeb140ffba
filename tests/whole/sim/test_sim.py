"""The simulator itself: the same bytes from the same seed, faults that are found, reports that lead to them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from noetlvm.bridge import compile_texts, compile_valid
from noetlvm.machine import fold
from noetlvm.machine.state import State
from noetlvm.sim.campaign import Campaign, SeedResult, failure_text, reproduction, run_seed, run_seeds, shrunk
from noetlvm.sim.checker import INVARIANTS
from noetlvm.sim.faults import EMBEDDED, FAULTS
from noetlvm.sim.world import Scenario, texts_of
from tests.commands import Answer, noetlvm

__all__ = ["noetlvm"]  # a fixture

PLANTED_SEEDS = 60


def sim_with_hash_seed(hash_seed: str, *options: str) -> bytes:
    command = [sys.executable, "-m", "noetlvm", "sim", "--seeds", "20..39", "--json", *options]
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    return subprocess.run(command, env=environment, capture_output=True, check=True).stdout


def test_the_same_seeds_give_the_same_bytes_under_any_hash_seed_and_number_of_processes() -> None:
    first = sim_with_hash_seed("1")
    assert first == sim_with_hash_seed("4242")
    assert first == sim_with_hash_seed("7", "--jobs", "2")
    report = json.loads(first)
    assert report["count"] == 20
    assert report["events"] > 200
    assert report["failing"] == []


@pytest.fixture
def one_iteration_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a bug: a loop opens one iteration more than it may."""
    opens = fold._open_iterations

    def open_iterations(state: State, number: int, path: str) -> None:
        loop = state.runs[number].loops[path]
        loop.width += 1
        opens(state, number, path)
        loop.width -= 1

    monkeypatch.setattr(fold, "_open_iterations", open_iterations)


@pytest.mark.usefixtures("one_iteration_too_many")
def test_a_planted_bug_is_found_and_shrinks_to_a_small_scenario() -> None:
    failing = next(found for seed in range(PLANTED_SEEDS) if (found := run_seed(seed)).violations)
    whole = Scenario.of(failing.seed)
    small, violations = shrunk(failing)
    assert violations
    assert {one.invariant for one in violations} <= {one.invariant for one in failing.violations}
    assert len(small.faults) <= min(4, len(whole.faults))
    assert sum(len(one["workflow"]) for one in small.playbooks) <= sum(len(one["workflow"]) for one in whole.playbooks)
    assert not any("workbook" in one or "keychain" in one for one in small.playbooks)
    text = failure_text(failing)
    assert f"reproduce: noetlvm sim --seeds {failing.seed}..{failing.seed}" in text.splitlines()


def test_the_command_exits_with_one_and_says_how_to_repeat_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from noetlvm.sim import log_model

    monkeypatch.setattr(log_model, "EVENT_BYTES_MAX", 10)  # every event is too large now
    from noetlvm.cli.sim import sim

    assert sim(seeds="5..6") == 1
    assert sim(seeds="5..6", as_json_object=True) == 1


def test_a_campaign_adds_up_and_reports_every_kind() -> None:
    campaign = Campaign()
    for result in run_seeds(0, 9, jobs=1):
        campaign.add(result)
    report = campaign.report()
    assert report["seeds"] == "0..9"
    assert set(report["faults"]) == set(FAULTS)
    assert set(report["invariants"]) == set(INVARIANTS)
    assert sum(one["seeds"] for one in report["faults"].values()) > 10


def test_a_campaign_in_parts_gives_the_report_of_one_in_a_row(tmp_path: Path, noetlvm: Callable[..., Answer]) -> None:
    parts, whole = tmp_path / "parts.json", tmp_path / "whole.json"
    for seeds, file in (("0..3", parts), ("4..7", parts), ("0..7", whole)):
        assert noetlvm("sim", "--seeds", seeds, "--report", str(file)).code == 0
    assert parts.read_bytes() == whole.read_bytes()
    assert json.loads(parts.read_bytes())["seeds"] == "0..7"
    again = noetlvm("sim", "--seeds", "4..7", "--report", str(parts))
    assert (again.code, "continue with `--seeds 8..`" in again.err) == (2, True)
    other = noetlvm("sim", "--seeds", "8..9", "--embedded", "--report", str(parts))
    assert (other.code, "not of `--embedded`" in other.err) == (2, True)
    parts.write_text("{}")
    broken = noetlvm("sim", "--seeds", "8..9", "--report", str(parts))
    assert (broken.code, "cannot be read as a report" in broken.err) == (2, True)
    nowhere = noetlvm("sim", "--seeds", "8..9", "--report", str(tmp_path / "none" / "r.json"))
    assert (nowhere.code, "there is no folder" in nowhere.err) == (2, True)


def test_an_interrupted_campaign_has_its_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from noetlvm.cli.sim import sim

    def interrupted(*_given: object, **_options: object) -> Iterator[SeedResult]:
        yield from map(run_seed, range(2))
        raise KeyboardInterrupt

    monkeypatch.setattr("noetlvm.cli.sim.run_seeds", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sim(seeds="0..9", report=str(tmp_path / "report.json"))
    assert json.loads((tmp_path / "report.json").read_text())["seeds"] == "0..1"
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_random_playbooks_are_valid_and_compile_to_the_same_bytes_unchecked() -> None:
    for seed in range(40):
        texts = texts_of(Scenario.of(seed))
        assert compile_valid(texts) == compile_texts(texts)


FEATURES = (
    '"admit"', '"on_deny": "drop"', '"iterator": "n2"', '"reducers"', '"rate"', '"best_effort"',
    '"exec": "local"', '"do": "retry"', '"do": "jump"', '"do": "skip"', '"do": "break"', '"do": "fail"', '"set_ctx"',
    '"set_iter"', '"kind": "playbook"', '"timeout_s"', '"deadline_s"', '"choose"', '"while"', '"until"', '"delay": 9',
    '"workbook"', '"keychain"', '"final_step"', '"no_next_is_error"', '"unguarded_arcs"', '"pool"', '"inclusive"',
)  # fmt: skip


def test_random_playbooks_have_every_feature() -> None:
    made = [" ".join(texts_of(Scenario.of(seed))) for seed in range(400)]
    assert [feature for feature in FEATURES if sum(feature in text for text in made) < len(made) / 100] == []


def test_seeds_run_for_a_time() -> None:
    results = list(run_seeds(0, None, jobs=1, seconds=0.001))
    assert [result.seed for result in results] == list(range(len(results)))


def test_an_embedded_engine_is_simulated_with_faults_of_its_own_and_the_same_bytes() -> None:
    results = [run_seed(seed, is_embedded=True) for seed in range(12)]
    assert {kind for result in results for kind in result.happened} <= set(EMBEDDED)
    assert any(result.events > 30 for result in results)
    assert results == list(run_seeds(0, 11, jobs=2, is_embedded=True))
    assert reproduction(results[3]) == "noetlvm sim --seeds 3..3 --embedded"


@pytest.mark.parametrize("options", [["--seeds", "9"], ["--seeds", "9..3"], ["--seeds", "1.."], ["--for", "soon"]])
def test_a_range_that_is_none_is_refused(options: list[str], noetlvm: Callable[..., Answer]) -> None:
    done = noetlvm("sim", *options)
    assert done.code == 2
    assert options[0] in done.err
