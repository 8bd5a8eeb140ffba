"""Compares a reported run with a case's expectation, which is partial: what it does not mention may be anything."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

Shown: TypeAlias = dict[str, Any]


def complaints(expect: dict[str, Any], shown: Shown) -> list[str]:
    """Return what is not as expected."""
    return [complaint for key, judge in _JUDGES.items() if key in expect for complaint in judge(expect[key], shown)]


def fits(expected: Any, found: Any) -> bool:
    """Return whether data matches an expectation: a mapping may have more keys, anything else is equal."""
    if isinstance(expected, dict):
        return isinstance(found, dict) and all(key in found and fits(expected[key], found[key]) for key in expected)
    if isinstance(expected, list):
        return isinstance(found, list) and len(found) == len(expected) and all(map(fits, expected, found))
    return (type(expected) is type(found) and bool(expected == found)) or _same_number(expected, found)


def _same_number(expected: Any, found: Any) -> bool:
    numbers = not isinstance(expected, bool) and not isinstance(found, bool)
    return numbers and isinstance(expected, (int, float)) and isinstance(found, (int, float)) and expected == found


def _equal(name: str) -> Callable[[Any, Shown], Iterator[str]]:
    def judge(expected: Any, shown: Shown) -> Iterator[str]:
        if shown.get(name) != expected:
            yield f"{name} is {shown.get(name)!r}, not {expected!r}"

    return judge


def _failures(expected: list[Any], shown: Shown) -> Iterator[str]:
    found = [failure | {"line": _line(failure)} for failure in shown["failures"]]
    fields = [{key: value for key, value in wanted.items() if key != "says"} for wanted in expected]
    if not fits(fields, found):
        yield f"failures are {found}"
        return
    for wanted, failure in zip(expected, found, strict=True):
        if wanted.get("says", "") not in failure["error"]["message"]:
            yield f"a failure does not say {wanted['says']!r}: {failure['error']['message']}"


def _line(failure: Shown) -> int:
    place = re.search(r":(\d+):\d+$", str(failure["error"].get("details", {}).get("place", "")))
    return int(place[1]) if place else 0


def _calls(expected: list[Any], shown: Shown) -> Iterator[str]:
    """The calls listed are made, in this order; what pipelines do at the same moment may be reported in any order."""
    left = list(shown["calls"])
    for wanted in expected:
        found = next((call for call in _next_calls(left) if fits(wanted, call)), None)
        if found is None:
            yield f"the call {wanted} is missing or out of order; the remaining calls are {left}"
            return
        left.remove(found)
    if left:
        yield f"there are more calls: {left}"


def _next_calls(left: list[Shown]) -> list[Shown]:
    """Return the first call of each pipeline among those of the earliest moment."""
    first: dict[tuple[str, str], Shown] = {}
    for call in left:
        if call["at"] == left[0]["at"]:
            first.setdefault((call["step"], call["iteration"]), call)
    return list(first.values())


def _events(expected: list[Any], shown: Shown) -> Iterator[str]:
    """The events listed happen, in this order, among others."""
    left = iter(shown["events"])
    for wanted in expected:
        wanted = {"name": wanted} if isinstance(wanted, str) else wanted
        if not any(fits(wanted, event) for event in left):
            yield f"there is no {wanted}, or not after what is listed before it"
            return


def _absent(expected: list[str], shown: Shown) -> Iterator[str]:
    for name in {event["name"] for event in shown["events"]} & set(expected):
        yield f"there is a {name}"


def _counts(expected: dict[str, int], shown: Shown) -> Iterator[str]:
    counts = Counter(event["name"] for event in shown["events"])
    for name, count in expected.items():
        if counts[name] != count:
            yield f"there are {counts[name]} {name}, not {count}"


def _steps(expected: list[str], shown: Shown) -> Iterator[str]:
    scheduled = [event["data"] for event in shown["events"] if event["name"] == "step.scheduled"]
    found = [data["step"] for data in scheduled if "step" in data]
    if found != expected:
        yield f"the steps are {found}"


def _seconds(expected: float, shown: Shown) -> Iterator[str]:
    if shown["events"][-1]["at"] != expected:
        yield f"it took {shown['events'][-1]['at']} seconds"


def _task_runs(expected: dict[str, list[int]], shown: Shown) -> Iterator[str]:
    """The calls of a task have equal identifiers exactly where the expected numbers are equal."""
    for task, numbers in expected.items():
        keys = [call["key"] for call in shown["calls"] if call["task"] == task]
        found = [list(dict.fromkeys(keys)).index(key) for key in keys]
        if found != numbers:
            yield f"the task runs of {task} are {found}"


def _children(expected: list[dict[str, Any]], shown: Shown) -> Iterator[str]:
    if len(shown["children"]) != len(expected):
        yield f"there are {len(shown['children'])} children"
        return
    for wanted, child in zip(expected, shown["children"], strict=True):
        yield from complaints(wanted, child)


def _depth(expected: int, shown: Shown) -> Iterator[str]:
    depth = 0
    while shown["children"]:
        depth, shown = depth + 1, shown["children"][0]
    if depth != expected:
        yield f"there are {depth} executions below"


def _never(expected: list[str], shown: Shown) -> Iterator[str]:
    answer = json.dumps(shown, ensure_ascii=False)
    yield from (f"the answer contains {text}" for text in expected if text in answer)


def _event_bytes(expected: int, shown: Shown) -> Iterator[str]:
    for event in shown["events"]:
        if len(json.dumps(event)) > expected:
            yield f"a {event['name']} has {len(json.dumps(event))} bytes"


_JUDGES: dict[str, Callable[[Any, Shown], Iterator[str]]] = {
    "status": _equal("status"),
    "ctx": _equal("ctx"),
    "result": _equal("result"),
    "failures": _failures,
    "calls": _calls,
    "events": _events,
    "absent": _absent,
    "counts": _counts,
    "steps": _steps,
    "seconds": _seconds,
    "in_flight": _equal("in_flight"),
    "task_runs": _task_runs,
    "children": _children,
    "depth": _depth,
    "never": _never,
    "event_bytes": _event_bytes,
}
"""The keys of an expectation, and the function that checks each."""

WORDS = frozenset(_JUDGES)
IN_ANY_ORDER = WORDS & {"status", "ctx", "result", "failures", "counts", "in_flight", "seconds", "children", "never"}
"""The keys that hold under every schedule."""
