"""Replays a log: gives its recorded inputs to `decide` one by one, and compares the events with those of the log.

The request, outcomes of tools and of children, lost leases, timers and controls are inputs; everything else was decided
and must be decided again in the same way, event by event: routing on the server's side, and on the worker's policies,
`set_ctx`, attempts and labels. With another bundle than the log's own, the first difference shows where an edit would
have changed what happened, and `course.py` continues from there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from noetlvm.data.encoding import UnencodableError, decode, encode
from noetlvm.data.event import Event, Recorded
from noetlvm.machine.decide import decide, is_news, work_for
from noetlvm.machine.loaded import LoadedPlaybook
from noetlvm.machine.messages import (
    Cancel,
    ChildFinished,
    Continue,
    Input,
    LeaseLost,
    Pause,
    Refuse,
    Request,
    Resume,
    Start,
    TimerDue,
    WorkerReport,
)
from noetlvm.machine.payload import Offload
from noetlvm.machine.state import Position, State
from noetlvm.replay.course import Course, continued
from noetlvm.replay.recorded_calls import CallKeys, RecordedCalls
from noetlvm.replay.repeated_pipeline import Missing, NoOutcomeError, Recording, is_same_masked, repeated


class Difference(NamedTuple):
    """The first event that is decided differently."""

    seq: int
    expected: Event | None
    """In the log; None: it has ended."""
    found: Event | None
    """As decided now; None: nothing."""
    place: str
    """Where the deciding YAML was written; empty if that is not known."""
    missing: Missing | None = None
    """The call of which the log has no outcome, if that is the difference."""
    course: Course | None = None
    """How the execution would have continued; None for the playbook that the log was recorded with."""


def replay(
    net: LoadedPlaybook, log: Sequence[Recorded], offload: Offload, *, recorded_with: LoadedPlaybook | None = None
) -> Difference | None:
    """Return the first difference between a log and what a playbook decides on its inputs.

    `recorded_with` is the playbook of the log, if `net` is an edited one. Places in the source then do not count.
    """
    if net.keychain and not offload.redacts:
        offload.redact_with(lambda value: value)  # what was recorded holds no secret, and masks where one was
    return _Replay(net, log, offload, recorded_with).run()


class _Replay:
    """One log, up to the event that is compared next."""

    def __init__(
        self, net: LoadedPlaybook, log: Sequence[Recorded], offload: Offload, recorded_with: LoadedPlaybook | None
    ) -> None:
        self._net = net
        self._log = log
        self._offload = offload
        self._is_edited = recorded_with is not None
        self._state = State()
        self._at = 0
        """Events that agree."""
        self._recording = Recording(net, offload, RecordedCalls(log, recorded_with or net), CallKeys())
        self._pipelines: dict[Position, tuple[int, Iterator[Event | float]]] = {}
        """Pipelines that run again, with the lease under which each began."""
        self._trusted: set[Position] = set()
        """Threads whose log lacks a secret, or what was too large: what they reported counts as it is."""

    def run(self) -> Difference | None:
        is_cut = False
        while self._at < len(self._log):
            read = self._input(self._at)
            now = self._log[self._at].timestamp
            try:
                given = read() if read else Continue()
            except NoOutcomeError as error:
                return self._difference(None, error.missing)
            made, _, rest = decide(self._net, self._state, given, now, self._offload, self._is_cut)
            for event in made:
                self._recording.keys.observe(event)
            difference = self._compare(made)
            if difference is not None:
                return difference
            is_cut = bool(rest)
        more = decide(self._net, self._state, Continue(), self._state.now, self._offload).events
        return self._difference(more[0]) if more and not is_cut else None

    def _is_cut(self, made: int) -> bool:
        """Tell whether the log has another input after so many events of this decision: then it was cut there."""
        at = self._at + made
        return at < len(self._log) and self._input(at) is not None

    def _compare(self, made: list[Event]) -> Difference | None:
        if not made:
            return self._difference(None)
        for at, event in enumerate(made):
            if self._at == len(self._log) or not self._is_same(self._log[self._at].event, event):
                return self._difference(event, made=made[at:])
            self._at += 1
        return None

    def _is_same(self, recorded: Event, made: Event) -> bool:
        """Tell whether an event is the recorded one; that went through the encoding of the log."""
        if recorded == made:
            return True
        try:
            made = made._replace(data=decode(encode(made.data)))
        except UnencodableError:
            return False
        if recorded == made:
            return True
        omitted = _OF_THE_SOURCE if self._is_edited else _OF_THE_CALL
        return recorded._replace(data={}) == made._replace(data={}) and is_same_masked(
            _without(recorded.data, omitted), _without(made.data, omitted)
        )

    def _difference(
        self, found: Event | None, missing: Missing | None = None, made: Sequence[Event] = ()
    ) -> Difference:
        expected = self._log[self._at].event if self._at < len(self._log) else None
        course = continued(self._state, self._recording, made) if self._is_edited else None
        return Difference(self._at + 1, expected, found, self._place(expected, found), missing, course)

    def _place(self, expected: Event | None, found: Event | None) -> str:
        """Return where the gate, the loop or the arc was written that decides differently."""
        event = found or expected
        assert event is not None  # there is a difference only where there is something
        step = event.data.get("step") or self._recording.keys.step(event.run)
        if event.name in _REPORTED and step in self._net.steps:
            return self._task_place(step, event, found)
        for part in _parts(event, expected, found):
            place = self._net.locate(f"{step}/{part}")
            if place:
                return place
        return self._net.locate(step)

    def _task_place(self, step: str, event: Event, found: Event | None) -> str:
        """Return where the rule was written that decides differently, else its task."""
        return (found and found.data.get("at")) or self._net.locate(f"{step}/{event.label}") or self._net.locate(step)

    # ---- inputs

    def _input(self, at: int) -> Callable[[], Input] | None:
        """Return what reads the input whose first event has this position; None: the event was decided."""
        event = self._log[at].event
        if event.name in _BEGINNINGS:
            return self._report_after(at)
        if event.name == "step.failed" and "cancelled" in event.data:
            return TimerDue
        if event.name in _REPORTED:
            return self._report(event, at)
        if event.name == "step.scheduled":
            return self._lease_lost(event)
        read = _INPUTS.get(event.name)
        return partial(read, self, event, at) if read else None

    def _request(self, event: Event, at: int) -> Input:
        data = event.data
        read = self._offload.read
        family = (data.get("parent", ""), data.get("depth", 0), data.get("trace", ""))
        payload, ctx = read(data["payload"]), read(data.get("ctx", {}))
        request = Request(data["execution"], data["bundle"], payload, *family, ctx)
        answer = self._log[at + 1].event.data if at + 1 < len(self._log) else {}
        return Refuse(request, answer["error"]) if "error" in answer else Start(request)

    def _report_after(self, at: int) -> Callable[[], Input] | None:
        """Return the report that caused the beginning of a run or an iteration: the next event about its thread."""
        run, after = self._log[at].event.run, at + 1
        while after < len(self._log) and self._log[after].event.name in _BEGINNINGS:
            after += 1
        if after == len(self._log) or self._log[after].event.run != run:
            return None
        event = self._log[after].event
        return self._report(event, after) if event.name in _REPORTED else None

    def _report(self, event: Event, at: int) -> Callable[[], Input] | None:
        thread = self._state.thread(event.run, event.iteration)
        if thread is None or "cancelled" in event.data:
            return None  # the server ended it
        lease = thread.lease

        def report() -> Input:
            made = self._repeated(event, at, lease)
            return WorkerReport(event.run, event.iteration, lease, [made] if made else [])

        return report

    def _repeated(self, event: Event, at: int, lease: int) -> Event | None:
        """Return what the pipeline of a recorded report reports now. Raises NoOutcomeError."""
        position = event.run, event.iteration
        if "masked" in event.data or _was_rejected(event):
            self._trusted.add(position)
        if position in self._trusted:
            return self._as_reported(event, at)
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

    def _as_reported(self, event: Event, at: int) -> Event:
        """Return an event as the worker sent it: with its write to `ctx`, without what the server added."""
        if event.name == "loop.iteration.done":
            return event._replace(data={key: value for key, value in event.data.items() if key != "stored"})
        after = self._log[at + 1].event if at + 1 < len(self._log) else event
        if event.name != "task.done" or after.name != "ctx.patched" or after[2:] != event[2:]:
            return event
        return event._replace(data=event.data | {"ctx": after.data["patch"]})

    def _child_finished(self, event: Event, _at: int) -> Input:
        return ChildFinished(event.run, event.iteration, event.data["key"], event.data["outcome"])

    def _lease_lost(self, event: Event) -> Callable[[], Input] | None:
        lease, run = event.data.get("lease"), self._state.runs.get(event.run)
        if lease is None or run is None:
            return None
        held = (path for path, thread in run.threads.items() if thread.lease == lease - 1)
        unit = self._net.steps[run.step].unit
        lost = next((path for path in held if unit(path) == event.iteration), event.iteration)
        return lambda: LeaseLost(event.run, lost, lease - 1)


_BEGINNINGS = frozenset({"step.started", "loop.iteration.started"})
_REPORTED = frozenset(
    {"task.started", "task.done", "step.done", "step.failed", "loop.iteration.done", "loop.iteration.failed"}
)

_INPUTS: dict[str, Callable[[_Replay, Event, int], Input]] = {
    "playbook.execution.requested": _Replay._request,
    "child.finished": _Replay._child_finished,
    "execution.paused": lambda *_: Pause(),
    "execution.resumed": lambda *_: Resume(),
    "execution.cancelled": lambda *_: Cancel(),
}
"""How each input is read from its event."""


_OF_THE_CALL = frozenset({"inputs"})
"""Parts of a `task.done` that need the secrets of its execution. What its `task.started` has is compared."""

_OF_THE_SOURCE = _OF_THE_CALL | {"pc", "rounds", "at", "place", "expression"}
"""Parts of events that follow from where code stands in the playbook."""

_PLACE = re.compile(r"^\S+:\d+:\d+: ")


def _was_rejected(event: Event) -> bool:
    """Tell whether the server refused what a worker reported of a task, because it was too large."""
    outcome = event.data.get("outcome", {})
    return "meta" not in outcome and (outcome.get("error") or {}).get("kind") == "limit"


def _without(value: Any, omitted: frozenset[str]) -> Any:
    """Return the data of an event without parts that need not agree."""
    if isinstance(value, dict):
        found = {key: _without(item, omitted) for key, item in value.items() if key not in omitted}
        if "pc" in omitted and {"kind", "message"} <= found.keys() and isinstance(found["message"], str):
            found["message"] = _PLACE.sub("", found["message"])
        return found
    return [_without(item, omitted) for item in value] if isinstance(value, list) else value


def _parts(event: Event, expected: Event | None, found: Event | None) -> list[str]:
    """Return the parts of a step that may have decided an event, the likeliest first."""
    if event.name == "next.evaluated":
        fired: list[set[int]] = [set(one.data.get("arcs", ())) for one in (expected, found) if one]
        changed = set.symmetric_difference(*fired) if len(fired) > 1 else set()
        number = min(changed or fired[-1], default=0) + 1
        return [f"arc.{number}/when", f"arc.{number}"] if changed else [f"arc.{number}/args", f"arc.{number}"]
    if event.name.startswith("loop."):
        return [f"loop.{len(event.iteration.split('.')) + 1 if event.iteration else 1}/in", "loop.1/in"]
    return ["admit"]
