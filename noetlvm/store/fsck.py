"""Finds what is damaged in the database of a store, and says which statements repair it. Only reads.

Repaired is what follows from the rest: indexes, snapshots, the table of references, counters, leftovers of executions
that do not exist, and what a row repeats of its log. An event that is missing or damaged is not: nothing else holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from noetlvm.bytecode.codec.container import bundle_id
from noetlvm.bytecode.program import BundleError
from noetlvm.bytecode.verify.verifier import load
from noetlvm.data.encoding import references_in
from noetlvm.store.interface import DamagedError
from noetlvm.store.rows import event_problem, first_sum, known_sum, read_data, read_execution

Statement: TypeAlias = tuple[str, tuple[Any, ...]]
"""SQL with `?` for each value, and the values."""

_BACKUP = "restore a backup, or remove the execution"


class Damage(NamedTuple):
    """Something that is not as it was written."""

    what: str
    remedy: str
    """What a repair does; without statements, what a person can do."""
    repair: tuple[Statement, ...] = ()


class CheckedTables(Protocol):
    """The tables of a store as of one moment: what differs between the stores. All else has the same names in each."""

    name: str
    references: str
    """Table of the results that events refer to."""
    snapshot_id: str
    """Column that identifies a snapshot."""

    def select(self, statement: str, *values: Any) -> Iterable[Sequence[Any]]:
        """Return the rows of a query that has `?` for each value."""

    def event_keys(self) -> set[int]:
        """Return the keys of executions that have events."""

    def events(self, key: int) -> Iterable[Sequence[Any]]:
        """Return the rows of an execution's events with their checksums, in order."""

    def delete_events(self, key: int, after: int) -> Statement:
        """Return the statement that removes the events after a number."""

    def medium_damage(self) -> Iterator[Damage]:
        """Yield what the database itself finds: pages, indexes."""


class _Row(NamedTuple):
    """What the check needs of an execution."""

    execution_id: str
    seq: int
    columns: dict[str, Any]
    """What must agree with its log."""


_LOGGED = ("bundle", "path", "status", "ended", "parent", "trace")
"""Columns of an execution's row that follow from its log."""


def _requested(data: dict[str, Any], _at: float) -> dict[str, Any]:
    own = {name: data[name] for name in ("bundle", "path") if name in data}
    return own | {"status": "running", "ended": None, "parent": data.get("parent", ""), "trace": data.get("trace", "")}


_SAID: dict[str, Callable[[dict[str, Any], float], dict[str, Any]]] = {
    "playbook.execution.requested": _requested,
    "execution.retried": lambda data, _at: {
        "bundle": data["bundle"],
        "status": "running",
        "ended": None,
        "parent": "",
        "trace": "",
    },
    "execution.paused": lambda _data, _at: {"status": "paused"},
    "execution.resumed": lambda _data, _at: {"status": "running"},
    "playbook.processed": lambda data, at: {"status": data["status"], "ended": at},
}
"""What each event says of the row."""


def damage_in(tables: CheckedTables) -> Iterator[Damage]:
    """Yield everything that is damaged."""
    yield from tables.medium_damage()
    rows: dict[int, _Row] = {}
    yield from _of_executions(tables, rows)
    yield from _of_events(tables, rows)
    yield from _of_snapshots(tables, rows)
    yield from _of_dependents(tables, rows)
    yield from _of_requests(tables)
    yield from _of_bundles(tables)


def unreadable(problem: Exception) -> Damage:
    """Return the damage that ended a check."""
    return Damage(f"the database cannot be read to its end: {problem}", "restore a backup")


def repairs(found: Iterable[Damage]) -> list[Statement]:
    """Return the statements that repair damage, each once."""
    return list(dict.fromkeys(statement for one in found for statement in one.repair))


