"""How an execution would have continued from a state, with an edited playbook and the outcomes that the log has.

Nothing is called. Time passes as calls took in the log; pauses and cancellations of the log are not repeated. It
ends with the execution, or at the first call of which the log has no outcome.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple

from noetlvm.data.event import Event
from noetlvm.machine.decide import decide, offers, work_for
from noetlvm.machine.messages import (
    CancelChild,
    ChildFinished,
    CloseWork,
    Continue,
    Effect,
    Input,
    OpenWork,
    StartChild,
    StopWork,
    TimerDue,
    WakeAt,
    WorkerReport,
)
from noetlvm.machine.state import Position, State
from noetlvm.replay.repeated_pipeline import Missing, NoOutcomeError, Recording, is_same_masked, repeated

DECISIONS_MAX = 200_000
"""Decisions after which an edit counts as one that does not end."""


class Course(NamedTuple):
    """The rest of an execution."""

    status: str
    """`success`, `failed`, or `running` if it does not end."""
    result: Any
    ctx: dict[str, Any]
    failures: list[dict[str, Any]]
    steps: list[str]
    """Steps that are scheduled after the first difference."""
    missing: Missing | None
    """The call at which it stops."""


def continued(state: State, recording: Recording, made: Sequence[Event]) -> Course:
    """Return how an execution continues from a state, which changes. `made`: events that the log does not have."""
    return _Continuation(state, recording, made).run()


class _Continuation:
    def __init__(self, state: State, recording: Recording, made: Sequence[Event]) -> None:
        self._state = state
        self._recording = recording
        self._now = state.now
        self._inputs: deque[Input] = deque([Continue()])
        self._due: float | None = None
        self._pipelines: dict[Position, tuple[int, Iterator[Event | float]]] = {}
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._steps = [event.data["step"] for event in made if _schedules(event)]

    def run(self) -> Course:
        missing = None
        try:
            self._perform(offers(self._recording.playbook, self._state))
            for _ in range(DECISIONS_MAX):
                if not self._move():
                    break
        except NoOutcomeError as error:
            missing = error.missing
        state = self._state
        failures = list(state.failures)
        return Course(state.status, state.result, state.ctx, failures, self._steps, missing)

    def _move(self) -> bool:
        """Decide on the next input, or let time pass until there is one; False: nothing is left."""
        if self._state.is_over:
            return False
        if self._inputs:
            self._decide(self._inputs.popleft())
            return True
        next_work = self._later[0][0] if self._later else None
        if self._due is not None and (next_work is None or self._due <= next_work):
            self._now, self._due = max(self._now, self._due), None
            self._inputs.append(TimerDue())
            return True
        if next_work is None:
            return False
        self._now = max(self._now, next_work)
        heapq.heappop(self._later)[2]()
        return True

    def _decide(self, given: Input) -> None:
        recording = self._recording
        events, effects, rest = decide(recording.playbook, self._state, given, self._now, recording.offload)
        for event in events:
            recording.keys.observe(event)
            if _schedules(event):
                self._steps.append(event.data["step"])
        self._due = None
        self._inputs.extendleft(reversed(rest))
        self._perform(effects)

    # ---- effects

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            _PERFORMED[type(effect)](self, effect)

    def _at(self, time: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._later, (time, next(self._numbers), do))

    def _open(self, work: OpenWork) -> None:
        self._at(max(self._now, work.not_before), lambda: self._begin((work.run, work.iteration), work.lease))

    def _begin(self, position: Position, lease: int) -> None:
        recording = self._recording
        work = work_for(recording.playbook, self._state, *position, recording.offload)
        if work is not None and work.lease == lease:
            self._pipelines[position] = lease, repeated(work, recording, self._now)
            self._advance(position, lease)

    def _advance(self, position: Position, lease: int) -> None:
        """Report what a pipeline does up to its next wait."""
        known = self._pipelines.get(position)
        if known is None or known[0] != lease:
            return
        for made in known[1]:
            if not isinstance(made, Event):
                self._at(self._now + made, lambda: self._advance(position, lease))
                return
            self._inputs.append(WorkerReport(*position, lease, [made]))
            # One decision for each report: its task run must be known before the next call is looked up.
            while self._inputs:
                self._decide(self._inputs.popleft())
            if position not in self._pipelines or self._pipelines[position][0] != lease:
                return

    def _close(self, work: CloseWork | StopWork) -> None:
        known = self._pipelines.get((work.run, work.iteration))
        if known is not None and known[0] <= work.lease:
            del self._pipelines[work.run, work.iteration]

    def _start_child(self, start: StartChild) -> None:
        """Answer for a child execution as the log does. Raises NoOutcomeError."""
        recording, child = self._recording, start.child
        attempt = self._state.runs[start.run].threads[start.iteration].reported
        key = recording.keys.key(start.run, start.iteration, attempt.task, attempt.label, attempt.number)
        found = recording.calls.find(key)
        wanted = {"path": child.path, "workload": child.workload}
        recorded = (found.started.data.get("child") or {}) if found and found.started else {}
        is_same = recorded and is_same_masked({"path": recorded.get("path"), "workload": recorded["workload"]}, wanted)
        if found is None or found.child is None or not is_same:
            reason = "the log has the outcome of another child" if recorded and found and found.child else ""
            reason = reason or "the log has no outcome of that child execution"
            missing = Missing(key.step, start.iteration, key.label, key.attempt, "playbook", reason)
            raise NoOutcomeError(missing)
        answer = ChildFinished(start.run, start.iteration, child.key, found.child)
        self._at(self._now + found.waited, lambda: self._inputs.append(answer))

    def _wake(self, wake: WakeAt) -> None:
        self._due = wake.at


def _schedules(event: Event) -> bool:
    return event.name == "step.scheduled" and "step" in event.data


_PERFORMED: dict[type, Callable[[_Continuation, Any], None]] = {
    OpenWork: _Continuation._open,
    CloseWork: _Continuation._close,
    StopWork: _Continuation._close,
    StartChild: _Continuation._start_child,
    CancelChild: lambda *_: None,
    WakeAt: _Continuation._wake,
}
"""How each effect is performed."""
