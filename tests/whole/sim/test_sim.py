"""The simulator itself: the same bytes from the same seed, faults that are found, reports that lead to them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from noetlvm.bridge import compile_texts, compile_valid
from noetlvm.data.event import Recorded
from noetlvm.limits import EVENT_BYTES_MAX
from noetlvm.machine import fold
from noetlvm.machine.state import State
from noetlvm.sim.campaign import Campaign, SeedResult, failure_text, reproduction, run_seed, run_seeds, shrunk
from noetlvm.sim.checker import INVARIANTS, check
from noetlvm.sim.faults import EMBEDDED, FAULTS
from noetlvm.sim.ports import SECRET
from noetlvm.sim.world import History, Scenario, simulate, texts_of
from tests.commands import Answer, noetlvm

__all__ = ["noetlvm"]  # a fixture

PLANTED_SEEDS = 60
Damage: TypeAlias = Callable[[Recorded], list[Recorded] | None]
"""Returns what stands in a log instead of an event; None: the event stays."""


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
    text = failure_text(failing)
    assert f"reproduce: noetlvm sim --seeds {failing.seed}..{failing.seed}" in text.splitlines()


def test_the_command_exits_with_one_and_says_how_to_repeat_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from noetlvm.sim import checker

    monkeypatch.setattr(checker, "EVENT_BYTES_MAX", 10)  # every event is too large now
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

    monkeypatch.setattr("noetlvm.sim.campaign.run_seeds", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sim(seeds="0..9", report=str(tmp_path / "report.json"))
    assert json.loads((tmp_path / "report.json").read_text())["seeds"] == "0..1"
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_random_playbooks_are_valid_and_compile_to_the_same_bytes_unchecked() -> None:
    for seed in range(40):
        texts = texts_of(Scenario.of(seed))
        assert compile_valid(texts) == compile_texts(texts)


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


def breaks(invariant: str, damage: Damage) -> bool:
    """Say whether the checker sees that an invariant is broken in a log with one such damage."""
    for seed in range(40):
        scenario = Scenario.of(seed)
        history = simulate(scenario)
        for id, log in history.logs.items():
            for at, recorded in enumerate(log.events):
                changed = damage(recorded)
                if changed is not None:
                    events = [*log.events[:at], *changed, *log.events[at + 1 :]]
                    logs = history.logs | {id: log._replace(events=events)}
                    if invariant in {one.invariant for one in check(scenario, history._replace(logs=logs))}:
                        return True
    return False


def _dropped(name: str) -> Damage:
    return lambda recorded: [] if recorded.event.name == name else None


def _doubled(name: str) -> Damage:
    return lambda recorded: [recorded, recorded] if recorded.event.name == name else None


def _with(name: str, **data: Any) -> Damage:
    def change(recorded: Recorded) -> list[Recorded] | None:
        event = recorded.event
        if event.name != name or not (set(data) & set(event.data)):
            return None
        return [recorded._replace(event=event._replace(data=event.data | data))]

    return change


def _replaced(name: str, **fields: Any) -> Damage:
    return lambda recorded: (
        [recorded._replace(event=recorded.event._replace(**fields))] if recorded.event.name == name else None
    )


def _early(name: str) -> Damage:
    return lambda recorded: [recorded._replace(timestamp=0.0)] if recorded.event.name == name else None


DAMAGES: dict[str, Damage] = {
    "dense": _dropped("step.started"),
    "order": _doubled("playbook.processed"),
    "token_once": _doubled("step.scheduled"),
    "conserved": _dropped("token.rejected"),
    "gate": _with("token.rejected", reason="denied"),
    "run_once": _doubled("step.done"),
    "arc_once": _with("next.evaluated", arcs=[7]),
    "finished": _with("workflow.finished", status="strange"),
    "leases_grow": _with("step.scheduled", lease=0),
    "in_flight": _with("loop.started", width=99),
    "iterations": _doubled("loop.iteration.done"),
    "reduced": _with("ctx.patched", patch={"unknown": 1}),
    "attempts": _doubled("task.started"),
    "pace": _with("task.started", ts=0.0),
    "rate": _early("loop.iteration.started"),
    "ctx": _with("ctx.patched", patch={"unknown": 1}),
    "paused": _dropped("execution.resumed"),
    "sizes": _with("task.done", outcome={"result": "x" * (EVENT_BYTES_MAX + 1)}),
    "labels": _replaced("task.started", label="unknown"),
    "secrets": _with("task.done", outcome={"result": SECRET}),
    "effects": lambda recorded: [] if recorded.event[0] == "task.started" and recorded.event.attempt == 2 else None,
    "children": _doubled("child.finished"),
}
"""A damage of a log for each invariant that one log can break."""


@pytest.mark.parametrize("name", DAMAGES)
def test_the_checker_sees_a_damaged_log(name: str) -> None:
    assert breaks(name, DAMAGES[name])


def _another_child(history: History) -> dict[str, Any]:
    log = next(log for log in history.logs.values() if log.row.parent)
    return {"logs": history.logs | {"other": log._replace(row=log.row._replace(execution_id="other"))}}


def _unfinished(history: History) -> dict[str, Any]:
    id, log = next(iter(history.logs.items()))
    return {"logs": history.logs | {id: log._replace(row=log.row._replace(ended=None))}}


OTHER_DAMAGES: list[tuple[str, Callable[[History], dict[str, Any]]]] = [
    ("finished", _unfinished),
    ("children", _another_child),
    ("effects", lambda history: {"calls": [history.calls[0]._replace(seq=0)]}),
    ("effects", lambda history: {"calls": history.calls * 20}),
    ("requests", lambda _history: {"answers": {0: {"one", "another"}}}),
    ("requests", lambda history: {"answers": {}, "logs": dict(list(history.logs.items())[1:])}),
    ("secrets", lambda history: {"blobs": history.blobs | {"key": SECRET.encode()}}),
    ("secrets", lambda _history: {"log_lines": [f"it fails: {SECRET}"]}),
    ("snapshots", lambda history: {"unlike_snapshots": [next(iter(history.logs))]}),
    ("replay", lambda history: {"differences": {next(iter(history.logs)): 3}}),
    ("alive", lambda _history: {"failures": [("server 0", KeyError("run"))]}),
    ("progress", lambda _history: {"left": ["a command is open"]}),
]
"""What else of a history breaks an invariant."""


@pytest.mark.parametrize(("name", "damage"), OTHER_DAMAGES)
def test_the_checker_sees_a_damaged_history(name: str, damage: Callable[[History], dict[str, Any]]) -> None:
    for seed in range(20):  # one with a child
        scenario = Scenario.of(seed)
        history = simulate(scenario)
        if any(log.row.parent for log in history.logs.values()):
            changed = history._replace(**damage(history))
            assert name in {violation.invariant for violation in check(scenario, changed)}
            return
    raise AssertionError("no seed has a child")


def test_every_invariant_is_seen_to_be_broken() -> None:
    assert set(DAMAGES) | {name for name, _ in OTHER_DAMAGES} == set(INVARIANTS)
