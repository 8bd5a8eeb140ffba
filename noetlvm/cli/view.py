"""The progress and the ending of a run, on standard error.

While it lasts: a live table on a terminal, lines elsewhere, or nothing. At its end: the status, the result, and the
first failure with its position and inputs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from noetlvm.cli.data_text import shortened
from noetlvm.command_line.printed import counted, duration, visible
from noetlvm.data.event import Event, Recorded
from noetlvm.language.events import EventName
from noetlvm.limits import EVENTS_WARNING
from noetlvm.store.interface import Execution, StoreReader

if TYPE_CHECKING:
    from noetlvm.rounds.active import Ending

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
        "reported",
        "retries",
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
        self.reported = started


class Progress:
    """All step runs of one execution."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.status = "running"
        self.events = 0
        self.started = 0.0
        self.now = 0.0
        self.runs: dict[int, StepProgress] = {}
        self._unhandled: list[StepProgress] = []
        """Failed runs whose failure no arc handled: a retry runs their steps again."""

    def observe(self, recorded: Recorded) -> Iterator[str]:
        """Fold an event into the view; yield the lines to print."""
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
        # A view that starts late has not received the beginning.
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
        error = data["outcome"].get("error") or {"message": "a rule retries it"}
        wait = f" in {duration(data['wait_s'])}" if data.get("wait_s") else ""
        place = f"{run.step}[{event.iteration}]" if event.iteration else run.step
        yield f"{place}: {event.label} is tried again{wait} (attempt {event.attempt}): {_one_line(error['message'])}"

    def _iteration_ended(self, event: Event) -> Iterator[str]:
        run = self._run(event)
        has_failed = event.name.endswith("failed")
        if event.iteration in run.parents or event.data.get("cancelled"):
            return
        run.done += 1
        run.failed += has_failed
        if has_failed:
            if len(run.failures) < _FAILURES_LISTED:
                run.failures.append((event.iteration, _one_line(event.data["error"]["message"])))
            yield f"{run.step}[{event.iteration}]: failed: {_one_line(event.data['error']['message'])}"
        if self.now - run.reported >= _SECONDS_BETWEEN:
            run.reported = self.now
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

    def _routed(self, event: Event) -> Iterator[str]:
        run = self.runs.get(event.run)
        if run is not None and run.status == "failed" and not event.data.get("handled"):
            self._unhandled.append(run)
        return iter(())

    def _retried(self, event: Event) -> Iterator[str]:
        for run in self._unhandled:
            run.status = "retried"
        self._unhandled = []
        return self._controlled(event)

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
    "next.evaluated": Progress._routed,
    "token.rejected": Progress._rejected,
    "execution.paused": Progress._controlled,
    "execution.resumed": Progress._controlled,
    "execution.cancelled": Progress._controlled,
    "execution.retried": Progress._retried,
    "playbook.processed": Progress._processed,
}


OTHER_ROWS = 5
"""Rows of a terminal that a live table leaves to its head, its frame and the cursor."""
NARROW = 72
"""Columns of a terminal below which only the columns are shown that matter most."""
COLUMNS = ("step", "", "iterations", "tasks", "retries", "rate", "time")
NARROW_COLUMNS = ("step", "", "iterations", "time")

_CANNOT_DRAW = ("dumb", "unknown")
STYLES = {"failed": "red", "done": "green", "running": "cyan"}


class Quiet:
    """Prints nothing; only counts."""

    def __init__(self) -> None:
        self.executions: dict[str, Progress] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        """Nothing is open."""

    def observe(self, execution: Execution, recorded: Sequence[Recorded]) -> None:
        """Take events that have become durable."""
        progress = self.executions.get(execution.execution_id)
        if progress is None:
            progress = self.executions[execution.execution_id] = Progress(execution.name)
        for one in recorded:
            for line in progress.observe(one):
                self.show_line(execution, line)

    def recall(self, reader: StoreReader, execution_ids: Sequence[str]) -> None:
        """Fold the events from before this process continues the executions."""
        for execution_id in execution_ids:
            row = reader.execution(execution_id)
            if row is None:
                continue
            progress = self.executions[execution_id] = Progress(row.name)
            for recorded in reader.events(execution_id, 0, row.seq):
                for _ in progress.observe(recorded):
                    pass

    def show_line(self, execution: Execution, line: str) -> None:
        """Show one line about an execution."""

    def say(self, text: str) -> None:
        """Print a remark about the run as a whole."""
        _print_line(f"noetlvm: {text}")


class Lines(Quiet):
    """Prints a line for each notable event."""

    def show_line(self, execution: Execution, line: str) -> None:
        whose = f"{execution.name}: " if execution.parent else ""
        _print_line(f"{whose}{line}")


def _print_line(line: str) -> None:
    with suppress(OSError):  # a closed terminal must not end the run
        print(visible(line), file=sys.stderr, flush=True)


