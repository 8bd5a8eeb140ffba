"""Cases that can fail: each passes as the code is, and does not when the sentence that it checks is broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from noetlvm.bytecode.program import BundleError
from noetlvm.testing.script import ScriptError
from tests.noetlc.canon import test_canonical_form
from tests.noetlc.codegen import test_golden_assembly
from tests.whole.conformance import (
    test_graph_cases,
    test_lint_cases,
    test_parse_cases,
    test_replay_cases,
    test_verify_cases,
)
from tests.whole.conformance.breaks import around, replaced, silent
from tests.whole.conformance.broken import OTHERS, Broken
from tests.whole.conformance.broken_runs import ENVELOPES, RUNS
from tests.whole.conformance.log_rules import problems
from tests.whole.conformance.suite import Case, read_all_cases, read_requirements
from tests.whole.conformance.test_run_cases import IN_ANY_ORDER, reported
from tests.whole.conformance.test_run_envelopes import emitted
from tests.whole.conformance.verdict import complaints

ROWS = read_requirements()
CASES = {(case.stage, case.id): case for case in read_all_cases()}
BROKEN = (*RUNS, *OTHERS)


# ---- verdicts


def run_complaints(case: Case) -> Iterator[str]:
    """Judge a case as it is, and under its schedules."""
    yield from complaints(case.expect, reported(case))
    expect = {key: value for key, value in case.expect.items() if key in IN_ANY_ORDER}
    for seed in range(case.expect.get("given", {}).get("schedules", 0)):
        yield from complaints(expect, reported(case, seed))


def judge_run(case: Case) -> None:
    assert next(run_complaints(case), None) is None


def judge_graph(case: Case) -> None:
    with TemporaryDirectory() as folder:
        test_graph_cases.test_graph_answers_as_the_case_expects(case, Path(folder))


JUDGES: dict[str, Callable[[Case], None]] = {
    "run": judge_run,
    "graph": judge_graph,
    "lint": test_lint_cases.test_lint_answers_as_the_case_expects,
    "parse": test_parse_cases.test_parse_answers_as_the_case_expects,
    "replay": test_replay_cases.test_a_log_folds_to_the_recorded_state,
    "verify": test_verify_cases.test_a_bundle_gets_the_answer_of_its_case,
    "compile": lambda case: test_golden_assembly.test_the_code_is_as_written_down(case.path),
    "canon": lambda case: test_canonical_form.test_each_pair_of_the_conformance_suite(case.path),
}


def is_accepted(stage: str, case: str) -> bool:
    """Return whether a case passes; one with an invalid bundle or an unexpected call does not.

    Any other exception is an error of the break, not a verdict of the case.
    """
    try:
        JUDGES[stage](CASES[stage, case])
    except (AssertionError, BundleError, ScriptError):
        return False
    return True


accepted_unbroken = cache(is_accepted)
"""For use before a break only: several sentences may have the same case."""


# ---- breaks


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.requirements.split()[0])
def test_the_case_of_a_requirement_fails_when_its_sentence_is_broken(
    broken: Broken, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert set(broken.requirements.split()) <= set(CASES[broken.stage, broken.case].expect["requirement"])
    assert accepted_unbroken(broken.stage, broken.case)
    broken.break_(monkeypatch)
    assert not is_accepted(broken.stage, broken.case)


WHOLE = CASES["run", "log-of-a-whole-run"]


@pytest.mark.parametrize("requirement", ENVELOPES)
def test_envelopes_that_a_run_emits_are_refused_when_the_sentence_is_broken(
    requirement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, breaks = ENVELOPES[requirement]
    assert requirement.partition(" ")[0] in WHOLE.expect["requirement"]
    (log,) = emitted(WHOLE, monkeypatch).values()
    assert problems(log) == []
    breaks(monkeypatch)
    (log,) = emitted(WHOLE, monkeypatch).values()
    assert any(problem in found for found in problems(log))


REFUSALS = {
    case.id: tuple(sorted({finding["code"] for finding in case.expect["findings"]}))
    for (stage, _), case in CASES.items()
    if stage == "lint" and case.expect["findings"]
}
"""By lint case: the rules that have to find what it refuses."""


@pytest.mark.parametrize("name", REFUSALS)
def test_a_case_of_lint_fails_when_its_rules_find_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert accepted_unbroken("lint", name)
    silent(*REFUSALS[name])(monkeypatch)
    assert not is_accepted("lint", name)


def test_every_requirement_has_a_break_or_says_why_none_is_possible() -> None:
    by_hand = {one for broken in BROKEN for one in broken.requirements.split()}
    by_lint = {row.id for row in ROWS if row.stage == "lint" and not REFUSALS.keys().isdisjoint(row.case_ids)}
    by_mutants = {row.id for row in ROWS if row.stage in {"run", "replay"} and not row.unbreakable}
    by_tests = {row.id for row in ROWS if row.stage == "process" and row.cases}
    broken = {*by_hand, *by_lint, *by_tests, *by_mutants, *(name.partition(" ")[0] for name in ENVELOPES)}
    assert [row.id for row in ROWS if (row.id in broken) == bool(row.unbreakable)] == []


# ---- the breaks themselves


class Target:
    """What the breaks below are for."""

    @staticmethod
    def add(left: int, *, right: int) -> int:
        return left + right


def test_a_break_refuses_a_call_that_the_function_would_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    around(Target, "add", lambda made, left, **_: made(left, right=0))(monkeypatch)
    assert Target.add(1, right=2) == 1
    with pytest.raises(TypeError, match="is_new"):
        Target.add(1, right=2, is_new=True)  # type: ignore[call-arg]


def test_a_function_is_replaced_by_one_with_the_same_parameters_only(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match="other arguments"):
        replaced(Target, "add", lambda left, factor: left)(monkeypatch)
    replaced(Target, "add", lambda left, *, right: left)(monkeypatch)
    assert Target.add(1, right=2) == 1
