"""How long a `retry` waits, by its attempts, backoff and delay (S14)."""

from __future__ import annotations

import math

from noetlc.syntax import ast
from noetlvm.record import Record

WAIT_MAX = 3600.0
"""Seconds: no single wait is longer."""
_DELAY_MIN = 1e-6
_RETRIES_MAX = 10**9

DEFAULT_ATTEMPTS = 3
"""Runs of the task, the first included, if the playbook does not say."""


class Waits(Record):
    """What all retries of one task run can wait, at the worst."""

    total: float
    capped_from: int | None
    """Number of the first retry, from 1, whose wait would be over the limit."""


def waits(then: ast.Then) -> Waits | None:
    """Return the waits of a `retry`, or None where they are not known before a run."""
    attempts = then.attempts.value if then.attempts else DEFAULT_ATTEMPTS
    delay = then.delay.value if then.delay else 0
    if not isinstance(attempts, int) or not isinstance(delay, int | float) or not delay > 0:
        return None
    # Numbers may be as large, or as small, as an author can write.
    first = float(max(min(delay, 2 * WAIT_MAX), _DELAY_MIN))
    backoff = then.backoff.text if then.backoff else "none"
    return _sum(_GROWTH.get(backoff, _none)(first), first, backoff, min(max(0, attempts - 1), _RETRIES_MAX))


def _none(delay: float) -> int:
    return 0 if delay > WAIT_MAX else -1


def _linear(delay: float) -> int:
    return math.floor(WAIT_MAX / delay)


def _exponential(delay: float) -> int:
    return max(0, math.floor(math.log2(WAIT_MAX / delay)) + 1)


_GROWTH = {"none": _none, "linear": _linear, "exponential": _exponential}
"""How many retries stay within the limit, by backoff; -1 if all of them do."""


def _sum(within: int, delay: float, backoff: str, retries: int) -> Waits:
    uncapped = retries if within < 0 else min(within, retries)
    if backoff == "linear":
        total = delay * uncapped * (uncapped + 1) / 2
    elif backoff == "exponential":
        total = delay * (2.0**uncapped - 1)
    else:
        total = delay * uncapped
    over = retries - uncapped
    return Waits(total + over * WAIT_MAX, uncapped + 1 if over else None)


def duration(seconds: float) -> str:
    """Return a length of time for people: `17 min 2 s`."""
    parts: list[str] = []
    left = round(seconds)
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"
