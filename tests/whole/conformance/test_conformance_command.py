"""`noetlvm conformance`: the suite by stage, through the protocol, against this implementation and any other."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from noetlvm.conformance.stages import OwnImplementation, judge
from noetlvm.conformance.suite import FILES, Suite
from tests.whole.conformance.suite import SUITE

ROOT = SUITE.parent
OURS = """\
import runpy, sys
program = "noetlvm.testing" if sys.argv[1] in ("run", "replay") else "noetlc"
sys.argv[0] = program
runpy.run_module(program, run_name="__main__", alter_sys=True)
"""


def conformance(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "noetlvm", "conformance", *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


@pytest.fixture
def other(tmp_path: Path) -> str:
    """The command of an implementation that is another program."""
    program = tmp_path / "implementation.py"
    program.write_text(OURS, encoding="utf-8")
    return f"{sys.executable} {program}"


SHARES = {"migrate": 10}
"""One case in so many: all of them run beside the migration's own tests."""


@pytest.mark.parametrize("stage", [stage for stage in FILES if stage not in ("run", "lint")])
def test_every_case_of_a_stage_passes(stage: str, tmp_path: Path) -> None:
    implementation = OwnImplementation()
    cases = Suite(SUITE).cases(stage)[:: SHARES.get(stage, 1)]
    found = {case.id: judge(case, implementation, tmp_path) for case in cases}
    assert cases
    assert {id: problems for id, problems in found.items() if problems} == {}


def test_another_implementation_is_called_through_the_protocol(other: str, tmp_path: Path) -> None:
    cases = [word for id in ids_of_each() for word in ("--case", id)]
    report = tmp_path / "report.xml"
    done = conformance("--command", other, "--json", "--junit", str(report), *cases)
    found = json.loads(done.stdout)
    assert (done.returncode, found["failed"], found["passed"]) == (0, 0, len(FILES)), done.stdout
    assert found["rows_without_case"] == []
    suites = ElementTree.parse(report).getroot()
    assert {suite.get("name") for suite in suites} == {f"{other}.{stage}" for stage in FILES}
    assert suites.find(".//failure") is None


def ids_of_each() -> list[str]:
    """One case of each stage."""
    suite = Suite(SUITE)
    return [next(case.id for case in suite.cases(stage) if not case.expect.get("broken")) for stage in FILES]


def test_an_implementation_that_answers_something_else_fails_each_case(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    cases = [word for id in ids_of_each() for word in ("--case", id)]
    done = conformance("--command", "echo {}", "--junit", str(report), *cases)
    assert done.returncode == 1
    assert done.stdout.count(" fails\n") == len(FILES)
    assert len(ElementTree.parse(report).getroot().findall(".//failure")) == len(FILES)


def test_rows_without_a_case_are_reported_and_fail_the_run(tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    shutil.copytree(SUITE, suite)
    table = suite / "requirements.csv"
    table.write_text(table.read_text(encoding="utf-8") + "S99-1,semantics,S99,MUST,A hole.,run,no-such-case\n")
    done = conformance("--suite", str(suite), "--case", "retry-then-ok")
    assert done.returncode == 1
    assert "no case checks these rows of requirements.csv: S99-1" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--stage", "runn"], "there is no stage `runn`"),
        (["--mode", "sqlite", "--stage", "lint"], "does not depend on the mode"),
        (["--suite", "docs"], "docs is not a conformance suite"),
        (["--command", "no-such-program", "--case", "retry-then-ok"], "`no-such-program` cannot be run"),
        (["--case", "retry-then-ok", "--case", "retry-than-ok"], "did you mean `retry-then-ok`?"),
        (["--case", "retry-then-ok", "--stage", "lint"], "no case `retry-then-ok` of the stages lint"),
        (["--store", "sqlite:x.db"], "--store needs --mode sqlite or --mode postgres"),
        (["--mode", "sqlite", "--wake", "nats://x"], "--wake needs --mode postgres"),
        (["--mode", "sqlite", "--store", "postgresql://x"], "--mode sqlite takes --store sqlite:FILE"),
        (["--mode", "postgres", "--store", "sqlite:x.db"], "--mode postgres takes --store postgresql:"),
        (["--mode", "sqlite", "--command", "x"], "exclude each other"),
        (
            ["--mode", "postgres", "--store", "mysql://x", "--wake", "nats://x", "--case", "retry-then-ok"],
            "is not a store",
        ),
    ],
)
def test_what_cannot_run_says_why(words: list[str], message: str) -> None:
    done = conformance(*words)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
