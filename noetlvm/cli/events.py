"""`noetlvm events`: the log of an execution, for people or as JSON lines, and as it grows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from noetlvm.cli.data_text import shortened
from noetlvm.cli.database import find_execution, options_given, reading
from noetlvm.cli.request import Database, Json, LatestExecution, ServerUrl
from noetlvm.command_line.declared import Option
from noetlvm.command_line.process import SUCCESS, CommandError
from noetlvm.data.event import Event, Recorded, envelope
from noetlvm.data.references import as_json
from noetlvm.language.events import EVENTS
from noetlvm.nearest import did_you_mean

if TYPE_CHECKING:
    from noetlvm.store.interface import StoreReader

_FOLLOW_SECONDS = 0.2


def events(
    execution: LatestExecution = None,
    step: Annotated[str | None, Option(metavar="STEP", help="Only events of runs of this step.")] = None,
    name: Annotated[
        list[str] | None,
        Option(metavar="NAME", help="Only events of this name; `task.` selects all names that begin with it."),
    ] = None,
    follow: Annotated[bool, Option("--follow", "-f", help="Follow until the execution ends.")] = False,
    db: Database = None,
    server: ServerUrl = None,
    as_json_lines: Json = False,
) -> int:
    """Print the events of an execution.

    Examples: noetlvm events, noetlvm events --step fetch --name task.done, noetlvm events 0190f3c2 --follow --json
    """
    with reading(db, server) as reader:
        row = find_execution(reader, execution, options_given(db, server))
        execution_id = row.execution_id
        wanted = _Filter(step, tuple(name or ()))
        for recorded in _followed(reader, execution_id) if follow else reader.events(execution_id):
            if not wanted.accepts(recorded.event):
                continue
            line = as_json(envelope(execution_id, row.trace_id, recorded)) if as_json_lines else _line(recorded)
            print(line, flush=follow)
    return SUCCESS


class _Filter:
    def __init__(self, step: str | None, names: tuple[str, ...]) -> None:
        self._step = step
        self._names = names
        self._runs: set[int] = set()
        """Runs of the step so far."""
        unknown = [name for name in names if not any(_is_named(known, name) for known in EVENTS)]
        if unknown:
            hint = did_you_mean(unknown[0], EVENTS) or f"they are {', '.join(EVENTS)}"
            raise CommandError(f"there is no event `{unknown[0]}`; {hint}")

    def accepts(self, event: Event) -> bool:
        if event.data.get("step") == self._step and event.run:
            self._runs.add(event.run)
        is_of_step = self._step is None or event.run in self._runs or event.data.get("step") == self._step
        return is_of_step and (not self._names or any(_is_named(event.name, name) for name in self._names))


def _is_named(event: str, wanted: str) -> bool:
    return event == wanted or (wanted.endswith(".") and event.startswith(wanted))


def _followed(reader: StoreReader, execution_id: str) -> Iterator[Recorded]:
    seq = 0
    while True:
        row = reader.execution(execution_id)  # before the events: an execution that it marks as ended has all of them
        for recorded in reader.events(execution_id, seq):
            seq = recorded.seq
            yield recorded
        if row is None or row.ended is not None:
            return
        time.sleep(_FOLLOW_SECONDS)


def _line(recorded: Recorded) -> str:
    event = recorded.event
    at = datetime.fromtimestamp(recorded.timestamp).astimezone().strftime("%H:%M:%S.%f")[:-3]
    where = f"{event.run}" if event.run else ""
    where += f"[{event.iteration}]" if event.iteration else ""
    where += f" {event.label}" if event.label else ""
    where += f" #{event.attempt}" if event.attempt > 1 else ""
    return f"{recorded.seq:>6}  {at}  {event.name:<28}  {where:<24}  {shortened(event.data, 120)}".rstrip()
