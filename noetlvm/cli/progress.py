"""The progress of an execution, computed from its events: rows for a live view, lines for a log. Prints nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from noetlvm.command_line.printed import counted, duration
from noetlvm.data.event import Event, Recorded
from noetlvm.language.events import EventName
from noetlvm.limits import EVENTS_WARNING

_SECONDS_BETWEEN = 1.0
"""How often a loop reports its progress."""


_FAILURES_LISTED = 10
"""Failed iterations of a step run that are listed."""


class StepProgress:
    __slots__ = (
        "at",
        "done",
        "ended",
        "failed",
        "failures",
        "parents",
        "retries",
        "said",
        "started",
        "status",
        "step",
        "tasks",
        "total",
    )

    def __init__(self, step: str, started: float) -> None:
        self.step = step
        self.started = started
        self.ended: float | None = None
        self.status = "waiting"
        self.total = 0
        """Iterations, as far as they are known; 0: no loop."""
        self.done = 0
        self.failed = 0
        self.failures: list[tuple[str, str]] = []
        """The first failed iterations, with their messages."""
        self.parents: set[str] = set()
        """Iterations that hold a loop: they are counted by what is in them."""
        self.tasks = 0
        self.retries = 0
        self.at = ""
        """The task of the latest event."""
        self.said = started


class Progress:
    """All step runs of one execution."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.status = "running"
        self.events = 0
        self.started = 0.0
        self.now = 0.0
        self.runs: dict[int, StepProgress] = {}

    def observe(self, recorded: Recorded) -> Iterator[str]:
        """Take an event; yield what is worth a line."""
        self.events += 1
        self.now = recorded.timestamp
        self.started = self.started or self.now
        if recorded.seq == EVENTS_WARNING:
            yield f"{self.name}: {EVENTS_WARNING:,} events; consider smaller executions, such as one for each part"
        handler = _HANDLERS.get(recorded.event.name)
        if handler:
            yield from handler(self, recorded.event)

    @property
    def tasks(self) -> int:
        return sum(run.tasks for run in self.runs.values())

    @property
    def retries(self) -> int:
        return sum(run.retries for run in self.runs.values())

    # ---- events

    def _scheduled(self, event: Event) -> Iterator[str]:
        if "step" in event.data and event.data.get("form") != "routing":
            self.runs[event.run] = StepProgress(event.data["step"], self.now)
        return iter(())

    def _run(self, event: Event) -> StepProgress:
        # A view that joins late has not seen the beginning.
        if event.run not in self.runs:
            self.runs[event.run] = StepProgress(f"step run {event.run}", self.now)
        return self.runs[event.run]

    def _started(self, event: Event) -> Iterator[str]:
        run = self._run(event)
        run.status = "running"
        yield f"{run.step}: started"

    def _loop_started(self, event: Event) -> Iterator[str]:
        run, data = self._run(event), event.data
        if event.iteration:
            run.total -= 1
            run.parents.add(event.iteration)
        run.total += data["total"]
        if not event.iteration:
            how = f"{data['width']} at once" if data["parallel"] else "one after the other"
            yield f"{run.step}: loop over {counted(data['total'], 'item')}, {how}"

    def _task_started(self, event: Event) -> Iterator[str]:
        self._run(event).at = event.label
        return iter(())

    def _task_done(self, event: Event) -> Iterator[str]:
        run, data = self._run(event), event.data
        run.tasks += 1
        run.at = event.label
        if data["do"] != "retry":
            return
        run.retries += 1
        error = data["outcome"].get("error") or {"message": "a rule says so"}
        wait = f" in {duration(data['wait_s'])}" if data.get("wait_s") else ""
        place = f"{run.step}[{event.iteration}]" if event.iteration else run.step
        yield f"{place}: {event.label} is tried again{wait} (attempt {event.attempt}): {_one_line(error['message'])}"

    def _iteration_ended(self, event: Event) -> Iterator[str]:
        run = self._run(event)
        has_failed = event.name.endswith("failed")
        if event.iteration in run.parents:
            return
        run.done += 1
        run.failed += has_failed
        if has_failed:
            if len(run.failures) < _FAILURES_LISTED:
                run.failures.append((event.iteration, _one_line(event.data["error"]["message"])))
            yield f"{run.step}[{event.iteration}]: failed: {_one_line(event.data['error']['message'])}"
        if self.now - run.said >= _SECONDS_BETWEEN:
            run.said = self.now
            yield f"{run.step}: {run.done:,} of {run.total:,}, {self.rate(run):,.0f} a second"

    def _step_ended(self, event: Event) -> Iterator[str]:
        if event.run not in self.runs:
            return
        run = self.runs[event.run]
        run.ended = self.now
        run.status = "failed" if event.name == "step.failed" else "done"
        took = duration(run.ended - run.started)
        if run.status == "failed":
            yield f"{run.step}: failed after {took}: {_one_line(event.data['error']['message'])}"
            return
        items = f", {run.done - run.failed:,} of {run.total:,} ok" if event.name == "loop.done" else ""
        yield f"{run.step}: done in {took}{items}"

    def _rejected(self, event: Event) -> Iterator[str]:
        yield f"{event.data['step']}: not admitted ({event.data['reason']})"

    def _controlled(self, event: Event) -> Iterator[str]:
        self.status = event.name.partition(".")[2]
        yield f"{self.name}: {self.status}"

    def _processed(self, event: Event) -> Iterator[str]:
        self.status = event.data["status"]
        return iter(())

    def rate(self, run: StepProgress) -> float:
        """Return the iterations a second of a loop."""
        spent = (run.ended or self.now) - run.started
        return run.done / spent if spent > 0 else 0.0


def _one_line(message: Any) -> str:
    text = " ".join(str(message).split())
    return text if len(text) <= 160 else f"{text[:159]}…"


_HANDLERS: dict[EventName, Callable[[Progress, Event], Iterator[str]]] = {
    "step.scheduled": Progress._scheduled,
    "step.started": Progress._started,
    "loop.started": Progress._loop_started,
    "task.started": Progress._task_started,
    "task.done": Progress._task_done,
    "loop.iteration.done": Progress._iteration_ended,
    "loop.iteration.failed": Progress._iteration_ended,
    "step.done": Progress._step_ended,
    "step.failed": Progress._step_ended,
    "loop.done": Progress._step_ended,
    "token.rejected": Progress._rejected,
    "execution.paused": Progress._controlled,
    "execution.resumed": Progress._controlled,
    "execution.cancelled": Progress._controlled,
    "execution.retried": Progress._controlled,
    "playbook.processed": Progress._processed,
}
