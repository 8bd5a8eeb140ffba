"""The tool calls of a log, found by where they stand in the playbook instead of by their numbers.

An edit shifts the numbers of step runs and task runs. So a call is identified by step, how often that step ran before,
iteration, label, how often that label ran before in its pipeline, and attempt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from noetlvm.data.event import Event, Recorded
from noetlvm.machine.loaded import LoadedPlaybook


class CallKey(NamedTuple):
    """Identifies an attempt of a task across edits."""

    step: str
    earlier_runs: int
    iteration: str
    label: str
    earlier_tasks: int
    attempt: int


class CallKeys:
    """Numbers of runs and tasks, as events mention them, and the keys that they stand for."""

    def __init__(self) -> None:
        self._runs: dict[int, tuple[str, int]] = {}
        self._counts: Counter[str] = Counter()
        self._tasks: dict[tuple[int, str], dict[str, list[int]]] = {}

    def observe(self, event: Event) -> None:
        """Take an event, in the order of the log."""
        if event.name == "step.scheduled" and "step" in event.data and event.run not in self._runs:
            step = event.data["step"]
            self._runs[event.run] = step, self._counts[step]
            self._counts[step] += 1
        if event.task:
            tasks = self._tasks.setdefault((event.run, event.iteration), {}).setdefault(event.label, [])
            if event.task not in tasks:
                tasks.append(event.task)

    def step(self, run: int) -> str:
        """Return the step of a run; empty if it is not known."""
        return self._runs.get(run, ("", 0))[0]

    def key(self, run: int, iteration: str, task: int, label: str, attempt: int) -> CallKey:
        """Return the key of an attempt, also of one that no event has mentioned yet."""
        tasks = self._tasks.get((run, iteration), {}).get(label, [])
        earlier = tasks.index(task) if task in tasks else len(tasks)
        return CallKey(*self._runs.get(run, ("", 0)), iteration, label, earlier, attempt)


class RecordedCall:
    """What a log has of one attempt."""

    __slots__ = ("child", "done", "kind", "started", "waited")

    def __init__(self) -> None:
        self.started: Event | None = None
        """None: its tool was not called, so the event of its start has no time, or there is none."""
        self.done: Event | None = None
        self.child: dict[str, Any] | None = None
        """Outcome of the child execution that it waited for."""
        self.waited = 0.0
        """Seconds that this took."""
        self.kind = ""
        """Of its tool; empty if that is not known."""

    @property
    def outcome(self) -> dict[str, Any] | None:
        """What its tool returned; None: it was not called, or did not end."""
        if self.started is None or self.done is None:
            return None
        data = self.done.data
        outcome: dict[str, Any] = data["outcome"]
        if "answered" in data:
            return {**data["answered"], "meta": outcome.get("meta", {})}
        return outcome if data["do"] != "skip" else None

    @property
    def meta(self) -> dict[str, Any]:
        """When it ended and how long it took; empty if that is not known."""
        found: dict[str, Any] = self.done.data["outcome"].get("meta", {}) if self.done else {}
        return found


class RecordedCalls:
    def __init__(self, log: Iterable[Recorded], recorded_with: LoadedPlaybook | None) -> None:
        self._calls: dict[CallKey, RecordedCall] = {}
        keys = CallKeys()
        kinds = _kinds(recorded_with)
        waiting: dict[tuple[int, str], tuple[RecordedCall, float]] = {}
        for recorded in log:
            event = recorded.event
            keys.observe(event)
            position = event.run, event.iteration
            if event.name == "child.finished" and position in waiting:
                call, since = waiting.pop(position)
                call.child, call.waited = event.data["outcome"], recorded.timestamp - since
            if not event.task:
                continue
            key = keys.key(*position, event.task, event.label, event.attempt)
            call = self._calls.setdefault(key, RecordedCall())
            call.kind = kinds.get((key.step, key.label), "")
            if event.name == "task.started" and "ts" in event.data and call.started is None:
                call.started = event
                waiting[position] = call, recorded.timestamp
            elif event.name == "task.done" and "cancelled" not in event.data:
                call.done = event

    def find(self, key: CallKey) -> RecordedCall | None:
        return self._calls.get(key)


def _kinds(playbook: LoadedPlaybook | None) -> Mapping[tuple[str, str], str]:
    """Return the kind of each task, by step and label."""
    if playbook is None:
        return {}
    pipelines = {name: step.pipeline for name, step in playbook.steps.items() if step.pipeline}
    return {(step, label): kind for step, pipeline in pipelines.items() for label, kind, _ in pipeline.tasks()}
