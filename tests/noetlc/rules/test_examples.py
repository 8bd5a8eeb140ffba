"""Every rule's own examples: the bad one fires it, the good one is clean. And the catalogue as a whole."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from noetlc.finding import Severity
from noetlc.lint.check import CheckedFile, check_bytes
from noetlc.rules.catalogue import RETIRED, all_rules, claimed_keys, whole_playbook
from noetlc.rules.rule import Rule

NOT_FROM_A_PLAYBOOK = {"P013"}
"""Found while ignores are applied, after the rules have run; tested with the ignores."""


def check(example: str) -> CheckedFile:
    return check_bytes("playbook.yaml", whole_playbook(example).encode("utf-8", "surrogateescape"))


def errors_of_others(checked: CheckedFile, rule: type[Rule]) -> list[str]:
    return [
        f"{finding.code} {finding.message}"
        for finding in checked.findings
        if finding.code != rule.code and finding.severity is Severity.ERROR
    ]


@pytest.mark.parametrize("rule", [rule for rule in all_rules() if rule.code not in NOT_FROM_A_PLAYBOOK])
def test_bad_example_fires_the_rule_and_no_other_error(rule: type[Rule]) -> None:
    checked = check(rule.bad)
    assert rule.code in {finding.code for finding in checked.findings}
    assert errors_of_others(checked, rule) == []


@pytest.mark.parametrize("rule", all_rules())
def test_good_example_is_clean(rule: type[Rule]) -> None:
    checked = check(rule.good)
    assert rule.code not in {finding.code for finding in checked.findings}
    assert errors_of_others(checked, rule) == []


@pytest.mark.parametrize("rule", all_rules())
def test_page_is_complete(rule: type[Rule]) -> None:
    file = rule.__module__.rpartition(".")[2]
    assert file == f"{rule.code}_{rule.name}".lower().replace("-", "_")
    assert re.fullmatch(r"P\d{3}", rule.code)
    assert rule.summary.endswith(".")
    assert len(rule.why) > 40
    assert isinstance(rule.severity, Severity)


def test_codes_and_names_are_unique() -> None:
    assert len({rule.code for rule in all_rules()}) == len(all_rules())
    assert len({rule.name for rule in all_rules()}) == len(all_rules())


def test_a_retired_code_is_never_used_again() -> None:
    assert RETIRED & {rule.code for rule in all_rules()} == set()


def test_a_number_that_no_rule_has_between_two_rules_is_retired() -> None:
    numbers = sorted(int(rule.code[1:]) for rule in all_rules())
    # The end of each ten is open for further rules.
    skipped = {
        f"P{one:03}" for low, high in pairwise(numbers) if low // 10 == high // 10 for one in range(low + 1, high)
    }
    assert skipped <= RETIRED, "the code of a rule that is gone belongs in RETIRED"


def test_a_key_is_claimed_by_one_rule_only() -> None:
    assert sum(len(rule.claims) for rule in all_rules()) == len(claimed_keys())
