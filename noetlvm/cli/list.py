"""`noetlvm list`: the executions of a database, the latest first."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from noetlvm.cli.data_text import Table, print_table
from noetlvm.cli.database import reading, with_standing
from noetlvm.cli.request import Database, Json, ServerUrl
from noetlvm.command_line.declared import Option
from noetlvm.command_line.printed import duration
from noetlvm.command_line.process import SUCCESS
from noetlvm.data.event import moment
from noetlvm.data.references import as_json

if TYPE_CHECKING:
    from noetlvm.store.interface import Execution


_SHORT_ID = 13
"""Characters of an identifier that its time takes: two of one millisecond are rare."""
_NAME_CHARS, _STEPS_CHARS = 18, 13
"""The table fits into 80 columns."""


def list(
    db: Database = None,
    server: ServerUrl = None,
    limit: Annotated[int, Option(min=1, metavar="N", help="Number of executions.")] = 20,
    as_json_lines: Json = False,
) -> int:
    """List executions, the latest first. An arrow marks a child execution.

    Identifiers are shortened to a unique part, which every command accepts. `stopped`: no process runs the execution.

    Example: noetlvm list --limit 5
    """
    with reading(db, server) as reader:
        rows = with_standing(reader.executions(limit=limit), db, server)
    if as_json_lines:
        for row in rows:
            print(as_json(row_data(row)))
        return SUCCESS
    columns = ("execution", "playbook", "status", "started", "time", "steps")
    ids = short_ids([row.execution_id for row in rows])
    print_table(Table("Executions", columns, [(ids[row.execution_id], *_cells(row)) for row in rows]))
    return SUCCESS


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """Return the beginning of each identifier that no other has, long enough for the time in it to differ."""
    known = sorted(set(ids))
    found: dict[str, str] = {}
    for at, id in enumerate(known):
        neighbours = known[max(0, at - 1) : at] + known[at + 1 : at + 2]
        length = _SHORT_ID
        while any(other.startswith(id[:length]) for other in neighbours):
            length += 1
        found[id] = id[:length]
    return found


def row_data(row: Execution) -> dict[str, Any]:
    return row._asdict() | {"started": moment(row.started), "ended": row.ended and moment(row.ended)}


def _cells(row: Execution) -> tuple[str, ...]:
    steps = f"{row.counts.get('ok', 0)} ok"
    if row.counts.get("failed"):
        steps += f", {row.counts['failed']} bad"
    started = datetime.fromtimestamp(row.started).astimezone().strftime("%m-%d %H:%M")
    took = duration(row.ended - row.started) if row.ended is not None else ""
    name = f"→ {row.name}" if row.parent else row.name
    return _cut(name, _NAME_CHARS), row.status, started, took, _cut(steps, _STEPS_CHARS)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
