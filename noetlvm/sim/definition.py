"""What a playbook says, evaluated without the machine: gates, guards, args, policies and reducers.

They have the forms that random playbooks give them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from noetlvm.sim.playbooks import (
    FAILED,
    INDEX,
    NEXT_ROUND,
    RETRYABLE,
    ROUNDS,
    SUCCEEDED,
    SUGAR,
    THREE,
    Document,
    tasks_in,
)

_WAIT_MAX = 3_600


class DefinedStep:
    """What a playbook says of a step."""

    def __init__(self, step: Document, *, guards_success: bool) -> None:
        self.name: str = step["step"]
        self.has_tool = "tool" in step
        self.tasks = dict(tasks_in(step))
        self.plain = {label for entry in step.get("tool", []) for label in entry} - SUGAR
        """Labels of tasks outside of sugar, which adds rules to those inside."""
        policy = step.get("spec", {}).get("policy", {})
        self.admit: dict[str, Any] | None = policy.get("admit")
        self.is_tolerant = policy.get("failure", {}).get("mode") == "best_effort"
        self.loops = list(_levels(step))
        routing = step.get("next", {})
        self.arcs: list[Document] = routing.get("arcs", [])
        self.is_inclusive = routing.get("spec", {}).get("mode") == "inclusive"
        self.guards_success = guards_success

    def is_parallel(self, loop: str) -> bool:
        """Return whether the loop within an iteration is parallel; the outermost is that of the empty path."""
        return bool(self.loops[level_of(loop)]["spec"]["mode"] == "parallel")

    def parallel_around(self, path: str) -> str:
        """Return the nearest iteration of a parallel loop around a path, or the path itself; empty: there is none."""
        while path:
            loop, _, _ = path.rpartition(".")
            if self.is_parallel(loop):
                return path
            path = loop
        return ""


def _levels(step: Document) -> Iterator[Document]:
    while "loop" in step:
        step = step["loop"]
        yield step


def level_of(loop: str) -> int:
    """Return the level of the loop within an iteration, from 0."""
    return loop.count(".") + 1 if loop else 0


def fires(step: DefinedStep, arc: Document, args: dict[str, Any], boundary: str) -> bool:
    """Return whether the guard of an arc holds, after a run with such args that ended as a success or an error."""
    guard = arc.get("when", "")
    if guard == ROUNDS:
        return bool(args.get("round", 0) < 2)
    if not guard:
        return boundary == "success" or not step.guards_success
    return bool(guard == {"success": SUCCEEDED, "error": FAILED}[boundary])


def rendered(args: dict[str, Any], given: dict[str, Any], execution_id: str) -> dict[str, Any]:
    """Return the args of an arc, for a run with given ones."""
    if args == NEXT_ROUND:
        return {"round": given.get("round", 0) + 1}
    return {name: execution_id if name == "from" else value for name, value in args.items()}


def chosen(task: Document, outcome: dict[str, Any], attempt: int) -> dict[str, Any] | None:
    """Return what the rules of a task say to an outcome; None: one of them reads something else."""
    rules = task.get("spec", {}).get("policy", {}).get("rules", [])
    error = outcome.get("error") or {}
    if not rules:
        return {"do": "fail" if outcome["status"] == "error" else "continue"}
    tests = {
        None: True,
        RETRYABLE: error.get("retryable", False),
        FAILED.replace("event", "outcome"): outcome["status"] == "error",
        THREE: outcome.get("result") == 3,
    }
    for rule in rules:
        holds = tests.get(rule.get("when"))
        if holds is None:
            return None
        if holds:
            then: dict[str, Any] = rule["then"] if "then" in rule else rule["else"]["then"]
            is_spent = then["do"] == "retry" and attempt >= then["attempts"]
            return {"do": "fail"} if is_spent else then
    return {"do": "continue"}


def waiting_time(then: dict[str, Any], attempt: int) -> float:
    """Return how long a retry waits after an attempt."""
    factor = {"none": 1, "linear": attempt, "exponential": 2 ** (attempt - 1)}[then["backoff"]]
    return float(min(then["delay"] * factor, _WAIT_MAX))


def written(patch: dict[str, Any], path: str) -> dict[str, Any]:
    """Return what `set_ctx` writes in an iteration."""
    index = path.rpartition(".")[2]
    return {name: int(index) + 1 if value == INDEX else value for name, value in patch.items()}


def is_like(found: dict[str, Any], written: dict[str, Any]) -> bool:
    """Compare a patch with what a policy says; templates of other forms are not evaluated."""
    return found.keys() == written.keys() and all(
        found[name] == value or (isinstance(value, str) and "{{" in value) for name, value in written.items()
    )


def reduced(reducer: str, start: Any, values: list[Any]) -> Any:
    """Return what a key of `ctx` gets of the writes of iterations; without a reducer they must agree."""
    if not reducer:
        return values[0] if all(value == values[0] for value in values) else _CONFLICT
    before = [] if start is None else [start]
    if reducer == "append":
        return [*(start or []), *values]
    if reducer == "count":
        return (start or 0) + len(values)
    return _REDUCERS[reducer]([*before, *values])


_CONFLICT = object()
_REDUCERS: dict[str, Callable[[list[Any]], Any]] = {
    "sum": sum,
    "max": max,
    "min": min,
    "last": lambda values: values[-1],
    "first": lambda values: values[0],
}
