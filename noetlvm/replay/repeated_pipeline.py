"""A pipeline that runs again on recorded outcomes: its frame decides, and the log answers in place of its tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from noetlvm.data.encoding import MASK
from noetlvm.data.event import Event
from noetlvm.machine.frame import Frame, frame_for
from noetlvm.machine.instructions import CallTool, Ended, Wait
from noetlvm.machine.loaded import LoadedPlaybook
from noetlvm.machine.messages import Work
from noetlvm.machine.payload import Offload
from noetlvm.replay.recorded_calls import CallKeys, RecordedCall, RecordedCalls
from noetlvm.tools.call import Outcome, error, outcome_at_once
from noetlvm.tools.inputs import InputError
from noetlvm.worker.pipeline_run import PLAYBOOK, wanted_child


class Missing(NamedTuple):
    """A call of which the log has no outcome."""

    step: str
    iteration: str
    task: str
    attempt: int
    kind: str
    reason: str


class NoOutcomeError(Exception):
    """The playbook would call a tool of which the log has no outcome."""

    def __init__(self, missing: Missing) -> None:
        super().__init__(missing.reason)
        self.missing = missing


class Recording(NamedTuple):
    """What the pipelines of one replay share."""

    playbook: LoadedPlaybook
    offload: Offload
    calls: RecordedCalls
    keys: CallKeys
    """Of the events that are decided now."""


class RepeatedFrame(Frame):
    """A frame without the secrets of its execution: inputs that need one count as they were recorded."""

    __slots__ = ("recorded",)

    recorded: Callable[[Frame], RecordedCall | None]
    """Finds the recorded call of the current attempt."""

    def not_rendered(self, problem: dict[str, Any]) -> None:
        found = self.recorded(self) if self._scope.offload.redacts else None
        if found is None or found.started is None or found.outcome is None:
            super().not_rendered(problem)
        else:
            self.has_called = True
            self.events.append(self.started(**found.started.data))
            self.complete(found.outcome)

    def uncalled_meta(self) -> dict[str, Any]:
        """Return what the log has: nothing, if it is from before every outcome had its time."""
        found = self.recorded(self)
        return found.meta if found and found.done else super().uncalled_meta()

    def uncalled(self) -> Event:
        """Return the event as recorded, if the log has a call: the end of the task shows why there is none now."""
        found = self.recorded(self)
        return self.started(**found.started.data) if found and found.started else super().uncalled()


def repeated(work: Work, recording: Recording, now: float) -> Iterator[Event | float]:
    """Yield the events that a pipeline reports, and in seconds how long it waits between them.

    Raises NoOutcomeError where it would call a tool of which the log has no outcome.
    """
    frame = frame_for(recording.playbook, work, {}, recording.offload, lambda: now, RepeatedFrame)
    assert isinstance(frame, RepeatedFrame)
    answer = work.answer

    def recorded(frame: Frame) -> RecordedCall | None:
        key = recording.keys.key(work.run, work.iteration, frame.task, frame.label, frame.attempt)
        return recording.calls.find(key)

    frame.recorded = recorded
    while True:
        effect = frame.advance()
        yield from frame.take_events()
        if type(effect) is Ended:
            return
        if type(effect) is Wait:
            yield effect.seconds
        elif type(effect) is CallTool and answer is not None:
            call = recorded(frame)
            meta = (call.meta if call else {}) or {**answer.get("meta", {}), "ts": now}
            frame.take_answer(answer, meta)
            answer = None
        elif type(effect) is CallTool and effect.kind == PLAYBOOK:
            try:
                child = wanted_child(effect, recording.offload)
            except InputError as problem:
                frame.not_called(error("input", str(problem)))
                continue
            yield frame.started(**_start_data(recorded(frame), frame, now), child=child)
            return
        elif type(effect) is CallTool:
            call = recorded(frame)
            yield frame.started(**_start_data(call, frame, now))
            outcome = {"meta": {"duration_ms": 0, "ts": now}, **_outcome(effect, work, call, frame)}
            yield float(outcome["meta"].get("duration_ms", 0)) / 1000
            frame.complete(outcome)


def _start_data(call: RecordedCall | None, frame: Frame, now: float) -> dict[str, Any]:
    recorded = call.started.data if call and call.started else {}
    data = {"ts": recorded.get("ts", now)}
    return data | frame.shown_inputs() if "inputs" in recorded else data


def _outcome(call: CallTool, work: Work, recorded: RecordedCall | None, frame: Frame) -> Outcome:
    """Return the recorded outcome of a call. Raises NoOutcomeError."""
    reason = objection(call, recorded, frame)
    if reason:
        at_once = outcome_at_once(call.kind)
        if at_once is not None:
            return at_once
        missing = Missing(work.step, work.iteration, call.label, call.attempt, call.kind, reason)
        raise NoOutcomeError(missing)
    assert recorded is not None  # else there is an objection
    assert recorded.outcome is not None
    return recorded.outcome


def objection(call: CallTool, recorded: RecordedCall | None, frame: Frame) -> str:
    """Return why a recorded call does not answer this one; empty: it does."""
    if recorded is None or recorded.started is None:
        return "the log has no such call"
    if recorded.kind and recorded.kind != call.kind:
        return f"the log has a call of `{recorded.kind}` there"
    if recorded.outcome is None:
        return "the log has no outcome of that call"
    given = recorded.started.data.get("inputs")
    if given is not None and not is_same_masked(given, frame.shown_inputs().get("inputs")):
        return "the log has the outcome of a call with other inputs"
    return ""


def is_same_masked(recorded: Any, made: Any) -> bool:
    """Return whether data may be what was recorded: a text with a mask may have been anything."""
    if isinstance(recorded, str) and MASK in recorded:
        return True
    if isinstance(recorded, dict) and isinstance(made, dict):
        return recorded.keys() == made.keys() and all(is_same_masked(recorded[key], made[key]) for key in recorded)
    if isinstance(recorded, list | tuple) and isinstance(made, list | tuple):
        return len(recorded) == len(made) and all(map(is_same_masked, recorded, made))
    is_nan = recorded != recorded and made != made  # the one value that does not equal itself
    return bool(recorded == made) or is_nan
