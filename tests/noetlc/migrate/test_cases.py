"""Every case of `conformance/migrate`: recognised, migrated, compiled, and run along the path of the older rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from noetlc.finding import Severity
from noetlc.lint.check import check_source
from noetlc.migrate.constructs import CONSTRUCTS, Effect
from noetlc.migrate.migration import migrate_text
from noetlc.syntax.span import Source
from noetlvm.testing.__main__ import run_given
from tests.noetlc.migrate.older_rules import run_older

FOLDER = Path(__file__).parents[3] / "conformance" / "migrate"


class Case(NamedTuple):
    name: str
    text: str
    expect: dict[str, Any]

    @property
    def compiles(self) -> bool:
        return not self.expect.get("broken")


CASES = [
    Case(file.stem, file.read_text("utf-8"), json.loads((FOLDER / f"{file.stem}.expect.json").read_text("utf-8")))
    for file in sorted(FOLDER.glob("*.yaml"))
]
RUNNING = [case for case in CASES if case.compiles and not case.expect.get("compile_only")]
OLDER = [case for case in RUNNING if case.name.startswith(("eval-", "case-", "older-", "example-"))]


def named(case: Case) -> str:
    return case.name


def errors(text: str) -> list[str]:
    findings = check_source(Source("case.yaml", text)).findings
    return [f"{finding.code}: {finding.message}" for finding in findings if finding.severity is Severity.ERROR]


class Ran(NamedTuple):
    steps: list[str]
    calls: list[str]
    times: list[float]
    status: str
    ctx: dict[str, Any]


def run_migrated(case: Case) -> Ran:
    """Run a migrated case; steps that migration added do not count."""
    data = run_given([migrate_text(case.text).after], case.expect.get("given", {})).to_data()
    names = {step.get("step", step.get("name")) for step in yaml.safe_load(case.text)["workflow"]}
    steps = [event["data"]["step"] for event in data["events"] if event["name"] == "step.scheduled"]
    calls = [f"{call['step']}/{call['task']}" for call in data["calls"]]
    times = [call["at"] for call in data["calls"] if call["kind"] != "noop"]
    return Ran([step for step in steps if step in names], calls, times, data["status"], data["ctx"])


def test_there_are_at_least_eighty_cases_and_nearly_all_compile() -> None:
    assert len(CASES) >= 80
    assert sum(not errors(migrate_text(case.text).after) for case in CASES) >= 0.95 * len(CASES)


def test_every_construct_has_a_case() -> None:
    shown = {code for case in CASES for code in case.expect["codes"]}
    left = {code for code, row in CONSTRUCTS.items() if row.effect is not Effect.HAND}
    assert left - shown - {"R102"} == set()  # R102 is tested below: each case has a name and a path


@pytest.mark.parametrize("case", CASES, ids=named)
def test_the_dialect_and_the_constructs_are_recognised(case: Case) -> None:
    migration = migrate_text(case.text)
    assert migration.problem == ""
    assert migration.recognised.dialect == case.expect["dialect"]
    assert set(case.expect["codes"]) <= {change.code for change in migration.changes}


@pytest.mark.parametrize("case", CASES, ids=named)
def test_the_result_compiles_or_says_what_is_left(case: Case) -> None:
    migration = migrate_text(case.text)
    found = errors(migration.after)
    assert len(found) <= len(errors(case.text))
    if case.compiles:
        assert found == []
    else:
        assert migration.open_changes


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_second_migration_changes_nothing(case: Case) -> None:
    after = migrate_text(case.text).after
    assert migrate_text(after).after == after


@pytest.mark.parametrize("case", RUNNING, ids=named)
def test_the_result_runs_as_its_author_meant(case: Case) -> None:
    ran = run_migrated(case)
    assert (ran.steps, ran.status) == (case.expect["steps"], case.expect["status"])
    for key, value in case.expect.get("ctx", {}).items():
        assert ran.ctx[key] == value
    if "calls" in case.expect:
        assert ran.calls == case.expect["calls"]
    if "call_times" in case.expect:
        assert ran.times == case.expect["call_times"]


@pytest.mark.parametrize("case", OLDER, ids=named)
def test_the_path_is_the_one_that_the_older_rules_prescribe(case: Case) -> None:
    older = run_older(yaml.safe_load(case.text), case.expect.get("given", {}))
    ran = run_migrated(case)
    assert (ran.steps, ran.status) == (older.steps, older.status)
    calls = [call for call in ran.calls if not call.endswith(("_value", "_start"))]
    if case.name.startswith("eval-"):
        assert calls == older.calls
    elif "mode: parallel" in case.text:  # the oracle takes one item after the other
        assert sorted(labels(calls)) == sorted(labels(older.calls))
    else:
        assert labels(calls) == labels(older.calls)


def labels(calls: list[str]) -> list[str]:
    """Return the tasks without their steps: a task after an error is in a step of its own."""
    return [call.partition("/")[2] for call in calls]


def test_metadata_gets_the_name_or_path_that_is_missing() -> None:
    text = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata:\n  path: shop/load # here\nworkflow:\n  - step: start\n"
    migration = migrate_text(text)
    assert "metadata:\n  name: load\n  path: shop/load # here\n" in migration.after
    assert [change.code for change in migration.changes] == ["R102"]
