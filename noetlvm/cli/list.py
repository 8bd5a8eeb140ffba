"""`noetlvm list`: the executions of a database, the latest first."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from noetlvm.cli.data_text import Table, duration, print_table
from noetlvm.cli.database import reading
from noetlvm.cli.request import Database, Json, ServerUrl
from noetlvm.command_line.declared import Option
from noetlvm.data.event import moment
from noetlvm.data.references import as_json

if TYPE_CHECKING:
    from noetlvm.store.interface import Execution


def list(
    db: Database = None,
    server: ServerUrl = None,
    limit: Annotated[int, Option(min=1, metavar="N", help="How many.")] = 20,
    as_json_lines: Json = False,
) -> int:
    """List executions, the latest first.

    Example: noetlvm list --limit 5
    """
    with reading(db, server) as reader:
        rows = reader.executions(limit=limit)
    if as_json_lines:
        for row in rows:
            print(as_json(row_data(row)))
        return 0
    columns = ("execution", "playbook", "status", "started", "time", "steps", "events")
    print_table(Table("Executions", columns, [_cells(row) for row in rows]))
    return 0


def row_data(row: Execution) -> dict[str, Any]:
    """Return the status of an execution as JSON data."""
    return row._asdict() | {"started": moment(row.started), "ended": row.ended and moment(row.ended)}


def _cells(row: Execution) -> tuple[str, ...]:
    steps = f"{row.counts.get('ok', 0)} ok"
    if row.counts.get("failed"):
        steps += f", {row.counts['failed']} failed"
    started = datetime.fromtimestamp(row.started).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    took = duration(row.ended - row.started) if row.ended is not None else ""
    name = f"{row.name} (child)" if row.parent else row.name
    return row.execution_id, name, row.status, started, took, steps, str(row.seq)
