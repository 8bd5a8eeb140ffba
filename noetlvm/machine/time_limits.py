"""The time limits of a step run, from `lifecycle` of the step's policy, and when they expire.

`timeout_s` counts from the first report of the run: waiting for a worker does not count. `deadline_s` counts from the
start of the workflow and includes all waiting. Both follow from the log, so a limit means the same after a crash.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from sys import float_info
from typing import TYPE_CHECKING, Any, NamedTuple

from noetlvm.machine.instructions import failure

if TYPE_CHECKING:
    from noetlvm.machine.loaded import LoadedPlaybook
    from noetlvm.machine.state import Run, State


class TimeLimits(NamedTuple):
    """The limits of one step, in seconds; without end where there is none."""

    timeout_s: float = inf
    deadline_s: float = inf

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> TimeLimits:
        """Return the limits in a step's settings; what is absent or not a positive number means no limit."""
        given = settings.get("lifecycle")
        if not isinstance(given, Mapping):
            return NO_LIMITS
        limits = {key: given[key] for key in cls._fields if _is_duration(given.get(key))}
        return cls(**limits) if limits else NO_LIMITS

    def due(self, state: State, run: Run) -> float:
        """Return when a run must have ended."""
        own = inf if run.since is None else run.since + self.timeout_s
        return min(own, state.since + self.deadline_s)

    def error(self, state: State, run: Run) -> dict[str, Any]:
        """Return the error of a run that has not ended when it was due, naming the limit that came first."""
        deadline = state.since + self.deadline_s
        if self.due(state, run) == deadline:
            message = f"the step had not ended {self.deadline_s:g} s after the workflow started"
            return failure("timeout", message, limit="deadline_s", seconds=self.deadline_s)
        message = f"the step ran for {self.timeout_s:g} s without coming to an end"
        return failure("timeout", message, limit="timeout_s", seconds=self.timeout_s)


NO_LIMITS = TimeLimits()


def _is_duration(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value <= float_info.max


def next_due(net: LoadedPlaybook, state: State) -> float:
    """Return when the next time limit of a run or of a wait for a child expires; infinite if there is none."""
    due = min((due for _, due in _open(net, state)), default=inf) if net.has_time_limits else inf
    for run, iteration in state.children:
        child = state.runs[run].threads[iteration].child
        if child is not None and child.due is not None:
            due = min(due, child.due)
    return due


def overdue(net: LoadedPlaybook, state: State, now: float) -> list[int]:
    """Return the runs that should have ended by now."""
    return [number for number, due in _open(net, state) if due <= now] if net.has_time_limits else []


def _open(net: LoadedPlaybook, state: State) -> Iterator[tuple[int, float]]:
    for number, run in state.runs.items():
        limits = net.steps[run.step].limits
        if limits is not NO_LIMITS and run.boundary is None:
            yield number, limits.due(state, run)
