"""`noetlvm fsck`: checks a database and its results, and repairs what follows from the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, NamedTuple

from noetlvm.cli.database import database_path, opened_postgres, results_of, writing
from noetlvm.cli.request import Database, Json
from noetlvm.command_line.declared import Option
from noetlvm.command_line.process import FAILURE, SUCCESS, CommandError
from noetlvm.data.references import as_json
from noetlvm.results.interface import walk
from noetlvm.service.process import offered_results
from noetlvm.store.fsck import Damage
from noetlvm.store.sqlite import SqliteReader

if TYPE_CHECKING:
    from pathlib import Path

    from noetlvm.results.interface import ResultStore
    from noetlvm.store.fsck import Damage


class _Checked(NamedTuple):
    name: str
    repaired: list[Damage]
    left: list[Damage]


def fsck(
    repair: Annotated[bool, Option("--repair", help="Repair damage that can be derived from other data.")] = False,
    db: Database = None,
    store_name: Annotated[
        str | None,
        Option("--store", metavar="STORE", help="PostgreSQL store of a service, as for `noetlvm server`."),
    ] = None,
    results: Annotated[
        list[str] | None,
        Option("--results", metavar="STORE", help="Another result store of the servers; repeatable."),
    ] = None,
    as_json_object: Json = False,
) -> int:
    """Check the events, rows, bundles and results of a database: sequence, checksums, references.

    Exits with 1 if damage remains. --repair rebuilds indexes, the list of references and the rows of executions,
    empties damaged counters, and removes damaged snapshots and rows without an execution. Missing or damaged events,
    bundles and results are only reported.

    In a PostgreSQL store, servers continue during a check, and wait during a repair.

    Examples: noetlvm fsck --repair --db executions.db, noetlvm fsck --store postgresql://noetl@db/noetl
    """
    if store_name is not None:
        checked = _check_service(store_name, results or (), repair=repair)
    else:
        checked = _check_file(database_path(db), repair=repair)
    if as_json_object:
        print(as_json({"damage": list(map(_data, checked.left)), "repaired": list(map(_data, checked.repaired))}))
    else:
        for one in checked.repaired:
            print(f"repaired: {one.what}; {one.remedy}")
        for one in checked.left:
            advice = f"--repair: {one.remedy}" if one.repair else one.remedy
            print(f"damaged: {one.what}; {advice}")
        repaired = f", {len(checked.repaired)} repaired" if checked.repaired else ""
        print(f"{checked.name}: {len(checked.left) or 'no'} damage{repaired}")
    return FAILURE if checked.left else SUCCESS


def _check_file(path: Path, *, repair: bool) -> _Checked:
    if not path.is_file():
        raise CommandError(f"there is no database {path}; --db names another")
    repaired: list[Damage] = []
    if repair:
        with writing(path) as store:
            repaired = store.repair()
    with closing(SqliteReader(path)) as reader:
        left = [*reader.damage(), *_damaged_results(reader.references(), results_of(path))]
    return _Checked(str(path), repaired, left)


def _check_service(name: str, further: Iterable[str], *, repair: bool) -> _Checked:
    with opened_postgres(name) as (store, own):
        results = offered_results(name, own, tuple(further))
        repaired = store.repair() if repair else []
        left = [*store.damage(), *_damaged_results(store.references(), results)]
        return _Checked(store.database.name, repaired, left)


def _damaged_results(references: Iterable[str], results: ResultStore) -> Iterator[Damage]:
    """Yield results that events refer to, directly or through others, and that cannot be read."""
    for key, problem in walk(references, results):
        if problem is not None:
            yield Damage(f"the result {key} cannot be read: {problem}", "restore it from a backup")


def _data(damage: Damage) -> dict[str, object]:
    return {"what": damage.what, "remedy": damage.remedy, "repairable": bool(damage.repair)}
