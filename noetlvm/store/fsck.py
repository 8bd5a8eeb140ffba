"""Finds what is damaged in the database of a store, and the statements that repair it. Only reads.

Repaired is what follows from the rest: indexes, snapshots, the table of references, counters, leftovers of executions
that do not exist, and what a row repeats of its log. An event that is missing or damaged is not: nothing else holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from noetlvm.bytecode.codec.container import bundle_id
from noetlvm.bytecode.program import BundleError
from noetlvm.data.encoding import references_in
from noetlvm.data.event import Recorded
from noetlvm.store.chunks import ChunkError, checked, first_sum, known_sum, span
from noetlvm.store.interface import DamagedError
from noetlvm.store.rows import parsed_execution, read_data

Statement: TypeAlias = tuple[str, tuple[Any, ...]]
"""SQL with `?` for each value, and the values."""

_BACKUP = "restore a backup, or remove the execution"


class Damage(NamedTuple):
    """Something that is not as it was written."""

    what: str
    remedy: str
    """What a repair does; without statements, what the user can do."""
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

    def log_keys(self) -> set[int]:
        """Return the keys of executions that have events."""

    def chunks(self, key: int) -> Iterable[Sequence[Any]]:
        """Return the chunks of an execution's log with their checksums, in order."""

    def delete_chunks(self, key: int, after: int) -> Statement:
        """Return the statement that removes the chunks that begin after an event."""

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
"""The columns of the row that each event determines."""


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
            execution = parsed_execution(tables.name, row)
        except DamagedError as problem:
            remedy = _BACKUP
            row[8] = "{}"
            try:
                execution = parsed_execution(tables.name, row)
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
    for key in sorted(tables.log_keys() - rows.keys()):
        yield Damage(
            f"the row of the execution with key {key} is missing, and its events are there", "restore a backup"
        )
    for key, row in rows.items():
        listed = {result for (result,) in tables.select(select, key)}
        yield from _of_log(tables, key, row, listed)


class _CheckedChunk(NamedTuple):
    first: int
    last: int
    data: bytes
    events: Sequence[Recorded]
    problem: str
    """Why it is not what was written; empty: it is."""
    expected: int
    """Number of the event that follows the chunk before."""

    @property
    def is_sound(self) -> bool:
        return self.first == self.expected and not self.problem


def _checked_chunks(tables: CheckedTables, key: int, execution_id: str) -> Iterator[_CheckedChunk]:
    expected = 1
    sum_before: int | None = first_sum(execution_id)
    for first, last, data, found in tables.chunks(key):
        problem, events, end = "", list[Recorded](), last
        try:
            events = checked((first, last, data, found), sum_before if first == expected else None)
        except ChunkError as error:
            problem = str(error)
            end = last if isinstance(last, int) and last >= first else first
        yield _CheckedChunk(first, end, data, events, problem, expected)
        expected, sum_before = end + 1, known_sum(found)


def _of_log(tables: CheckedTables, key: int, row: _Row, listed: set[str]) -> Iterator[Damage]:
    """Yield what is damaged in the log of one execution, and references of its events that are not listed."""
    last = 0
    is_whole = True
    said: dict[str, Any] = {}
    beyond: list[_CheckedChunk] = []
    for chunk in _checked_chunks(tables, key, row.execution_id):
        last = chunk.last
        if chunk.first > row.seq or (last > row.seq and not chunk.problem):
            beyond.append(chunk)
        else:
            is_whole = is_whole and chunk.is_sound
            yield from _of_chunk(chunk, row)
            for _, _, timestamp, event in chunk.events:
                if event.name in _SAID:
                    said |= _SAID[event.name](event.data, timestamp)
        if not chunk.problem:
            yield from _unlisted(tables, key, row, chunk.data, listed)
    if last < row.seq:
        yield Damage(f"{span(last + 1, row.seq)} of {row.execution_id} is missing", _BACKUP)
    if beyond:
        yield _beyond(tables, key, row, beyond)
    elif is_whole and last >= row.seq:
        yield from _of_row(key, row, said)


def _of_chunk(chunk: _CheckedChunk, row: _Row) -> Iterator[Damage]:
    if chunk.first != chunk.expected:
        yield Damage(f"{span(chunk.expected, chunk.first - 1)} of {row.execution_id} is missing", _BACKUP)
    if chunk.problem:
        what = f"{span(chunk.first, chunk.last)} of {row.execution_id} is damaged: {chunk.problem}"
        yield Damage(what, _BACKUP)


def _of_row(key: int, row: _Row, said: dict[str, Any]) -> Iterator[Damage]:
    """Yield where the row of an execution differs from its log."""
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


def _beyond(tables: CheckedTables, key: int, row: _Row, beyond: Sequence[_CheckedChunk]) -> Damage:
    """Return the repair for events after the last one that the row counts."""
    first, last = max(beyond[0].first, row.seq + 1), beyond[-1].last
    what = f"{span(first, last)} of {row.execution_id} comes after the last event of its row, {row.seq}"
    if all(chunk.is_sound for chunk in beyond):
        update = ("UPDATE executions SET seq = ? WHERE key = ?", (last, key))
        return Damage(what, "the events are sound, and the row is moved on", (update,))
    delete = tables.delete_chunks(key, row.seq)
    return Damage(what, "their checksums do not continue the log, and they are removed", (delete,))


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
    from noetlvm.bytecode.verify.verifier import load

    try:
        load(bytes(data))
        return "" if bundle_id(data) == bundle else "its content has another identifier"
    except (BundleError, TypeError) as problem:
        return str(problem)
