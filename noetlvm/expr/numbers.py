"""Numbers that templates give for `delay`, `timeout`, `attempts`, `max`, `max_in_flight` and `rate` (S52).

Headers, environment variables and command lines are text. So a text that is a number counts as one here, and anything
else is an error that shows the value.
"""

from __future__ import annotations

from math import inf
from typing import Any

from noetlvm.bytecode.limits import LIMIT_MAX
from noetlvm.expr.values import type_name
from noetlvm.limits import WAIT_SECONDS_MAX

_SHOWN = 80
"""Characters of a wrong value that a message shows."""


class NumberError(Exception):
    """A template gives no such number."""


def number_of(value: Any) -> Any:
    """Return the number that a text stands for; any other value as it is."""
    if not isinstance(value, str):
        return value
    try:
        return int(value) if value.strip().isdecimal() else float(value)
    except ValueError:
        return value


def seconds_of(value: Any, field: str) -> float:
    """Return a time to wait; raise NumberError."""
    seconds = number_of(value)
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not -inf < seconds < inf:
        raise NumberError(f"`{field}` must be a number of seconds, not {_shown(value)}")
    return seconds


def count_of(value: Any, field: str, least: int = 1) -> int:
    """Return a whole number from `least` on; raise NumberError."""
    number = number_of(value)
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if type(number) is not int or not least <= number <= LIMIT_MAX:
        raise NumberError(f"`{field}` must be a whole number from {least} to {LIMIT_MAX:,}, not {_shown(value)}")
    return number


def rate_of(value: Any) -> list[float]:
    """Return how many in how many seconds, of a mapping with `max` and `per`; raise NumberError."""
    per = value.get("per")
    seconds = seconds_of(per, "rate.per")
    if not 0 < seconds <= WAIT_SECONDS_MAX:
        raise NumberError(f"`rate.per` must be more than 0 and at most {WAIT_SECONDS_MAX:,} seconds, not {_shown(per)}")
    return [count_of(value.get("max"), "rate.max"), float(seconds)]


def _shown(value: Any) -> str:
    """Return a wrong value for people: what it is, and its beginning."""
    if isinstance(value, list | tuple | dict):
        return f"{type_name(value)} of {len(value):,}"
    if value is None or isinstance(value, bool):
        return type_name(value)
    text = f"the text {value!r}" if isinstance(value, str) else str(value)
    return f"{text[:_SHOWN]}{'…' if len(text) > _SHOWN else ''}"
