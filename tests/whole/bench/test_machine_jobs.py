"""The benchmarks of the machine, on tiny sizes: their playbooks run, and their figures are of what they say."""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from bench import run_events
from bench.commit_once import commit_once
from bench.contest import Machine, bare_sqlite, best_costs, ours
from bench.measurement import Cost, Row, faster, within
from bench.noop_playbooks import chain, loop
from bench.run import table
from bench.run_once import run_once
from bench.workflow_peers import DBOS, machines_of
from bench.workplace import Workplace
from noetlc.finding import Severity
from noetlc.lint.check import check_source
from noetlc.syntax.span import Source
from noetlvm.bridge import compile_texts


def bundle_of(folder: Path, playbook: str) -> Path:
    bundle = folder / "playbook.nbc"
    bundle.write_bytes(compile_texts([playbook]))
    return bundle


@pytest.mark.parametrize("playbook", [chain(1), chain(3), loop(5)])
def test_a_playbook_lints_clean_of_errors(playbook: str) -> None:
    findings = check_source(Source("generated.yaml", playbook)).findings
    assert [finding for finding in findings if finding.severity is Severity.ERROR] == []


def test_a_chain_commits_once_a_step_and_once_to_begin(tmp_path: Path) -> None:
    cost = run_once(bundle_of(tmp_path, chain(4)), tmp_path)
    assert cost.commits == 4 + 1
    assert cost.events > 4 * 4
    assert cost.seconds > 0


def test_executions_at_once_share_their_commits(tmp_path: Path) -> None:
    cost = run_once(bundle_of(tmp_path, chain(2)), tmp_path, executions=5)
    assert cost.commits == 2 + 1


def test_a_loop_leaves_four_events_an_item(tmp_path: Path) -> None:
    few, many = (tmp_path / name for name in ("few", "many"))
    for folder in (few, many):
        folder.mkdir()
    events = [run_once(bundle_of(folder, loop(items)), folder).events for folder, items in ((few, 3), (many, 8))]
    assert events[1] - events[0] == 4 * 5


def test_a_run_that_fails_is_no_figure(tmp_path: Path) -> None:
    failing = chain(1).replace("kind: noop", 'kind: noop, args: { x: "{{ 1 / 0 }}" }')
    with pytest.raises(RuntimeError, match="1 of 1 executions did not succeed"):
        run_once(bundle_of(tmp_path, failing), tmp_path)


def test_the_floor_commits_rows(tmp_path: Path) -> None:
    assert commit_once(tmp_path, commits=2, rows=3).commits == 2
    with closing(sqlite3.connect(tmp_path / "floor.db")) as connection:
        assert connection.execute("SELECT count(*) FROM steps").fetchone() == (6,)


def test_machines_take_turns_in_folders_of_their_own_and_the_best_counts(tmp_path: Path) -> None:
    said = iter((0.5, 0.25))
    seen: list[Path] = []

    def command(folder: Path) -> list[str | Path]:
        seen.append(folder)
        return [sys.executable, "-c", f"print('noise'); print({json.dumps(json.dumps({'seconds': next(said)}))})"]

    costs = best_costs(Workplace(tmp_path, rounds=2), [Machine("fake", command)])
    assert costs == {"fake": Cost(0.25)}
    assert len(set(seen)) == 2


def test_ours_and_the_floor_run_in_processes(tmp_path: Path) -> None:
    floor, machine = bare_sqlite(1, 1), ours(Workplace(tmp_path, rounds=1), chain(1), durability="relaxed")
    costs = best_costs(Workplace(tmp_path, rounds=1), [floor, machine])
    assert costs[machine.name].commits == 2
    assert costs[floor.name].seconds > 0


def test_a_step_stays_within_its_volume(tmp_path: Path) -> None:
    assert [row.met for row in run_events.measure(Workplace(tmp_path, rounds=1, quick=True))] == [True, True]


def test_a_quick_run_requests_no_peers_and_a_missing_one_is_shown(tmp_path: Path) -> None:
    assert machines_of(Workplace(tmp_path, rounds=1, quick=True), [DBOS], "chain", 1) == []
    assert DBOS.row("run", Cost(1.0), {}, faster(5)).theirs is None


def test_a_limit_is_shown_in_its_unit() -> None:
    shown = table([within("log of a step", 600.0, 1_500, "B"), Row("an item", 0.0001, "another", 0.0002)])
    limit, item = (line.split("  ") for line in shown.splitlines()[1:])
    assert [cell.strip() for cell in limit if cell][1:4] == ["600 B", "what is allowed", "1,500 B"]
    assert [cell.strip() for cell in item if cell][1] == "100.0 µs"
