"""What `noetlvm clean` does: removes stored results that no event refers to, such as those of a run that was killed."""

from __future__ import annotations

from noetlvm.cli.data_text import as_json
from noetlvm.cli.database import database_path, results_of, writing
from noetlvm.cli.refused import Refused


def clean_results(db: str | None, *, as_json_object: bool) -> int:
    """Remove orphans, say how many, and return the exit code. Holds the database, so that nobody makes new ones."""
    from noetlvm.results.interface import reachable

    path = database_path(db)
    if not path.is_file():
        raise Refused(f"there is no database {path}; --db names another")
    results = results_of(path)
    with writing(path) as store:
        removed = results.collect_garbage(reachable(store.references(), results))
    if as_json_object:
        print(as_json({"results": removed.results, "bytes": removed.bytes}))
    else:
        print(f"removed {removed.results} results that nothing refers to, {removed.bytes:,} bytes")
    return 0
