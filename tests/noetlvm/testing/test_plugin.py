"""What tests of playbooks get: paths, exceptions, a short repr, fixtures, and schedules that reorder batches."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from noetlvm.testing import CompilationError, EndlessError, NotTheFoldError, ScriptError, run_playbook
from tests.whole.imports import ROOT

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: one, path: t/one }\n"
ONE = HEAD + "workflow:\n  - step: start\n    tool:\n      - get: { kind: http, url: https://example.org }\n"
PLUGIN = "noetlvm.testing.pytest_plugin"

TEST = """
def test_it(run_playbook):
    assert run_playbook("one.yaml", {"get": "ok 1"}).result == 1

def test_schedules(run_schedules):
    assert {ran.result for ran in run_schedules("one.yaml", {"get": "ok 1"}, schedules=3)} == {1}
"""


def test_a_playbook_may_be_a_path(tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(ONE)
    assert run_playbook(file, {"get": "ok 1"}).result == 1


def test_exceptions_can_be_caught_and_a_result_is_short_to_read() -> None:
    with pytest.raises(ScriptError):
        run_playbook(ONE, {})
    with pytest.raises(CompilationError):
        run_playbook("a: 1")
    assert issubclass(EndlessError, AssertionError)
    assert issubclass(NotTheFoldError, AssertionError)
    shown = repr(run_playbook(ONE, {"get": 'ok "' + "x" * 1000 + '"'}))
    assert shown.startswith("<success after 0 s: 1 step runs, 1 calls, ")
    assert len(shown) < 250
    assert "failed: no" in repr(run_playbook(ONE, {"get": "error boom no"}))


def test_the_plugin_offers_fixtures_that_find_playbooks_beside_the_test(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(ONE)
    (tmp_path / "test_one.py").write_text(TEST)
    command = [sys.executable, "-m", "pytest", "-q", "-p", PLUGIN, "-p", "no:cacheprovider", str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert "2 passed" in ran.stdout, ran.stdout + ran.stderr


def test_pytest_finds_the_plugin_by_its_entry_point() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {PLUGIN: PLUGIN}


LOOP = (
    HEAD
    + """workflow:
  - step: start
    loop: { in: "{{ range(6) }}", iterator: i, spec: { mode: parallel, max_in_flight: 6 } }
    tool:
      - get: { kind: http, url: https://example.org }
"""
)


def test_a_schedule_reorders_reports_that_arrive_together() -> None:
    def order(schedule: int | None) -> list[str]:
        ran = run_playbook(LOOP, {"get": "ok"}, schedule=schedule)
        return [event.iteration for event in ran.events if event.name == "loop.iteration.started"]

    assert order(None) == ["0", "1", "2", "3", "4", "5"]
    orders = {tuple(order(seed)) for seed in range(8)}
    assert len(orders) > 4
    assert order(3) == order(3)