def cells(progress: Progress, run: StepProgress, now: float) -> dict[str, str]:
    spent = (run.ended or max(progress.now, now)) - run.started
    failed = f" ({run.failed} failed)" if run.failed else ""
    return {
        "step": run.step,
        "": run.status if run.ended is not None or not run.at else f"{run.status}: {run.at}",
        "iterations": f"{run.done:,}/{run.total:,}{failed}" if run.total else "",
        "tasks": f"{run.tasks:,}",
        "retries": str(run.retries or ""),
        "rate": f"{progress.rate(run):,.0f}/s" if run.total else "",
        "time": duration(spent),
    }


def view_for(*, shows: bool) -> Quiet:
    """Return the view for where standard error goes."""
    if not shows:
        return Quiet()
    if not sys.stderr.isatty() or os.environ.get("TERM") in _CANNOT_DRAW:
        return Lines()
    from noetlvm.cli.terminal import Live

    return Live()


_RESULT_CHARS = 400
_INPUT_CHARS = 300


class FirstFailure(NamedTuple):
    step: str
    iteration: str
    error: dict[str, Any]
    task: str = ""
    attempt: int = 0
    place: str = ""
    """File, line and column of the rule that decided `fail`; of the task, if no rule did."""
    inputs: dict[str, Any] | None = None
    """What the task's tool was given, secrets taken out."""


def first_failure(reader: StoreReader, ending: Ending) -> FirstFailure | None:
    """Return the first failure, with its details from the log."""
    if not ending.failures:
        return None
    failure = ending.failures[0]
    run, iteration = failure.get("run", 0), failure.get("iteration", "")
    found = FirstFailure(failure.get("step", ""), iteration, failure["error"])
    for recorded in reader.events(ending.execution_id) if run else ():
        event = recorded.event
        if event.run == run and event.iteration == iteration:
            found = _with(found, event)
    return found


def _with(found: FirstFailure, event: Event) -> FirstFailure:
    data = event.data
    if event.name == "task.done" and data["do"] == "fail":
        inputs = data.get("inputs")
        return found._replace(task=event.label, attempt=event.attempt, place=data.get("at", ""), inputs=inputs)
    if event.name in ("step.failed", "loop.iteration.failed") and data.get("at"):
        return found._replace(place=data["at"])
    return found


def summary(
    row: Execution, ending: Ending, failed: FirstFailure | None, folder: Path | None, options: str = ""
) -> list[str]:
    """Return the lines that end a run.

    `folder` is where the playbook's files are, if that is known; `options` are those that a suggested command repeats.
    """
    took = f" in {duration(row.ended - row.started)}" if row.ended is not None else ""
    lines = [f"{row.name}: {_STATUS.get(ending.status, ending.status)}{took}  (execution {row.execution_id})"]
    steps = row.counts.get("ok", 0) + row.counts.get("failed", 0)
    more = [counted(steps, "step run"), counted(ending.event_count, "event")]
    if row.counts.get("failed"):
        more.insert(1, f"{row.counts['failed']:,} failed")
    lines.append(f"  {', '.join(more)}")
    if ending.result is not None:
        lines.append(f"  result: {shortened(ending.result, _RESULT_CHARS)}")
    if ending.ctx:
        lines.append(f"  ctx: {shortened(ending.ctx, _RESULT_CHARS)}")
    if failed:
        lines += _failure_lines(failed, ending, folder)
    if row.ended is None:
        lines.append(f"  to continue: noetlvm resume {row.execution_id}{options}")
    return [visible(line) for line in lines]


_STATUS = {"running": "stopped", "paused": "paused"}


def _failure_lines(failed: FirstFailure, ending: Ending, folder: Path | None) -> list[str]:
    title = "  failure:" if ending.failure_count == 1 else f"  first of {ending.failure_count:,} failures:"
    where = [f"task {failed.task}"] if failed.task else []
    where += [f"step {failed.step}"] if failed.step else ["the request"]
    where += [f"iteration {failed.iteration}"] if failed.iteration else []
    where += [f"attempt {failed.attempt}"] if failed.attempt > 1 else []
    message = str(failed.error["message"]).rstrip().replace("\n", f"\n{' ' * 11}")
    lines = [f"{title} {', '.join(where)}", f"    error: {failed.error['kind']}: {message}"]
    rule = "do: fail, at " if failed.task else ""
    if failed.place:
        lines += [f"    rule:  {rule}{_shown_place(failed.place, folder)}", *_source_line(failed.place, folder)]
    if failed.inputs:
        lines.append(f"    input: {shortened(failed.inputs, _INPUT_CHARS)}")
    return lines


def _shown_place(place: str, folder: Path | None) -> str:
    return place if folder is None or folder == Path() else f"{folder}/{place}"


def _source_line(place: str, folder: Path | None) -> list[str]:
    """Return the line of YAML that a place names, if the file is there."""
    file, _, position = place.partition(":")
    line = position.partition(":")[0]
    if folder is None or not line.isdigit():
        return []
    try:
        text = (folder / file).read_text(encoding="utf-8").splitlines()[int(line) - 1]
    except (OSError, UnicodeDecodeError, IndexError):  # it was moved or changed since: only the position is shown
        return []
    return [f"           {text.strip()}"]
