"""Replays a log: gives its recorded inputs to `decide` one by one, and compares the events with those of the log.

The request, reports of workers, outcomes of children, lost leases, timers and controls are inputs; everything else was
decided and must be decided again in the same way, event by event. With another bundle than the log's own, the first
difference shows where an edit would have changed what happened. Pipelines do not run again here: what workers reported
counts as it is. `noetlvm/replay` runs them too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import takewhile
from typing import NamedTuple

from noetlvm.data.event import Event, Recorded
from noetlvm.language.events import EventName
from noetlvm.machine.decide import decide
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
    Retry,
    Start,
    TimerDue,
    WorkerReport,
)
from noetlvm.machine.payload import Offload
from noetlvm.machine.state import State, Token


class Difference(NamedTuple):
    """The first event that is decided differently."""

    seq: int
    expected: Event | None
    """In the log; None: it has ended."""
    found: Event | None
    """As decided now; None: nothing."""
    place: str
    """Where the deciding YAML was written; empty if that is not known."""


def replay(net: LoadedPlaybook, log: Sequence[Recorded], offload: Offload) -> Difference | None:
    """Return the first difference between a log and what a playbook decides on its inputs."""
    return LogReplay(net, log, offload).run()


class LogReplay:
    """One log, up to the event that is compared next."""

    def __init__(self, net: LoadedPlaybook, log: Sequence[Recorded], offload: Offload) -> None:
        self._net = net
        self._log = log
        self._offload = offload
        self._state = State()
        self._made: list[Event] = []
        """Events of the current decision from the first that differs."""
        self._at = 0
        """Events that agree."""
        self._steps = {
            event.run: event.data["step"]
            for *_, event in log
            if event.name == "step.scheduled" and "step" in event.data
        }

    def run(self) -> Difference | None:
        while self._at < len(self._log):
            read = self._input(self._at)
            given = read() if read else Continue()
            now = self._log[self._at].timestamp
            made = decide(self._net, self._state, given, now, self._offload, self._is_cut).events
            self._observe(made)
            difference = self._compare(made)
            if difference is not None:
                return difference
        return None

    def _is_cut(self, made: int) -> bool:
        """Return whether the log has another input after this many events of the decision: then it was cut there."""
        at = self._at + made
        return at < len(self._log) and self._input(at) is not None

    def _compare(self, made: list[Event]) -> Difference | None:
        if not made:
            return self._difference(None)
        for at, event in enumerate(made):
            if self._at == len(self._log) or not self._is_same(self._log[self._at].event, event):
                self._made = made[at:]
                return self._difference(event)
            self._at += 1
        return None

    def _difference(self, found: Event | None) -> Difference:
        expected = self._log[self._at].event if self._at < len(self._log) else None
        return Difference(self._at + 1, expected, found, self._place(expected, found))

    def _place(self, expected: Event | None, found: Event | None) -> str:
        """Return where the gate, the loop or the arc was written that decides differently."""
        event = found or expected
        assert event is not None  # there is a difference only where there is something
        is_sent = event.name == "token.enqueued" and event.run
        step = self._steps[event.run] if is_sent else event.data.get("step") or self._steps.get(event.run, "")
        for part in self._sending_arc() if is_sent else _parts(event, expected, found):
            place = self._net.locate(f"{step}/{part}")
            if place:
                return place
        return self._net.locate(step)

    def _sending_arc(self) -> list[str]:
        """Return the part of a step that decided the token at this position of the log."""
        routed = self._at - 1
        while self._log[routed].event.name != "next.evaluated":
            routed -= 1
        arcs = self._log[routed].event.data["arcs"]
        number = arcs[min(self._at - routed, len(arcs)) - 1] + 1 if arcs else 1
        return [f"arc.{number}/args", f"arc.{number}"]

    # ---- for a replay that runs pipelines again

    def _observe(self, made: list[Event]) -> None:
        """Take the events of a decision."""

    def _reported(self, event: Event, at: int, _lease: int) -> Event | None:
        """Return what a worker reports where the log has this event: as it was sent.

        So with its write to `ctx`, and without what the server added.
        """
        if event.name == "loop.iteration.done":
            return event._replace(data={key: value for key, value in event.data.items() if key != "stored"})
        after = self._following(at)
        if event.name != "task.done" or after.name != "ctx.patched" or after[2:] != event[2:]:
            return event
        return event._replace(data=event.data | {"ctx": after.data["patch"]})

    def _is_same(self, recorded: Event, made: Event) -> bool:
        """Return whether an event is the recorded one."""
        return recorded == made

    # ---- inputs

    def _following(self, at: int) -> Event:
        """Return the event after a position; at the end of the log, the last one."""
        return self._log[at : at + 2][-1].event

    def _input(self, at: int) -> Callable[[], Input] | None:
        """Return what reads the input whose first event has this position; None: the event was decided."""
        at = self._report_with(at)
        event = self._log[at].event
        if "cancelled" in event.data:
            return self._stopped(event)
        if event.name in _REPORTED:
            return self._report(event, at)
        if event.name == "step.scheduled":
            return self._lease_lost(event)
        read = _INPUTS.get(event.name)
        return partial(read, self, event, at) if read else None

    def _stopped(self, event: Event) -> Callable[[], Input] | None:
        """Return the input with which the server ends what a worker has begun: the ends may have different times."""
        if self._state.status == "cancelling":
            return Continue
        error = event.data.get("error") or event.data.get("outcome", {}).get("error") or {}
        return TimerDue if error.get("kind") == "timeout" else None

    def _report_with(self, at: int) -> int:
        """Return the position of the event whose report began a run or an iteration: what follows of its thread.

        So a decision that was cut before does not continue between the two. Other events were reported by themselves.
        """
        began, following = self._log[at].event, self._following(at)
        if began.name not in BEGINNINGS or following is began:
            return at
        # The run of a loop starts with the report of an iteration.
        is_same = began.name == "step.started" or following.iteration == began.iteration
        is_of_thread = following.run == began.run and is_same
        is_reported = following.name in _REPORTED and "cancelled" not in following.data
        return self._report_with(at + 1) if is_reported and is_of_thread else at

    def _request(self, event: Event, at: int) -> Input:
        data = event.data
        read = self._offload.read
        payload, ctx = read(data["payload"]), read(data.get("ctx", {}))
        more = {key: data[key] for key in ("parent", "depth", "trace", "returns") if key in data}
        request = Request(data["execution"], data["bundle"], payload, ctx=ctx, **more)
        answer = self._following(at).data
        return Refuse(request, answer["error"]) if "error" in answer else Start(request)

    def _report(self, event: Event, at: int) -> Callable[[], Input] | None:
        thread = self._state.thread(event.run, event.iteration)
        if thread is None:
            return None  # the server ended it
        lease = thread.lease

        def report() -> Input:
            made = self._reported(event, at, lease)
            return WorkerReport(event.run, event.iteration, lease, [made] if made else [])

        return report

    def _retry(self, event: Event, at: int) -> Input:
        data = event.data
        following = (one.event for one in self._log[at + 1 : at + 1 + data["tokens"]])
        put_back = takewhile(lambda event: event.name == "token.enqueued", following)
        tokens = [Token(one.data["step"], one.data["args"], one.data.get("event"), False) for one in put_back]
        return Retry(data["execution"], data["bundle"], data["retried_from"], tokens, data["undone"])

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


BEGINNINGS: frozenset[EventName] = frozenset({"step.started", "loop.iteration.started"})
"""Events that a worker reports alone only while it has nothing else to report."""

_REPORTED: frozenset[EventName] = BEGINNINGS | frozenset(
    {"task.started", "task.done", "step.done", "step.failed", "loop.iteration.done", "loop.iteration.failed"}
)


_INPUTS: dict[EventName, Callable[[LogReplay, Event, int], Input]] = {
    "playbook.execution.requested": LogReplay._request,
    "child.finished": LogReplay._child_finished,
    "execution.paused": lambda *_: Pause(),
    "execution.resumed": lambda *_: Resume(),
    "execution.cancelled": lambda *_: Cancel(),
    "execution.retried": LogReplay._retry,
}
"""How each input is read from its event."""


def _parts(event: Event, expected: Event | None, found: Event | None) -> list[str]:
    """Return the parts of a step that may have decided an event, the likeliest first."""
    if event.name == "next.evaluated":
        fired: list[set[int]] = [set(one.data.get("arcs", ())) for one in (expected, found) if one]
        changed = set.symmetric_difference(*fired) if len(fired) > 1 else set()
        number = min(changed or fired[-1], default=0) + 1
        return [f"arc.{number}/when", f"arc.{number}"]
    if event.name.startswith("loop."):
        return [f"loop.{len(event.iteration.split('.')) + 1 if event.iteration else 1}/in", "loop.1/in"]
    return ["admit"]
