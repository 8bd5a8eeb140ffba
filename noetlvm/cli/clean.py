"""`noetlvm clean`: removes stored results that no event refers to, and executions that ended long ago."""

from __future__ import annotations

import re
from time import time
from typing import TYPE_CHECKING, Annotated

from noetlvm.cli.database import database_path, opened_postgres, results_of, writing
from noetlvm.cli.request import Database, Json
from noetlvm.command_line.declared import Option
from noetlvm.command_line.printed import counted
from noetlvm.command_line.process import SUCCESS, CommandError
from noetlvm.data.references import as_json
from noetlvm.results.interface import reachable

if TYPE_CHECKING:
    from pathlib import Path

    from noetlvm.store.interface import Execution
    from noetlvm.store.sqlite import SqliteStore

_UNITS = {"m": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400}
"""Seconds of each unit that `--older-than` takes."""


def clean(
    older_than: Annotated[
        str | None,
        Option("--older-than", metavar="AGE", help="Remove executions that ended longer ago than this: 12h, 30d, 8w."),
    ] = None,
    db: Database = None,
    store_name: Annotated[
        str | None,
        Option("--store", metavar="STORE", help="PostgreSQL store of a service, as for `noetlvm server`."),
    ] = None,
    as_json_object: Json = False,
) -> int:
    """Remove stored results that no event refers to, and on request, executions that ended long ago.

    Executions that have not ended are not removed, nor their parents and children.

    In a PostgreSQL store, servers continue. Executions are removed by the month in which they started, when the month
    is older and all its executions have ended. Results are removed if they were stored more than an hour ago.

    Examples: noetlvm clean, noetlvm clean --older-than 30d --db executions.db
    """
    before = None if older_than is None else time() - seconds_of(older_than)
    if store_name is not None:
        deleted, removed = _clean_service(store_name, before)
    else:
        path = database_path(db)
        if not path.is_file():
            raise CommandError(f"there is no database {path}; --db names another")
        with writing(path) as store:
            deleted = 0 if before is None else store.delete(_ended_before(store.executions(), before))
            removed = collect(path, store)
    if as_json_object:
        print(as_json({"executions": deleted, "results": removed[0], "bytes": removed[1]}))
        return SUCCESS
    if before is not None:
        print(f"removed {counted(deleted, 'execution')} that ended more than {older_than} ago")
    print(f"removed {counted(removed[0], 'result')} that nothing refers to, {removed[1]:,} bytes")
    return SUCCESS


_YOUNG_SECONDS = 3_600
"""A younger result may not be referenced yet."""


def _clean_service(name: str, before: float | None) -> tuple[int, tuple[int, int]]:
    with opened_postgres(name) as (store, results):
        deleted = 0 if before is None else store.delete_before(before)
        removed = results.collect_garbage(reachable(store.references(), results), store.now() - _YOUNG_SECONDS)
    return deleted, (removed.results, removed.bytes)


def collect(path: Path, store: SqliteStore) -> tuple[int, int]:
    """Remove stored results that nothing refers to; return how many, and their bytes."""
    results = results_of(path)
    removed = results.collect_garbage(reachable(store.references(), results))
    return removed.results, removed.bytes


def seconds_of(age: str) -> float:
    """Return the seconds of an age such as `30d`. Raises CommandError."""
    found = re.fullmatch(r"(\d{1,6})([mhdw])", age)
    if found is None:
        raise CommandError(f"--older-than takes a number of minutes, hours, days or weeks, such as 30d, not `{age}`")
    return int(found[1]) * _UNITS[found[2]]


def _ended_before(rows: list[Execution], before: float) -> list[str]:
    """Return the executions that ended before a time, unless one of their family did not."""
    roots = {row.execution_id: row.execution_id for row in rows if not row.parent}
    parents = {row.execution_id: row.parent for row in rows}

    def root(id: str) -> str:
        while id not in roots and parents.get(id):
            id = parents[id]
        return roots.get(id, id)

    alive = {root(row.execution_id) for row in rows if row.ended is None or row.ended >= before}
    return [row.execution_id for row in rows if root(row.execution_id) not in alive]
