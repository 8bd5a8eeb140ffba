"""What a worker may report, and in which form: a server folds nothing into its state that has another.

An event that the fold cannot work with would end the server, and once it is in the log every other server too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from noetlvm.data.event import Event
from noetlvm.language.names import has_control

NUMBER_MAX = 2**53
"""Of runs, leases and tasks: databases end not far behind it, and nothing counts so far."""

_FIELDS = {"name": str, "data": dict, "run": int, "iteration": str, "task": int, "label": str, "attempt": int}
"""Types of an event's own fields."""

_ANY, _NUMBER = (object,), (int, float)


class _Key(NamedTuple):
    """A key of an event's data."""

    types: tuple[type, ...]
    is_required: bool = False
    inner: Mapping[str, _Key] = {}
    """Keys of its own that the fold reads; it may have others."""


_MAPPING, _FLAG, _TEXT = _Key((dict,)), _Key((bool,)), _Key((str,))
_ERROR = {"kind": _Key((str,), is_required=True), "message": _Key(_ANY, is_required=True)}
_ENDING = {"error": _Key((dict,), is_required=True, inner=_ERROR), "task": _TEXT, "at": _TEXT}
_BEFORE = {"task": _Key((str,), is_required=True), "attempt": _Key((int,), is_required=True)}
_CHILD = {
    "path": _Key((str,), is_required=True),
    "workload": _MAPPING,
    "timeout": _Key(_NUMBER),
    "return_step": _TEXT,
}
_OUTCOME = {"meta": _Key((dict,), inner={"ts": _Key(_NUMBER)}), "error": _Key((dict,), inner=_ERROR)}

_REPORTED: Mapping[str, Mapping[str, _Key]] = {
    "step.started": {},
    "loop.iteration.started": {},
    "task.started": {"ts": _Key(_NUMBER), "inputs": _Key(_ANY), "child": _Key((dict,), inner=_CHILD)},
    "task.done": {
        "outcome": _Key((dict,), is_required=True, inner=_OUTCOME),
        "do": _Key((str,), is_required=True),
        "pc": _Key((int,), is_required=True),
        "iter": _MAPPING,
        "ctx": _MAPPING,
        "wait_s": _Key(_NUMBER),
        "suspended": _FLAG,
        "rounds": _Key((list,)),
        "inputs": _Key(_ANY),
        "at": _TEXT,
        "answered": _Key(_ANY),
        "masked": _FLAG,
        "resumes": _Key((dict,), inner=_BEFORE),
        "bound": _FLAG,
        "again": _FLAG,
    },
    "step.done": {"result": _Key(_ANY)},
    "step.failed": _ENDING,
    "loop.iteration.done": {"result": _Key(_ANY)},
    "loop.iteration.failed": _ENDING,
}

_REQUIRED = {name: [key for key, known in keys.items() if known.is_required] for name, keys in _REPORTED.items()}


def reported_event(fields: Mapping[str, Any]) -> Event:
    """Return the event that a worker sends. Raises ValueError if no worker sends such a one."""
    if fields.keys() != _FIELDS.keys() or not all(isinstance(fields[name], kind) for name, kind in _FIELDS.items()):
        raise ValueError("an event has unknown or missing fields")
    name, data = fields["name"], fields["data"]
    keys = _REPORTED.get(name)
    if keys is None:
        raise ValueError("workers do not report this event")
    for key, value in data.items():
        if key not in keys:
            raise ValueError(f"{name} has no `{key}`")
        _check(name, key, value, keys[key])
    for key in _REQUIRED[name]:
        if key not in data:
            raise ValueError(f"{name} lacks `{key}`")
    for field in fields.values():
        if field is data:
            continue
        if has_control(field) if isinstance(field, str) else not 0 <= field <= NUMBER_MAX:
            raise ValueError("a field of an event cannot be stored")
    return Event(**fields)


def _check(place: str, key: str, value: Any, known: _Key) -> None:
    """Refuse a value that has another type than the fold works with, or lacks a key of its own."""
    types, _, inner = known
    if not isinstance(value, types):
        raise ValueError(f"`{key}` of {place} is {type(value).__name__}")
    if inner and isinstance(value, dict):
        for own, expected in inner.items():
            if own in value:
                _check(f"{place}.{key}", own, value[own], expected)
            elif expected.is_required:
                raise ValueError(f"{place}.{key} lacks `{own}`")
