"""`noetlvm ctx`: the `ctx` of an execution, now or after one of its events."""

from __future__ import annotations

from typing import Annotated

from noetlvm.cli.database import find_execution, options_given, reading
from noetlvm.cli.request import Database, LatestExecution, ServerUrl
from noetlvm.command_line.declared import Option
from noetlvm.command_line.process import SUCCESS, CommandError
from noetlvm.data.references import as_json
from noetlvm.rounds.recovery import recovered


def ctx(
    execution: LatestExecution = None,
    at: Annotated[
        int | None, Option(min=0, metavar="SEQ", help="Print ctx as it was after the event of this number.")
    ] = None,
    db: Database = None,
    server: ServerUrl = None,
) -> int:
    """Print the ctx of an execution as JSON, now or after one of its events.

    Example: noetlvm ctx --at 12
    """
    with reading(db, server) as reader:
        row = find_execution(reader, execution, options_given(db, server))
        if at is not None and at > row.seq:
            raise CommandError(f"{row.execution_id} has {row.seq:,} events; --at takes 0 to {row.seq}")
        state = recovered(reader, row.execution_id, row.bundle, at)
    print(as_json(state.ctx, indent=2))
    return SUCCESS
