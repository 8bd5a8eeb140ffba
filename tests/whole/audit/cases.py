"""What an audit case is: a playbook as data, and what the language definition says that it does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

Data = dict[str, Any]


class Case(NamedTuple):
    """A playbook with its predicted end."""

    name: str
    playbook: Data
    expected: Data
    """Fields of `noetlvm run --json` that must be equal; `kinds`: the error kinds of its failures."""
    children: tuple[Data, ...] = ()


Cases = Iterator[Case]


def playbook(*steps: Data, path: str = "audit/main", **root: Any) -> Data:
    """Return a whole playbook over these steps."""
    head = {"apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": {"name": "audit", "path": path}}
    return head | root | {"workflow": list(steps)}


def step(name: str, *tasks: Data, to: Any = None, **more: Any) -> Data:
    """Return a step; `to` is a step's name, a list of arcs, or a router."""
    made: Data = {"step": name} | more
    if tasks:
        made["tool"] = list(tasks)
    if isinstance(to, str):
        to = {"arcs": [{"step": to}]}
    elif isinstance(to, list):
        to = {"arcs": to}
    if to:
        made["next"] = to
    return made


def noop(label: str, *rules: Data, **inputs: Any) -> Data:
    """Return a task that does nothing but apply its rules."""
    body: Data = {"kind": "noop"} | inputs
    if rules:
        body["spec"] = {"policy": {"rules": list(rules)}}
    return {label: body}


def rule(do: str, when: str | None = None, **more: Any) -> Data:
    """Return a rule; without a condition, the `else`."""
    then = {"do": do} | more
    return {"else": {"then": then}} if when is None else {"when": f"{{{{ {when} }}}}", "then": then}


def sets(label: str, **values: Any) -> Data:
    """Return a task that writes to `ctx`."""
    return noop(label, rule("continue", set_ctx=values))


def failing(label: str, times: str = "99", *rules: Data) -> Data:
    """Return a task whose first attempts fail: an input is undefined up to that attempt."""
    return noop(label, *rules, value=f"{{{{ workload.absent if _attempt <= {times} else 1 }}}}")


FAILED = "outcome.status == 'error'"