def _of_executions(tables: CheckedTables, rows: dict[int, _Row]) -> Iterator[Damage]:
    """Yield damaged rows, and note those that can be read."""
    columns = "execution_id, bundle, name, path, status, started, ended, parent, counts, seq, due, trace"
    known = {bundle for (bundle,) in tables.select("SELECT bundle FROM bundles")}
    for key, *row in tables.select(f"SELECT key, {columns} FROM executions ORDER BY key"):
        repair: tuple[Statement, ...] = ()
        try:
            execution = read_execution(tables.name, row)
        except DamagedError as problem:
            remedy = _BACKUP
            row[8] = "{}"
            try:
                execution = read_execution(tables.name, row)
            except DamagedError:
                yield Damage(str(problem).partition("; ")[0], remedy)
                continue
            repair = (("UPDATE executions SET counts = '{}' WHERE key = ?", (key,)),)
            yield Damage(str(problem).partition("; ")[0], "its counters are emptied", repair)
        logged = {name: getattr(execution, name) for name in _LOGGED}
        rows[key] = _Row(execution.execution_id, execution.seq, logged)
        if execution.bundle and execution.bundle not in known:  # a refused request has none
            missing = f"the bundle {execution.bundle} of {execution.execution_id} is missing"
            yield Damage(missing, "the execution can be shown but not resumed")


def _of_events(tables: CheckedTables, rows: dict[int, _Row]) -> Iterator[Damage]:
    select = f"SELECT result FROM {tables.references} WHERE execution = ?"
    for key in sorted(tables.event_keys() - rows.keys()):
        yield Damage(
            f"the row of the execution with key {key} is missing, and its events are there", "restore a backup"
        )
    for key, row in rows.items():
        listed = {result for (result,) in tables.select(select, key)}
        yield from _of_log(tables, key, row, listed)


def _of_log(tables: CheckedTables, key: int, row: _Row, listed: set[str]) -> Iterator[Damage]:
    """Yield what is damaged in the events of one execution, and references of theirs that are not listed."""
    expected = 1
    sum_before: int | None = first_sum(row.execution_id)
    sound = is_whole = True
    said: dict[str, Any] = {}
    beyond: list[tuple[int, bool]] = []
    for event in tables.events(key):
        seq = event[0]
        is_next = seq == expected
        problem = event_problem(event, sum_before if is_next else None)
        if seq > row.seq:
            sound = sound and is_next and not problem
            beyond.append((seq, sound))
        else:
            is_whole = is_whole and is_next and not problem
            if not is_next:
                yield Damage(f"{_span(expected, seq - 1)} of {row.execution_id} is missing", _BACKUP)
            if problem:
                yield Damage(f"event {seq} of {row.execution_id} is damaged: {problem}", _BACKUP)
            elif event[3] in _SAID:
                said |= _SAID[event[3]](read_data(tables.name, "it", event[9]), event[2])
        if not problem:
            yield from _unlisted(tables, key, row, event[9], listed)
        expected, sum_before = seq + 1, known_sum(event[10])
    if expected <= row.seq:
        yield Damage(f"{_span(expected, row.seq)} of {row.execution_id} is missing", _BACKUP)
    if beyond:
        yield _beyond(tables, key, row, beyond)
    elif is_whole and expected > row.seq:
        yield from _of_row(key, row, said)


def _of_row(key: int, row: _Row, said: dict[str, Any]) -> Iterator[Damage]:
    """Yield what the row of an execution says and its log does not."""
    for name, logged in said.items():
        if row.columns[name] != logged:
            what = f"the row of {row.execution_id} has the {name} {row.columns[name]!r}, and its log {logged!r}"
            yield Damage(
                what, "it gets that of its log", ((f"UPDATE executions SET {name} = ? WHERE key = ?", (logged, key)),)
            )


def _unlisted(tables: CheckedTables, key: int, row: _Row, data: bytes, listed: set[str]) -> Iterator[Damage]:
    for result in set(references_in(data)) - listed:
        listed.add(result)
        insert = f"INSERT INTO {tables.references} (result, execution) VALUES (?, ?) ON CONFLICT DO NOTHING"
        what = f"{row.execution_id} refers to the result {result}, which is not listed"
        yield Damage(what, "it is listed", ((insert, (result, key)),))


