"""How long a step run may take, as `lifecycle` of the step's policy says, and when that time is over.

`timeout_s` counts from the run's first sign of life: waiting for a worker is not the step's doing. `deadline_s` counts
from the start of the workflow and covers everything, waiting included. Both are read off the log: the fold knows when
the workflow and each run began, so a limit means the same after a crash.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from sys import float_info
from typing import TYPE_CHECKING, Any, NamedTuple

from noetlvm.machine.effects import failure

if TYPE_CHECKING:
    from noetlvm.machine.loaded import LoadedPlaybook
    from noetlvm.machine.state import Run, State


class TimeLimits(NamedTuple):
    """The limits of one step, in seconds; without end where there is none."""

    timeout_s: float = inf
    deadline_s: float = inf

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> TimeLimits:
        """Return the limits in a step's settings; what is absent or no positive number is no limit."""
        given = settings.get("lifecycle")
        if not isinstance(given, Mapping):
            return NO_LIMITS
        return cls(**{key: given[key] for key in cls._fields if _is_duration(given.get(key))})

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


class Deadlines:
    """When the open runs of an execution are due. It goes through all of them each time."""

    __slots__ = ("_limits", "_state")

    def __init__(self, net: LoadedPlaybook, state: State) -> None:
        self._limits = {step.name: step.limits for step in net.steps.values() if step.limits != NO_LIMITS}
        self._state = state

    def __bool__(self) -> bool:
        """Tell whether any step has a limit."""
        return bool(self._limits)

    def next(self) -> float:
        """Return when the first is due."""
        return min((due for _, due in self._open()), default=inf)

    def passed(self, now: float) -> list[int]:
        """Return the runs that should have ended by now."""
        return [number for number, due in self._open() if due <= now]

    def _open(self) -> Iterator[tuple[int, float]]:
        state = self._state
        for number, run in state.runs.items():
            limits = self._limits.get(run.step)
            if limits is not None and run.boundary is None:
                yield number, limits.due(state, run)
