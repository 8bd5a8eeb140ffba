"""How the benchmarks measure, judge and show. Nothing here asserts a time."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from bench.check_once import check_once
from bench.front_end_profile import stage_table
from bench.generate_playbooks import playbook
from bench.measurement import Contestant, Goal, Row, at_most, best_of, faster
from bench.run import JOBS, main, table
from bench.workplace import Workplace


def test_contestants_take_turns_and_are_prepared_before_each() -> None:
    said: list[str] = []
    contestants = [
        Contestant("a", lambda: said.append("a"), lambda: said.append("ready")),
        Contestant("b", lambda: said.append("b")),
    ]
    times = best_of(contestants, 2)
    assert said == ["ready", "a", "b", "ready", "a", "b"]
    assert set(times) == {"a", "b"}


@pytest.mark.parametrize(
    ("goal", "ours", "theirs", "met"),
    [
        (faster(5), 1.0, 5.0, True),
        (faster(5), 1.0, 4.0, False),
        (faster(1), 2.0, 1.0, False),
        (at_most(6), 6.0, 1.0, True),
        (at_most(6), 7.0, 1.0, False),
        (at_most(6), 7.0, None, None),
        (None, 7.0, 1.0, None),
    ],
)
def test_a_goal_is_judged_only_beside_a_peer(
    goal: Goal | None, ours: float, theirs: float | None, met: bool | None
) -> None:
    assert Row("job", ours, "peer", theirs, goal).met is met


def test_a_missing_peer_is_shown_as_missing() -> None:
    shown = table([Row("lint", 0.5, "cfn-lint", None, faster(20)), Row("lint", 2.0, "yamllint 1", 20.0, faster(5))])
    heading, missing, present = shown.splitlines()
    assert heading.split()[:3] == ["job", "ours", "beside"]
    assert missing.split()[:5] == ["lint", "500.0", "ms", "cfn-lint", "missing"]
    assert missing.endswith(" -")
    assert present.endswith(" yes")


def test_a_profile_ranks_stages_and_sums_them_up() -> None:
    first, second, last = stage_table({"parse": 0.001, "read": 0.003}).splitlines()
    assert first.split() == ["3.0", "ms", "75.0%", "read"]
    assert second.split() == ["1.0", "ms", "25.0%", "parse"]
    assert last.split() == ["4.0", "ms", "100.0%", "all"]


def test_a_check_is_timed_by_stage_and_by_rule(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(playbook(0, 40), encoding="utf-8")
    assert list(check_once(file, by_rule=False)) == ["read", "parse", "templates", "rules"]
    assert "P101 duplicate-step" in check_once(file, by_rule=True)


def test_forgetting_results_keeps_the_parse_tables(tmp_path: Path) -> None:
    workplace = Workplace(tmp_path, rounds=1)
    workplace.cache.mkdir()
    for name in ("lint-0123.json", "playbook-0123.json"):
        (workplace.cache / name).write_text("{}", encoding="utf-8")
    workplace.require_results()
    workplace.forget_results()
    assert [file.name for file in workplace.cache.iterdir()] == ["playbook-0123.json"]
    with pytest.raises(RuntimeError, match="kept no results"):
        workplace.require_results()


def test_an_unexpected_exit_code_stops_a_benchmark(tmp_path: Path) -> None:
    workplace = Workplace(tmp_path, rounds=1)
    assert workplace.run([sys.executable, "-c", "print('said')"]) == "said\n"
    with pytest.raises(RuntimeError, match="exit code 3"):
        workplace.run([sys.executable, "-c", "import sys; sys.exit(3)"])


def test_figures_of_one_job_are_printed_as_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(JOBS, "startup", lambda workplace: [Row("start", 1.0, "python", 0.5, at_most(6))])
    assert main(["--only", "startup", "--quick", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["job"], row["share"], row["met"]) == ("start", 2.0, True)
