"""Decides an execution again: what came in is read off its log, and what follows is compared with what the log says.

The request, what workers told, lost leases, time limits that were over and what people asked for came from outside; all
else was decided, and must be decided again in the same way, event by event. What a worker told is taken as it is: its
pipelines do not run again. Time limits are looked at where the log says that one struck, and nowhere else. With another
bundle than the log's own, the first difference shows where an edit would have changed what happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from noetlvm.data.encoding import UnencodableError, decode, encode
from noetlvm.data.event import Event, Recorded
from noetlvm.machine.control import Control, Request
from noetlvm.machine.loaded import LoadedPlaybook
from noetlvm.machine.payload import Offload
from noetlvm.machine.state import Run, State


class Difference(NamedTuple):
    """Where the log and the decisions part."""

    seq: int
    expected: Event | None
    """What the log has; None: it has ended."""
    found: Event | None
    """What is decided there; None: nothing."""
    place: str
    """Where the YAML that decides was written; empty if that is not known."""


def rehearse(net: LoadedPlaybook, log: Sequence[Recorded], offload: Offload) -> Difference | None:
    """Return the first difference between a log and what is decided over a playbook, if there is one."""
    return _Rehearsal(net, log, offload).run()


class _Rehearsal:
    """One log, up to where it has been found right."""

    def __init__(self, net: LoadedPlaybook, log: Sequence[Recorded], offload: Offload) -> None:
        self._net = net
        self._log = log
        self._control = Control(net, State(), offload)
        self._state = self._control.state
        self._at = 0
        """How many events were found right."""
        self._steps = {
            event.run: event.data["step"]
            for *_, event in log
            if event.name == "step.scheduled" and "step" in event.data
        }

    def run(self) -> Difference | None:
        while self._at < len(self._log):
            difference = self._go_on()
            if difference is not None:
                return difference
        more = self._settle()
        return self._difference(more[0]) if more else None

    def _go_on(self) -> Difference | None:
        """Let the next thing that came in have happened, or what follows from those before it."""
        recorded = self._log[self._at]
        take = self._source(recorded.event)
        if take is None:
            self._control.set_time(recorded.timestamp)
            return self._compare(self._settle())
        if self._at and recorded.timestamp != self._log[self._at - 1].timestamp:
            # All that is decided at once is recorded at one time: before this, everything had come to rest.
            early = self._settle()
            if early:
                return self._difference(early[0])
        self._control.set_time(recorded.timestamp)
        return self._compare(take(self, recorded.event))

    def _settle(self) -> list[Event]:
        self._state.opened = dict.fromkeys(self._untaken())
        return self._control.settle()

    def _untaken(self) -> Iterator[tuple[int, str]]:
        """Yield the threads that nobody holds. That came from outside too; the log tells by cancelling them (S27)."""
        for at in range(self._at, len(self._log)):
            recorded = self._log[at]
            event = recorded.event
            if recorded.timestamp != self._log[self._at].timestamp or self._source(event) is not None:
                return
            if event.name == "loop.iteration.failed" and event.data.get("cancelled"):
                yield event.run, event.iteration

    # ---- comparing

    def _compare(self, made: list[Event]) -> Difference | None:
        if not made:
            return self._difference(None)
        for event in made:
            if self._at == len(self._log) or not _is_same(self._log[self._at].event, event):
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
        if event.name == "ctx.patched":
            # It names no step. One that is decided comes from a loop, whose end is the next event.
            event = next((one.event for one in self._log[self._at :] if one.event.run), event)
        step = event.data.get("step") or self._steps.get(event.run, "")
        for part in _parts(event, expected, found):
            place = self._net.locate(f"{step}/{part}")
            if place:
                return place
        return self._net.locate(step)

    # ---- what came in

    def _source(self, event: Event) -> Callable[[_Rehearsal, Event], list[Event]] | None:
        """Return how an event came in; None: it was decided."""
        if event.name == "step.failed" and "cancelled" in event.data:
            return _Rehearsal._time_out
        if event.name in _TOLD:
            return _Rehearsal._report if self._is_told(event) else None
        if event.name == "step.scheduled" and "lease" not in event.data:
            return None
        return _SOURCES.get(event.name)

    def _is_told(self, event: Event) -> bool:
        """Tell whether a worker may have told an event: it is about a pipeline that is open."""
        run = self._state.runs.get(event.run)
        if run is None or "cancelled" in event.data:
            return False
        return bool(run.threads) if event.name == "step.started" else event.iteration in run.threads

    def _request(self, event: Event) -> list[Event]:
        data = event.data
        read = self._control.offload.read
        family = (data.get("parent", ""), data.get("depth", 0), data.get("trace", ""))
        payload, ctx = read(data["payload"]), read(data.get("ctx", {}))
        request = Request(data["execution"], data["bundle"], payload, *family, ctx)
        answer = self._log[self._at + 1].event.data if self._at + 1 < len(self._log) else {}
        if "error" in answer:
            return self._control.refuse(request, answer["error"])
        return self._control.start(request)

    def _report(self, event: Event) -> list[Event]:
        run = self._state.runs[event.run]
        iteration, told = self._told(event, run)
        unit = self._net.steps[run.step].unit(iteration)
        return self._control.report(event.run, iteration, run.leases.get(unit, 1), told)

    def _told(self, first: Event, run: Run) -> tuple[str, list[Event]]:
        """Return the report that an event begins, and whose it is.

        Of an iteration that ends in its first report no beginning is recorded. So after one that is, the report is
        taken to be short, and else to be all that stands together.
        """
        at, whose = self._at, None
        if first.name == "step.started":
            at += 1
        begun = self._event(at, first.run)
        if begun and begun.name == "loop.iteration.started":
            at, whose = at + 1, begun.iteration
        is_short = whose is not None
        told: list[Event] = []
        while (event := self._event(at, first.run)) and event.name not in _BEGINNINGS and self._is_told(event):
            if whose not in (None, event.iteration):
                break
            event, at = self._as_told(event, at + 1)
            whose = event.iteration
            told.append(event)
            if is_short or event.name in _ENDINGS:
                break
        if told:
            return told[0].iteration, told
        return first.iteration or next(iter(run.threads)), [first]

    def _event(self, at: int, run: int) -> Event | None:
        """Return an event of the log that a worker may have told of a run at the present time."""
        if at >= len(self._log) or self._log[at].timestamp != self._log[self._at].timestamp:
            return None
        event = self._log[at].event
        return event if event.name in _TOLD and event.run == run else None

    def _as_told(self, event: Event, after: int) -> tuple[Event, int]:
        """Return an event as the worker told it, with what it wrote to `ctx`, and the place after both."""
        following = self._log[after].event if after < len(self._log) else event
        if event.name != "task.done" or following.name != "ctx.patched" or self._is_write_of_loop(after):
            return event, after
        return event._replace(data=event.data | {"ctx": following.data["patch"]}), after + 1

    def _is_write_of_loop(self, at: int) -> bool:
        """Tell whether a loop wrote to `ctx`, and not the task before: then the loop ends with the next event."""
        if at + 1 >= len(self._log):
            return False
        end = self._log[at + 1].event
        if (end.run, end.iteration) not in self._state.complete or end.name not in ("loop.done", "loop.iteration.done"):
            return False
        return bool(self._state.runs[end.run].loops[end.iteration].patches)

    def _lose_lease(self, event: Event) -> list[Event]:
        run = self._state.runs.get(event.run)
        if run is None:
            return []
        unit = self._net.steps[run.step].unit
        covered = (iteration for iteration in run.threads if unit(iteration) == event.iteration)
        return self._control.expire(event.run, next(covered, event.iteration), event.data["lease"] - 1)

    def _time_out(self, _event: Event) -> list[Event]:
        return self._control.timer()

    def _pause(self, _event: Event) -> list[Event]:
        return self._control.pause()

    def _resume(self, _event: Event) -> list[Event]:
        return self._control.resume()

    def _cancel(self, event: Event) -> list[Event]:
        for number, run in self._state.runs.items():
            for iteration, thread in run.threads.items():
                if thread.child and thread.child.key not in event.data["children"]:
                    # It had ended, and its parent had not told of it yet.
                    self._control.child_finished(number, iteration, thread.child.key, {})
        return self._control.cancel()


_ENDINGS = frozenset({"step.done", "step.failed", "loop.iteration.done", "loop.iteration.failed"})
_BEGINNINGS = frozenset({"step.started", "loop.iteration.started"})
_TOLD = _ENDINGS | _BEGINNINGS | {"task.started", "task.done"}

_SOURCES: dict[str, Callable[[_Rehearsal, Event], list[Event]]] = {
    "playbook.execution.requested": _Rehearsal._request,
    "step.scheduled": _Rehearsal._lose_lease,
    "execution.paused": _Rehearsal._pause,
    "execution.resumed": _Rehearsal._resume,
    "execution.cancelled": _Rehearsal._cancel,
}
"""How what no worker tells came in."""


def _is_same(recorded: Event, made: Event) -> bool:
    """Tell whether an event was made once more; what the log has went through its encoding."""
    if recorded == made:
        return True
    try:
        return recorded == made._replace(data=decode(encode(made.data)))
    except UnencodableError:
        return False


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
