"""The protocol of the conformance suite, spoken by the real command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from noetlvm.conformance.suite import Spot
from tests.whole.conformance.suite import SUITE, Case, read_all_cases
from tests.whole.conformance.verdict import complaints

CASES = {case.id: case for case in read_all_cases()}
FINDING_FIELDS = {"code", "severity", "message", "path", "line", "column"}
PROBLEM_FIELDS = {"kind", "message", "line", "column"}


def answer_to(case: Case) -> tuple[int, Any]:
    """Call the command as the protocol says; return its exit code and its answer."""
    return call("noetlc", case.stage, "--format", "json", str(case.path))


def call(*words: str) -> tuple[int, Any]:
    command = [sys.executable, "-m", *words]
    answer = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, cwd=SUITE.parent)
    return answer.returncode, json.loads(answer.stdout)


@pytest.mark.parametrize("case", [CASES["next-unknown-step"], CASES["root-minimal-ok"]], ids=lambda case: case.id)
def test_lint_prints_one_array_and_its_exit_code_reports_errors(case: Case) -> None:
    exit_code, findings = answer_to(case)
    assert exit_code == case.expect["exit"]
    assert all(set(finding) >= FINDING_FIELDS for finding in findings)
    errors = {Spot.of(finding) for finding in findings if finding["severity"] == "error"}
    assert errors == case.spots("findings")


@pytest.mark.parametrize("case", [CASES["yaml-duplicate-key"], CASES["parse-minimal-ok"]], ids=lambda case: case.id)
def test_parse_prints_one_object_and_its_exit_code_reports_problems(case: Case) -> None:
    exit_code, answer = answer_to(case)
    assert exit_code == int(not case.expect["ok"])
    assert set(answer) == {"ok", "problems", "playbook"}
    assert all(set(problem) >= PROBLEM_FIELDS for problem in answer["problems"])
    assert {Spot.of(problem) for problem in answer["problems"]} == case.spots("problems")


@pytest.mark.parametrize(
    ("name", "exit_code"), [("child-keeps-to-itself", 0), ("retry-used-up", 1), ("request-refused", 1)]
)
def test_run_prints_one_object_and_its_exit_code_reports_the_ending(name: str, exit_code: int) -> None:
    case = CASES[name]
    files = [str(path) for path in (case.path, *case.companions)]
    given = str(case.path.with_suffix(".expect.json"))
    code, answer = call("noetlvm.testing", "run", *files, "--given", given)
    assert code == exit_code
    assert complaints(case.expect, answer) == []


def test_replay_prints_the_state() -> None:
    case = CASES["log-within-nested-loops"]
    assert call("noetlvm.testing", "replay", str(case.path)) == (0, case.expect["state"])


def test_a_log_that_is_recorded_is_one_that_can_be_replayed(tmp_path: Path) -> None:
    case = CASES["retry-used-up"]
    given = str(case.path.with_suffix(".expect.json"))
    command = [*("-m", "noetlvm.testing", "record", str(case.path), "--given", given), "--events", "9"]
    log = tmp_path / "log.jsonl"
    log.write_bytes(subprocess.run([sys.executable, *command], capture_output=True, check=True).stdout)
    exit_code, state = call("noetlvm.testing", "replay", str(log))
    assert exit_code == 0
    assert state["runs"][0]["pipelines"][""]["task"] == "fetch"
