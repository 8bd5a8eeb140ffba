"""What the tasks of a step were given, returned and printed, as the log has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from noetlvm.cli.data_text import shortened
from noetlvm.command_line.printed import duration
from noetlvm.data.event import Event, Recorded

_SHOWN = 20
"""Attempts that are shown in full; those that failed come first."""
_VALUE_CHARS = 2_000


class TaskAttempt(NamedTuple):
    run: int
    step: str
    iteration: str
    task: str
    attempt: int
    status: str
    """`ok`, `error`, or `running` if it has not ended."""
    do: str
    """What its rules decided."""
    seconds: float | None
    inputs: dict[str, Any] | None
    """None: the log does not record it."""
    result: Any
    printed: str
    error: dict[str, Any] | None


def attempts_of(log: Iterable[Recorded], step: str, iteration: str | None) -> list[TaskAttempt]:
    """Return the attempts of a step's tasks, in the order in which they began."""
    runs: set[int] = set()
    begun: dict[tuple[int, str, int, int], TaskAttempt] = {}
    for recorded in log:
        event = recorded.event
        if event.name == "step.scheduled" and event.data.get("step") == step:
            runs.add(event.run)
        if event.run not in runs or not event.task or (iteration is not None and event.iteration != iteration):
            continue
        key = event.run, event.iteration, event.task, event.attempt
        known = begun.get(key) or _begun(event, step)
        begun[key] = _ended(known, event) if event.name == "task.done" else known
    return list(begun.values())


def _begun(event: Event, step: str) -> TaskAttempt:
    inputs = event.data.get("inputs") or event.data.get("child")
    place = event.run, step, event.iteration, event.label, event.attempt
    return TaskAttempt(*place, "running", "", None, inputs, None, "", None)


def _ended(known: TaskAttempt, event: Event) -> TaskAttempt:
    data = event.data
    outcome = data["outcome"]
    took = outcome.get("meta", {}).get("duration_ms")
    return known._replace(
        status=outcome["status"],
        do=data["do"],
        seconds=None if took is None else took / 1000,
        inputs=known.inputs or data.get("inputs"),
        result=outcome.get("result"),
        printed=(outcome.get("py") or {}).get("stdout", ""),
        error=outcome.get("error"),
    )


def attempt_lines(attempts: list[TaskAttempt]) -> Iterator[str]:
    shown = attempts
    if len(attempts) > _SHOWN:
        failed = [one for one in attempts if one.status == "error"][:_SHOWN]
        others = [one for one in attempts if one.status != "error"]
        shown = [*failed, *others[len(others) - (_SHOWN - len(failed)) :]] if len(failed) < _SHOWN else failed
    for one in shown:
        yield from _lines(one)
    if len(shown) < len(attempts):
        more = len(attempts) - len(shown)
        yield f"{more:,} more attempts: --iteration shows those of one iteration, --json all of them"


def _lines(one: TaskAttempt) -> Iterator[str]:
    where = f"{one.step}[{one.iteration}]" if one.iteration else one.step
    attempt = f", attempt {one.attempt}" if one.attempt > 1 else ""
    took = f" in {duration(one.seconds)}" if one.seconds is not None else ""
    do = f", then {one.do}" if one.do not in ("", "continue") else ""
    yield f"{where} run {one.run}, {one.task}{attempt}: {one.status}{took}{do}"
    if one.inputs:
        yield f"  input:  {shortened(one.inputs, _VALUE_CHARS)}"
    if one.error:
        yield f"  error:  {one.error['kind']}: {_indented(str(one.error['message']))}"
    if one.result is not None:
        yield f"  result: {shortened(one.result, _VALUE_CHARS)}"
    if one.printed:
        yield f"  output: {_indented(one.printed.rstrip())}"


def _indented(text: str) -> str:
    return text.replace("\n", f"\n{' ' * 10}")
