"""Compares two logs of one playbook: equal up to identifiers, times, and the order that the definition leaves open.

The definition orders the events of one thread (a step run, or one iteration of its loop) and what causes what. It does
not order threads that run at once. So a log is divided into threads, and a thread is named by its origin instead of
its number: by the arcs that led to its step run, from the first token on, and its iteration. Within a thread, order
counts. Not compared are

- identifiers: of executions, bundles, events, tokens, step runs, leases, and the name of the result store;
- times: timestamps and durations, and keys of `ctx` that hold one, as a case specifies (`timed`);
- how results of iterations are grouped in storage (`stored`), which depends on the order in which they end.

Everything else is: names, data, task numbers, labels, attempts, and the logs of child executions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from noetlvm.data.event import Event, task_run_id
from noetlvm.rounds.identity import child_id
from noetlvm.testing.result import shown

CanonicalLog: TypeAlias = dict[str, list[Any]]
"""Events by thread: name, task, label, attempt and data."""

_IDENTIFIERS = {
    "playbook.execution.requested": ("execution", "bundle", "parent", "trace"),
    "step.scheduled": ("lease",),
    "task.started": ("ts",),
    "child.finished": ("key",),
    "loop.iteration.done": ("stored",),
}
"""Fields of each event that hold an identifier or a time."""
_REFERENCE = {"store", "key", "checksum", "size", "schema_hint"}
_MARK = "*"


class ExecutionLog(NamedTuple):
    """The events of an execution, and of its children."""

    execution_id: str
    events: list[Event]
    children: list[ExecutionLog]


def canonical(log: ExecutionLog, timed: Collection[str] = ()) -> CanonicalLog:
    """Return a log in the form in which equal runs are equal. `timed` are keys of `ctx` that hold a time."""
    found: CanonicalLog = {}
    for name, text in _events(log, timed):
        found.setdefault(name, []).append(json.loads(text))
    return found


def differences(expected: ExecutionLog, found: ExecutionLog, timed: Collection[str] = ()) -> list[str]:
    """Return descriptions of where two logs differ; empty: they are equal."""
    one, other = canonical(expected, timed), canonical(found, timed)
    problems = [f"the thread `{name}` is missing" for name in one if name not in other]
    problems += [f"unexpected thread `{name}`" for name in other if name not in one]
    for name in one.keys() & other.keys():
        problems += _first_difference(name, one[name], other[name])
    return sorted(problems)


def _first_difference(thread: str, expected: list[Any], found: list[Any]) -> Iterator[str]:
    for number, (one, other) in enumerate(zip(expected, found, strict=False), 1):
        if one != other:
            yield f"event {number} of `{thread}` is {json.dumps(other)}, not {json.dumps(one)}"
            return
    if len(expected) != len(found):
        longer, common = max(expected, found, key=len), min(len(expected), len(found))
        names = ", ".join(event[0] for event in longer[common:])
        yield f"`{thread}` has {len(found)} events, not {len(expected)}; the difference is {names}"


def _events(log: ExecutionLog, timed: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the thread and the text of each event of an execution and its children."""
    named = list(_executions(log, "execution"))
    names = {one.execution_id: name for name, one in named}
    identifiers = re.compile("|".join(map(re.escape, names)))
    for name, one in named:
        runs, tokens = _origins(one.events)
        for event in one.events:
            data = _named(event, tokens)
            if event.name == "ctx.patched":
                data["patch"] |= dict.fromkeys(data["patch"].keys() & timed, _MARK)
            text = json.dumps([event.name, event.task, event.label, event.attempt, data], sort_keys=True)
            yield _thread(name, event, runs, tokens), identifiers.sub(lambda found: names[found[0]], text)


def _executions(log: ExecutionLog, name: str) -> Iterator[tuple[str, ExecutionLog]]:
    """Yield an execution and its children, each named by the task that started it."""
    yield name, log
    children = {child.execution_id: child for child in log.children}
    runs, tokens = _origins(log.events)
    for event in log.events:
        if event.name == "task.started" and "child" in event.data:
            task_run = task_run_id(log.execution_id, event.run, event.iteration, event.task)
            child = children.pop(child_id(f"{task_run}.{event.attempt}"), None)
            if child is not None:
                yield from _executions(child, f"{_thread(name, event, runs, tokens)}#{event.task}.{event.attempt}")
    for child in children.values():
        yield from _executions(child, f"{name} unknown child")


def _thread(execution: str, event: Event, runs: Mapping[int, str], tokens: Mapping[int, str]) -> str:
    at_gate = event.name in ("token.denied", "token.rejected")
    origin = tokens[event.data["token"]] if at_gate else runs.get(event.run, "")
    return "/".join(filter(None, (execution, origin, event.iteration)))


def _origins(events: Iterable[Event]) -> tuple[dict[int, str], dict[int, str]]:
    """Return the names of step runs and of tokens by number: each is named by the arcs that led to it."""
    runs: dict[int, str] = {}
    tokens: dict[int, str] = {}
    arcs: dict[int, Iterator[int]] = {}
    for event in events:
        data = event.data
        if event.name == "next.evaluated":
            arcs[event.run] = iter(data["arcs"])
        elif event.name == "token.enqueued" and event.run:
            tokens[data["token"]] = f"{runs[event.run]}>{next(arcs[event.run])}"
        elif event.name == "token.enqueued":
            tokens[data["token"]] = "final" if data.get("final") else "first"
        elif event.name == "step.scheduled" and "token" in data:
            runs[event.run] = f"{tokens[data['token']]}:{data['step']}"
    return runs, tokens


def _named(event: Event, tokens: Mapping[int, str]) -> Any:
    """Return the data of an event with names for tokens, and marks for identifiers and times."""
    data = dict(shown(event.data))
    for field in _IDENTIFIERS.get(event.name, ()):
        if field in data:
            data[field] = _MARK
    if "token" in data:
        data["token"] = tokens[data["token"]]
    if event.name == "execution.cancelled":
        data["children"] = len(data["children"])
    if "outcome" in data:
        data["outcome"] = {key: value for key, value in data["outcome"].items() if key != "meta"}
    return _marked(data)


def _marked(value: Any) -> Any:
    """Return data without the date of HTTP headers and the name of the store that holds a result."""
    if isinstance(value, dict):
        if value.keys() == _REFERENCE:
            return value | {"store": _MARK}
        return {
            key: {name: text for name, text in item.items() if name.lower() != "date"}
            if key == "headers" and isinstance(item, dict)
            else _marked(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_marked(item) for item in value]
    return value