def _beyond(tables: CheckedTables, key: int, row: _Row, beyond: Sequence[tuple[int, bool]]) -> Damage:
    """Return what to do about events after the last one that the row knows."""
    what = (
        f"{_span(beyond[0][0], beyond[-1][0])} of {row.execution_id} comes after the last event of its row, {row.seq}"
    )
    if all(sound for _, sound in beyond):
        update = ("UPDATE executions SET seq = ? WHERE key = ?", (beyond[-1][0], key))
        return Damage(what, "the events are sound, and the row is moved on", (update,))
    delete = tables.delete_events(key, row.seq)
    return Damage(what, "their checksums do not continue the log, and they are removed", (delete,))


def _span(first: int, last: int) -> str:
    return f"event {first}" if first == last else f"events {first} to {last}"


def _of_snapshots(tables: CheckedTables, rows: dict[int, _Row]) -> Iterator[Damage]:
    for number, key, seq, data in tables.select(f"SELECT {tables.snapshot_id}, execution, seq, data FROM snapshots"):
        row = rows.get(key)
        problem = "belongs to no execution" if row is None else ""
        if row is not None and not (isinstance(seq, int) and 0 < seq <= row.seq):
            problem = f"is of event {seq}, which does not exist"
        try:
            read_data(tables.name, "it", data)
        except DamagedError:
            problem = "cannot be decoded"
        if problem:
            name = row.execution_id if row else f"key {key}"
            delete = (f"DELETE FROM snapshots WHERE {tables.snapshot_id} = ?", (number,))
            yield Damage(f"the snapshot of {name} {problem}", "it is removed: events give the same state", (delete,))


def _of_dependents(tables: CheckedTables, rows: dict[int, _Row]) -> Iterator[Damage]:
    """Yield what belongs to executions that do not exist."""
    known = {key for (key,) in tables.select("SELECT key FROM executions")} | rows.keys()
    for table, name in (("commands", "commands"), (tables.references, "references")):
        found = {key for (key,) in tables.select(f"SELECT DISTINCT execution FROM {table}")}
        for key in sorted(found - known):
            delete = (f"DELETE FROM {table} WHERE execution = ?", (key,))
            yield Damage(f"{name} of an execution that does not exist (key {key})", "they are removed", (delete,))
    select = (
        "SELECT start_key, execution_id FROM start_keys WHERE execution_id NOT IN (SELECT execution_id FROM executions)"
    )
    for start_key, execution_id in tables.select(select):
        delete = ("DELETE FROM start_keys WHERE start_key = ?", (start_key,))
        yield Damage(f"the start key {start_key!r} of {execution_id}, which does not exist", "it is removed", (delete,))


def _of_requests(tables: CheckedTables) -> Iterator[Damage]:
    for number, execution_id, data in tables.select("SELECT number, execution_id, data FROM requests"):
        try:
            read_data(tables.name, "it", data)
        except DamagedError:
            delete = ("DELETE FROM requests WHERE number = ?", (number,))
            what = f"request {number} to {execution_id} cannot be decoded"
            yield Damage(what, "it is removed: send it again", (delete,))


def _of_bundles(tables: CheckedTables) -> Iterator[Damage]:
    names = [bundle for (bundle,) in tables.select("SELECT bundle FROM bundles")]
    for bundle in names:
        ((data,),) = tables.select("SELECT data FROM bundles WHERE bundle = ?", bundle)
        problem = _bundle_problem(bundle, data)
        if problem:
            yield Damage(f"the bundle {bundle} is damaged: {problem}", "restore a backup")
    select = "SELECT path, version, bundle FROM playbooks WHERE bundle NOT IN (SELECT bundle FROM bundles)"
    for path, version, bundle in tables.select(select):
        yield Damage(f"the bundle {bundle} of `{path}`, version {version}, is missing", "register the playbook again")


def _bundle_problem(bundle: str, data: Any) -> str:
    try:
        load(bytes(data))
        return "" if bundle_id(data) == bundle else "its content has another identifier"
    except (BundleError, TypeError) as problem:
        return str(problem)
