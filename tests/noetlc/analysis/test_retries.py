"""How long retries wait."""

from __future__ import annotations

import pytest

from noetlc.analysis.flow import Waits, duration, waits
from noetlc.syntax.ast import Then
from noetlc.syntax.nodes import Scalar, ScalarValue
from noetlc.syntax.span import Span


def scalar(value: ScalarValue) -> Scalar | None:
    return None if value is None else Scalar(Span(0, 0), value, str(value), "")


def waits_of(attempts: ScalarValue, backoff: str | None, delay: ScalarValue) -> Waits | None:
    return waits(Then(span=Span(0, 0), attempts=scalar(attempts), backoff=scalar(backoff), delay=scalar(delay)))


@pytest.mark.parametrize(
    ("attempts", "backoff", "delay", "expected"),
    [
        (4, "none", 10, Waits(30, None)),
        (4, None, 10, Waits(30, None)),
        (4, "linear", 10, Waits(60, None)),
        (4, "exponential", 10, Waits(70, None)),
        (None, "none", 1.5, Waits(3, None)),
        (1, "none", 10, Waits(0, None)),
        (3, "none", 3600, Waits(7200, None)),
        (3, "none", 5000, Waits(7200, 1)),
        (5, "linear", 1800, Waits(1800 + 3600 * 3, 3)),
        (5, "exponential", 1800, Waits(1800 + 3600 * 3, 3)),
        (3, "exponential", 10**400, Waits(7200, 1)),
        (3, "linear", float("inf"), Waits(7200, 1)),
        (-5, "none", 10, Waits(0, None)),
    ],
)
def test_waits_follow_the_backoff_and_stop_at_an_hour(
    attempts: ScalarValue, backoff: str | None, delay: ScalarValue, expected: Waits
) -> None:
    assert waits_of(attempts, backoff, delay) == expected


@pytest.mark.parametrize("backoff", ["none", "linear", "exponential"])
def test_waits_agree_with_counting_one_by_one(backoff: str) -> None:
    factors = {"none": [1] * 30, "linear": list(range(1, 31)), "exponential": [2**n for n in range(30)]}[backoff]
    for attempts in range(1, 30):
        single = [7 * factor for factor in factors[: attempts - 1]]
        found = waits_of(attempts, backoff, 7)
        assert found is not None
        assert found.total == sum(min(wait, 3600) for wait in single)
        capped = [number for number, wait in enumerate(single, 1) if wait > 3600]
        assert found.capped_from == (capped[0] if capped else None)


@pytest.mark.parametrize("delay", [None, 0, -1, float("nan"), "{{ ctx.wait }}"])
def test_waits_that_are_none_or_not_known(delay: ScalarValue) -> None:
    assert waits_of(3, "none", delay) is None


@pytest.mark.parametrize("backoff", ["none", "linear", "exponential"])
def test_numbers_beyond_reason_are_answered_at_once(backoff: str) -> None:
    assert waits_of(10**400, backoff, 5e-324) is not None


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0, "0 s"), (59.6, "1 min"), (61, "1 min 1 s"), (3600, "1 h"), (90061, "1 d 1 h")],
)
def test_durations_read_well(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected
