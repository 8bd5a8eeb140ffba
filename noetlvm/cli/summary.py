"""What is said when a run ends: how it went, its result, and the first failure with everything needed to mend it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from noetlvm.cli.data_text import shortened
from noetlvm.command_line.printed import counted, duration, visible

if TYPE_CHECKING:
    from noetlvm.data.event import Event
    from noetlvm.server.active import Ending
    from noetlvm.store.interface import Execution, StoreReader

_RESULT_CHARS = 400
_INPUT_CHARS = 300


class FirstFailure(NamedTuple):
    """The first unhandled failure."""

    step: str
    iteration: str
    error: dict[str, Any]
    task: str = ""
    attempt: int = 0
    place: str = ""
    """File, line and column of the rule that said `fail`; of the task, if no rule did."""
    inputs: dict[str, Any] | None = None
    """What the task's tool was given, secrets taken out."""


def first_failure(reader: StoreReader, ending: Ending) -> FirstFailure | None:
    """Return the first failure, with what the log says of it."""
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
        lines.append(f"  to go on: noetlvm resume {row.execution_id}{options}")
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
    except (OSError, UnicodeDecodeError, IndexError):  # it was moved or changed since: the place has to do
        return []
    return [f"           {text.strip()}"]
