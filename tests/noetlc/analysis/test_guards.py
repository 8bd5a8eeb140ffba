"""What is known of guards before a run."""

from __future__ import annotations

import pytest

from noetlc.analysis.formulas import ERROR_OUTCOME, Facts, event_facts
from noetlc.analysis.guards import compares_only, covered, decide, names_read
from noetlc.syntax.nodes import Scalar, ScalarValue
from noetlc.syntax.span import Span

STEP_FAILED = event_facts("step.failed", "a", False)


def guard(value: ScalarValue) -> Scalar:
    return Scalar(Span(0, 0), value, str(value), "")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, True),
        (False, False),
        ("{{ true }}", True),
        ("{{ 1 == 1 }}", True),
        ("{{ 1 < 2 < 2 }}", False),
        ("{{ 'a' in ['a', 'b'] }}", True),
        ("{{ 3 not in (1, 2) }}", True),
        ("{{ 'false' }}", False),
        ("{{ not none }}", True),
        ("{{ not ctx.a or true }}", True),
        ("{{ ctx.a or true }}", None),  # the text `false` is true to `or` and false as a guard (S9)
        ("{{ ctx.a and false }}", False),
        ("{{ ctx.a and true }}", None),
        ("{{ 1 < 'a' }}", None),
        ("{{ ctx.a }}", None),
        ("{{ ctx.a is defined }}", None),
        ("{{ 1 == }}", None),
        ("{{ true }} and {{ false }}", None),
        ("ctx.a == 1", True),
        (" False ", False),
        ("", False),
    ],
)
def test_constant_guards_are_decided_and_others_are_not(value: ScalarValue, expected: bool | None) -> None:
    assert decide(guard(value)) is expected


def test_absent_guard_holds() -> None:
    assert decide(None) is True


@pytest.mark.parametrize(
    ("facts", "text", "expected"),
    [
        (ERROR_OUTCOME, "{{ outcome.status == 'error' }}", True),
        (ERROR_OUTCOME, "{{ outcome['status'] != 'error' }}", False),
        (ERROR_OUTCOME, "{{ outcome.status == 'error' and outcome.http.status == 429 }}", None),
        (ERROR_OUTCOME, "{{ outcome.status == 'ok' and outcome.result }}", False),
        (ERROR_OUTCOME, "{{ outcome.error }}", True),
        (ERROR_OUTCOME, "{{ outcome.error is not defined }}", False),
        (ERROR_OUTCOME, "{{ outcome.error == none }}", None),
        (ERROR_OUTCOME, "{{ outcome.error in [outcome.error] }}", None),
        (ERROR_OUTCOME, "{{ outcome[args.key] }}", None),
        (STEP_FAILED, "{{ event.name == 'step.done' or event.name == 'loop.done' }}", False),
        (STEP_FAILED, "{{ event.name in ['step.failed'] }}", True),
    ],
)
def test_facts_decide_what_they_can(facts: Facts, text: str, expected: bool | None) -> None:
    assert decide(guard(text), facts) is expected


def test_names_that_a_guard_reads() -> None:
    assert names_read(guard("{{ outcome.status == 'error' and ctx['a'] > _attempt }}")) == {
        "outcome",
        "ctx",
        "_attempt",
    }
    assert names_read(guard(True)) == frozenset()
    assert names_read(None) == frozenset()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ outcome.status == 'ok' }}", True),
        ("{{ 'ok' == outcome.status }}", True),
        ("{{ outcome.status != 'ok' }}", False),
        ("{{ outcome.status == 'ok' and ctx.a }}", False),
        ("{{ outcome.status }}", False),
        ("ok", False),
    ],
)
def test_guard_that_tests_one_path_only(text: str, expected: bool) -> None:
    assert compares_only(guard(text), "outcome.status", "ok") is expected


def test_rules_that_earlier_ones_cover_are_paired_with_them() -> None:
    texts = ["{{ a > 1 and b }}", "{{ c }}", "{{ a  > 1 and x and b }}", "{{ a }}", "{{ c or a }}", None, "{{ d }}"]
    rules = [(number, guard(text) if text else None) for number, text in enumerate(texts)]
    assert covered(rules) == [(2, 0), (4, 0), (6, 5)]
