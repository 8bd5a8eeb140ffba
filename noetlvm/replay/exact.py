"""Replays a log exactly: workers decide again too, on the outcomes that their tools gave.

Policies, `set_ctx`, attempts and labels are decided by the playbook, the log's own or an edited one, and compared event
by event. From the first difference on, `course.py` shows how the execution would have continued.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from noetlvm.data.encoding import UnencodableError, decode, encode
from noetlvm.data.event import Event, Recorded
from noetlvm.machine.decide import is_news, work_for
from noetlvm.machine.loaded import LoadedPlaybook
from noetlvm.machine.payload import Offload
from noetlvm.machine.replay import BEGINNINGS, Difference, LogReplay
from noetlvm.machine.state import Position
from noetlvm.replay.course import Course, continued
from noetlvm.replay.recorded_calls import CallKeys, RecordedCalls
from noetlvm.replay.repeated_pipeline import Missing, NoOutcomeError, Recording, is_same_masked, repeated


class Divergence(NamedTuple):
    """Where a playbook diverges from the log."""

    difference: Difference
    missing: Missing | None
    """The call of which the log has no outcome, if that is the difference."""
    course: Course | None
    """How the execution would have continued; None for the playbook that the log was recorded with."""


def replay_exactly(
    net: LoadedPlaybook, log: Sequence[Recorded], offload: Offload, *, recorded_with: LoadedPlaybook | None = None
) -> Divergence | None:
    """Return where a playbook diverges from a log; None: it decides everything as recorded.

    `recorded_with` is the playbook of the log, if `net` is an edited one. Places in the source then do not count.
    """
    if net.keychain and not offload.redacts:
        offload.redact_with(lambda value: value)  # the log holds masks in place of secrets
    return _ExactReplay(net, log, offload, recorded_with).divergence()


class _ExactReplay(LogReplay):
    def __init__(
        self, net: LoadedPlaybook, log: Sequence[Recorded], offload: Offload, recorded_with: LoadedPlaybook | None
    ) -> None:
        super().__init__(net, log, offload)
        self._is_edited = recorded_with is not None
        self._recording = Recording(net, offload, RecordedCalls(log, recorded_with or net), CallKeys())
        self._pipelines: dict[Position, tuple[int, Iterator[Event | float]]] = {}
        """Pipelines that run again, with the lease under which each began."""
        self._trusted: set[Position] = set()
        """Threads whose log lacks a secret or data that was too large: what they reported is not compared."""

    def divergence(self) -> Divergence | None:
        missing = None
        try:
            difference = self.run()
        except NoOutcomeError as error:
            difference, missing = self._difference(None), error.missing
        if difference is None:
            return None
        course = continued(self._state, self._recording, self._made) if self._is_edited else None
        return Divergence(difference, missing, course)

    def _observe(self, made: list[Event]) -> None:
        for event in made:
            self._recording.keys.observe(event)

    def _reported(self, event: Event, at: int, lease: int) -> Event | None:
        """Return what the pipeline reports now where the log has this event. Raises NoOutcomeError."""
        position = event.run, event.iteration
        if event.name in BEGINNINGS:
            return event
        if "masked" in event.data or _was_rejected(event):
            self._trusted.add(position)
        if position in self._trusted:
            return super()._reported(event, at, lease)
        known = self._pipelines.get(position)
        found = self._next(known[1], position) if known and known[0] == lease else None
        if found is None:  # a new thread, or one that its worker had left
            work = work_for(self._net, self._state, *position, self._offload)
            if work is None:
                return None
            pipeline = repeated(work, self._recording, self._log[at].timestamp)
            self._pipelines[position] = lease, pipeline
            found = self._next(pipeline, position)
        return found

    def _next(self, pipeline: Iterator[Event | float], position: Position) -> Event | None:
        """Return the next event that was not reported before: a thread that begins again repeats its last attempt."""
        thread = self._state.thread(*position)
        made = (event for event in pipeline if isinstance(event, Event))
        return next((event for event in made if thread is not None and is_news(event, thread)), None)

    def _is_same(self, recorded: Event, made: Event) -> bool:
        if super()._is_same(recorded, made):
            return True
        try:
            made = made._replace(data=decode(encode(made.data)))
        except UnencodableError:
            return False
        if recorded._replace(data={}) != made._replace(data={}):
            return False
        return is_same_masked(self._comparable(recorded), self._comparable(made))

    def _comparable(self, event: Event) -> dict[str, Any]:
        """Return the data of an event without parts that need not agree."""
        omitted = _OF_THE_CALL if event.name == "task.done" else frozenset()
        if not self._is_edited:
            return {key: value for key, value in event.data.items() if key not in omitted}
        omitted |= _OF_THE_SOURCE
        return {key: _without_places(value) for key, value in event.data.items() if key not in omitted}

    def _place(self, expected: Event | None, found: Event | None) -> str:
        """Return where the task or its rule was written that decides differently."""
        event = found or expected
        step = self._recording.keys.step(event.run) if event and event.task else ""
        if event is None or step not in self._net.steps:
            return super()._place(expected, found)
        return (found and found.data.get("at")) or self._task_place(step, event.label)

    def _task_place(self, step: str, label: str) -> str:
        """Return where a task was written, else its step."""
        pipeline = self._net.steps[step].pipeline
        entries = [at for one, _, at in pipeline.tasks() if one == label] if pipeline else []
        return pipeline.locate(entries[0]) if pipeline and entries else self._net.locate(step)


_OF_THE_CALL = frozenset({"inputs"})
"""Parts of a `task.done` that need the secrets of its execution. What its `task.started` has is compared."""

_OF_THE_SOURCE = frozenset({"pc", "rounds", "at", "place"})
"""Parts of events that follow from where code stands in the playbook."""

_ERROR_KEYS = {"kind", "retryable", "message", "details"}

_PLACE = re.compile(r"^\S+:\d+:\d+: ")


def _was_rejected(event: Event) -> bool:
    """Return whether the server refused what a worker reported of a task, because it was too large."""
    return event.data.get("do") == "fail" and "at" not in event.data  # a worker reports the rule that failed it


def _without_places(value: Any) -> Any:
    """Return data whose errors have no place of a template."""
    if isinstance(value, list):
        return [_without_places(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == _ERROR_KEYS and value["kind"] == "template":
        return {"kind": "template", "message": _PLACE.sub("", value["message"])}
    return {key: _without_places(item) for key, item in value.items()}
