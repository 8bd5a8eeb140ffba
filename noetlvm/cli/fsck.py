"""`noetlvm fsck`: checks a database and its results, and repairs what follows from the rest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

from noetlvm.cli.database import database_path, results_of, writing
from noetlvm.cli.request import Database, Json
from noetlvm.command_line.declared import Option
from noetlvm.command_line.process import FAILURE, SUCCESS, CommandError
from noetlvm.data.references import as_json

if TYPE_CHECKING:
    from noetlvm.results.interface import ResultStore
    from noetlvm.store.fsck import Damage
    from noetlvm.store.interface import StoreReader


def fsck(
    repair: Annotated[bool, Option("--repair", help="Repair what follows from the rest.")] = False,
    db: Database = None,
    as_json_object: Json = False,
) -> int:
    """Check the events, rows, bundles and results of a database: sequence, checksums, references.

    Exits with 1 if anything is damaged that was not repaired. With --repair it rebuilds indexes, the list of
    references and the number of an execution's last event, empties damaged counters, and removes damaged snapshots and
    what belongs to no execution. Missing or damaged events, bundles and results are only reported.

    Example: noetlvm fsck --repair --db executions.db
    """
    from noetlvm.store.sqlite import SqliteReader

    path = database_path(db)
    if not path.is_file():
        raise CommandError(f"there is no database {path}; --db names another")
    results = results_of(path)
    repaired: list[Damage] = []
    if repair:
        with writing(path) as store:
            repaired = [found for found in store.damage() if found.repair]
            store.repair(repaired)
    with closing(SqliteReader(path)) as reader:
        left = [*reader.damage(), *_damaged_results(reader, results)]
    if as_json_object:
        print(as_json({"damage": [_data(one) for one in left], "repaired": [_data(one) for one in repaired]}))
    else:
        for one in repaired:
            print(f"repaired: {one.what}; {one.remedy}")
        for one in left:
            advice = f"--repair: {one.remedy}" if one.repair else one.remedy
            print(f"damaged: {one.what}; {advice}")
        print(f"{path}: {len(left) or 'no'} damage" + (f", {len(repaired)} repaired" if repaired else ""))
    return FAILURE if left else SUCCESS


def _damaged_results(reader: StoreReader, results: ResultStore) -> Iterator[Damage]:
    """Yield results that events refer to, directly or through others, and that cannot be read."""
    from noetlvm.results.interface import walk
    from noetlvm.store.fsck import Damage

    for key, problem in walk(reader.references(), results):
        if problem is not None:
            yield Damage(f"the result {key} cannot be read: {problem}", "restore it from a backup")


def _data(damage: Damage) -> dict[str, object]:
    return {"what": damage.what, "remedy": damage.remedy, "repairable": bool(damage.repair)}
