"""Keeps the conformance suite honest: the table, the cases and the rules name each other, and nothing is left out."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from noetlc.rules.catalogue import all_rules, rules_by_code
from tests.whole.conformance.suite import FILES, STAGES_WITH_CASES, SUITE, Case, read_all_cases, read_requirements
from tests.whole.conformance.verdict import WORDS

SECTIONS: dict[str, str] = {
    "formal": "intro 1 1.1 1.2 2.1 2.2 2.3 2.4 3.1 3.2 3.3 4.1 4.2 4.3 4.4 5 6.1 6.2 6.3 6.4 7.1 7.2 7.3 "
    "8.1 8.2 8.3 9.1 9.2 10.1 10.2 10.3 11.1 11.2 12 13 A B",
    "brief": "intro 0 1.1 1.2 1.3 1.4 2 2.1 2.2 2.A 3.1 3.2 4.1 4.2 5.1 5.2 6 7.1 7.2 7.3 7.4 8 9 10 11 12 13 14",
    "step": "intro 1 2 2.1 3 3.1 3.2 4 5 5.1 5.2.1 5.2.2 5.3 5.4 5.5 6.1 6.2 6.3 6.4 7 7.1 8 9 9.1 10 11 12 13 14",
    "semantics": " ".join(f"S{number}" for number in (*range(1, 66), 88, 90)),
}
"""Every section with a requirement. Sections that only inform (step 15) have no rows."""

LEVELS = {"MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY", "REJECT", "WARN", "NOTE"}
STAGES = {"parse", "lint", "canon", "compile", "verify", "run", "replay", "graph", "process"}
DOCUMENT_TITLES = {"formal": "formal", "brief": "brief", "step spec": "step"}
REFUSALS = {"MUST NOT", "REJECT", "WARN", "NOTE"}
ANSWERS = {"run", "replay"}
"""Stages that answer with what happened: what must not happen shows by its absence, and nothing is refused."""
LISTED = {"lint": "findings", "parse": "problems"}
"""Under which key an expectation lists what must be reported, in the stages that report places."""

EXPECTATION_KEYS = {
    "lint": ({"requirement", "findings", "exit"}, {"absent", "exact"}),
    "parse": ({"requirement", "ok", "problems"}, {"playbook"}),
    "canon": ({"requirement"}, set()),
    "compile": ({"requirement"}, set()),
    "verify": ({"requirement", "code"}, {"mutation"}),
    "run": ({"requirement", "status"}, {"given", "timed", *WORDS}),
    "replay": ({"requirement", "state"}, set()),
    "graph": (
        {"requirement", "reachable", "unreachable", "dead_arcs", "can_complete", "bounded", "max_tokens", "findings"},
        set(),
    ),
}
"""For each stage, what an expectation must say and what it may say."""

ROWS = read_requirements()
CASES = read_all_cases()


def parents(section: str) -> set[str]:
    """Return a section and those it stands in: 5.4 is in 5."""
    parts = section.split(".")
    return {".".join(parts[:length]) for length in range(1, len(parts) + 1)}


def test_every_row_has_an_id_of_its_own() -> None:
    counts = Counter(row.id for row in ROWS)
    assert [row for row, count in counts.items() if count > 1] == []


def test_an_id_names_document_and_section() -> None:
    wrong = [
        row.id
        for row in ROWS
        if not re.fullmatch(
            rf"{row.section}-\d+" if row.document == "semantics" else rf"{row.document}-{row.section}-\d\d", row.id
        )
    ]
    assert wrong == []


def test_levels_and_stages_come_from_closed_sets() -> None:
    assert {row.level for row in ROWS} <= LEVELS
    assert {row.stage for row in ROWS} <= STAGES


@pytest.mark.parametrize("document", SECTIONS)
def test_every_section_with_a_requirement_has_rows(document: str) -> None:
    in_table = list(dict.fromkeys(row.section for row in ROWS if row.document == document))
    assert in_table == SECTIONS[document].split()


def test_documents_are_known() -> None:
    assert {row.document for row in ROWS} == set(SECTIONS)


def test_requirements_are_short_sentences() -> None:
    assert [row.id for row in ROWS if not row.requirement.endswith(".") or len(row.requirement) > 140] == []


def test_rows_and_cases_name_each_other() -> None:
    by_rows = {(row.id, case) for row in ROWS if row.stage != "process" for case in row.case_ids}
    by_cases = {(row, case.id) for case in CASES for row in case.expect["requirement"]}
    assert sorted(by_rows ^ by_cases) == []


def test_rows_of_processes_name_tests_that_exist() -> None:
    named = [name.partition("::")[::2] for row in ROWS if row.stage == "process" for name in row.case_ids]
    root = SUITE.parent
    missing = [name for name in named if f"\ndef {name[1]}(" not in (root / name[0]).read_text(encoding="utf-8")]
    assert missing == []


def test_the_recommended_documents_exist() -> None:
    pages = ("docs/semantics.md", "docs/events.md", "docs/service.md", "examples/plugins/noetl_quantum/README.md")
    assert [page for page in pages if not (SUITE.parent / page).is_file()] == []


def test_rows_of_stages_with_cases_have_one_of_their_own_stage() -> None:
    stage_of = {case.id: case.stage for case in CASES}
    bare = [
        row.id
        for row in ROWS
        if row.stage in STAGES_WITH_CASES and row.stage not in {stage_of.get(case) for case in row.case_ids}
    ]
    assert bare == []


def is_refused(case: Case) -> bool:
    """Return whether a case is one in which something must be found wrong."""
    return bool(case.spots(LISTED[case.stage])) if case.stage in LISTED else case.expect.get("code") is not None


def test_every_refusal_is_shown_by_a_case_that_is_refused_and_one_that_is_not() -> None:
    refusals = [row for row in ROWS if row.level in REFUSALS and row.stage in set(STAGES_WITH_CASES) - ANSWERS]
    refused = {case.id for case in CASES if is_refused(case)}
    assert [row.id for row in refusals if not refused & set(row.case_ids)] == []
    assert [row.id for row in refusals if refused >= set(row.case_ids)] == []


def test_every_case_checks_something_and_ids_are_unique() -> None:
    assert [case.id for case in CASES if not case.expect["requirement"]] == []
    assert len({case.id for case in CASES}) == len(CASES)


@pytest.mark.parametrize("stage", STAGES_WITH_CASES)
def test_playbooks_and_expectations_come_in_pairs(stage: str) -> None:
    ending = f".{FILES[stage]}"
    playbooks = {path.name.removesuffix(ending) for path in (SUITE / stage).glob(f"*{ending}")}
    expectations = {path.name.removesuffix(".expect.json") for path in (SUITE / stage).glob("*.json")}
    assert playbooks == expectations


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_an_expectation_has_the_shape_of_its_stage(case: Case) -> None:
    required, optional = EXPECTATION_KEYS[case.stage]
    assert required <= set(case.expect) <= required | optional
    if case.stage not in LISTED:
        return
    listed = case.spots(LISTED[case.stage])
    fails = any(place.severity == "error" for place in listed)
    assert fails == (not case.expect["ok"] if case.stage == "parse" else case.expect["exit"] == 1)


def test_codes_are_in_the_catalogue() -> None:
    lint_cases = [case for case in CASES if case.stage == "lint"]
    listed = {(case.id, place.what) for case in lint_cases for place in case.spots("findings")}
    absent = {(case.id, code) for case in lint_cases for code in case.expect.get("absent", ())}
    assert sorted(pair for pair in listed | absent if pair[1] not in rules_by_code()) == []


def test_what_a_rule_covers_is_in_the_table() -> None:
    known = {(row.document, section) for row in ROWS for section in parents(row.section)}
    missing = [
        (rule.code, sentence) for rule in all_rules() for sentence in rule.covers if section_of(sentence) not in known
    ]
    assert missing == []


def section_of(sentence: str) -> tuple[str, str]:
    """Return document and section of what a rule says it covers: `formal §13`, `step spec §5.4`, `S18`."""
    title, _, section = sentence.partition(" §")
    if section:
        return DOCUMENT_TITLES.get(title, title), section
    return "semantics", sentence
