from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from noetlc.rules.catalogue import all_rules

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.commands import Answer

    Noetlc = Callable[..., Answer]


def test_all_rules_are_listed_one_a_line(noetlc: Noetlc) -> None:
    answer = noetlc("explain")
    assert answer.code == 0
    assert [line.split()[0] for line in answer.out.splitlines()] == [rule.code for rule in all_rules()]


@pytest.mark.parametrize("wanted", ["P007", "e007", "duplicate-key"])
def test_a_page_has_the_reason_and_both_examples(noetlc: Noetlc, wanted: str) -> None:
    page = noetlc("explain", wanted).out
    assert page.startswith("P007 duplicate-key (error)\n")
    assert page.index("Instead of") < page.index("write\n")
    assert "# noetlc: ignore[P007]" in page


@pytest.mark.parametrize(
    ("code", "meaning"),
    [("C002", "have the same path"), ("m001", "not a bundle"), ("V039", "must end with TRUTH")],
)
def test_codes_of_the_compiler_and_of_bundles_are_explained(noetlc: Noetlc, code: str, meaning: str) -> None:
    answer = noetlc("explain", code)
    assert answer.code == 0
    assert answer.out.startswith(f"{code.upper()}: ")
    assert meaning in answer.out
    assert meaning in json.loads(noetlc("explain", code, "--json").out)["summary"]


def test_all_pages_can_be_printed(noetlc: Noetlc) -> None:
    pages = noetlc("explain", "--all").out
    assert all(f"{rule.code} {rule.name} (" in pages for rule in all_rules())


def test_pages_are_also_data(noetlc: Noetlc) -> None:
    one = json.loads(noetlc("explain", "P007", "--json").out)
    assert set(one) == {"code", "name", "severity", "summary", "why", "bad", "good", "covers"}
    assert len(json.loads(noetlc("explain", "--json").out)) == len(all_rules())


@pytest.mark.parametrize(("wanted", "hint"), [("P0007", "`P007`"), ("duplicate-keys", "`duplicate-key`")])
def test_an_unknown_rule_is_exit_code_2_with_a_suggestion(noetlc: Noetlc, wanted: str, hint: str) -> None:
    answer = noetlc("explain", wanted)
    assert answer.code == 2
    assert f"Did you mean {hint}?" in answer.err
