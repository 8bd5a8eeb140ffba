"""The protocol of the conformance suite, spoken by the real command line."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.conformance.suite import SUITE, Case, place, read_all_cases

CASES = {case.id: case for case in read_all_cases()}
FINDING_FIELDS = {"code", "severity", "message", "path", "line", "column"}
PROBLEM_FIELDS = {"kind", "message", "line", "column"}


def ask(case: Case) -> tuple[int, Any]:
    """Call the command as the protocol says; return its exit code and its answer."""
    command = [sys.executable, "-m", "noetlc", case.stage, "--format", "json", str(case.path)]
    answer = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, cwd=SUITE.parent)
    return answer.returncode, json.loads(answer.stdout)


@pytest.mark.parametrize("case", [CASES["next-unknown-step"], CASES["root-minimal-ok"]], ids=lambda case: case.id)
def test_lint_prints_one_array_and_its_exit_code_tells_of_errors(case: Case) -> None:
    exit_code, findings = ask(case)
    assert exit_code == case.expect["exit"]
    assert all(set(finding) >= FINDING_FIELDS for finding in findings)
    errors = {place(finding) for finding in findings if finding["severity"] == "error"}
    assert errors == case.places("findings")


@pytest.mark.parametrize("case", [CASES["yaml-duplicate-key"], CASES["parse-minimal-ok"]], ids=lambda case: case.id)
def test_parse_prints_one_object_and_its_exit_code_tells_of_problems(case: Case) -> None:
    exit_code, answer = ask(case)
    assert exit_code == int(not case.expect["ok"])
    assert set(answer) == {"ok", "problems", "playbook"}
    assert all(set(problem) >= PROBLEM_FIELDS for problem in answer["problems"])
    assert {place(problem) for problem in answer["problems"]} == case.places("problems")
