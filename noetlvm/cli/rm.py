"""`noetlvm rm`: removes executions, with their children, events and results."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

from noetlvm.cli.clean import collect
from noetlvm.cli.database import database_path, find_execution, options_given, writing
from noetlvm.cli.request import Database
from noetlvm.command_line.declared import Argument
from noetlvm.command_line.printed import counted
from noetlvm.command_line.process import SUCCESS, CommandError

if TYPE_CHECKING:
    from noetlvm.store.interface import Execution
    from noetlvm.store.sqlite import SqliteStore


def rm(
    executions: Annotated[list[str], Argument(metavar="EXECUTION...", help="Identifiers, or a unique part of each.")],
    db: Database = None,
) -> int:
    """Remove executions that have ended, with their child executions, events and results.

    Example: noetlvm rm 0190f3c2
    """
    path = database_path(db)
    if not path.is_file():
        raise CommandError(f"there is no database {path}; --db names another")
    with writing(path) as store:
        chosen: dict[str, None] = {}
        for text in executions:
            for row in _family(store, find_execution(store, text, options_given(db))):
                _require_ended(row, options_given(db))
                chosen[row.execution_id] = None
        removed = store.delete(chosen)
        results, _ = collect(path, store)
    print(f"noetlvm: removed {counted(removed, 'execution')} and {counted(results, 'result')}", file=sys.stderr)
    return SUCCESS


def _family(store: SqliteStore, row: Execution) -> list[Execution]:
    """Return an execution and everything below it."""
    found = [row]
    for one in found:
        found += store.executions(parent=one.execution_id)
    return found


def _require_ended(row: Execution, options: str) -> None:
    if row.ended is None:
        id = row.execution_id
        raise CommandError(f"{id} has not ended; `noetlvm cancel {id}{options}` ends it")
