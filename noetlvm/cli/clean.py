"""`noetlvm clean`: removes stored results that no event refers to, such as those of a killed run."""

from __future__ import annotations

from noetlvm.cli.database import database_path, results_of, writing
from noetlvm.cli.request import Database, Json
from noetlvm.command_line.process import CommandError
from noetlvm.data.references import as_json


def clean(db: Database = None, as_json_object: Json = False) -> int:
    """Remove stored results that no event refers to.

    Example: noetlvm clean --db executions.db
    """
    from noetlvm.results.interface import reachable

    path = database_path(db)
    if not path.is_file():
        raise CommandError(f"there is no database {path}; --db names another")
    results = results_of(path)
    with writing(path) as store:
        removed = results.collect_garbage(reachable(store.references(), results))
    if as_json_object:
        print(as_json({"results": removed.results, "bytes": removed.bytes}))
    else:
        print(f"removed {removed.results} results that nothing refers to, {removed.bytes:,} bytes")
    return 0
