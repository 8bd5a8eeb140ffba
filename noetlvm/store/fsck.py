"""Finds what is damaged in an SQLite database, and says which statements repair it. Only reads.

Repaired is what follows from the rest: indexes, snapshots, the table of references, counters, leftovers of executions
that do not exist, and the number of the last event. An event that is missing or damaged is not: nothing else holds it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from noetlvm.bytecode.codec.container import bundle_id
from noetlvm.bytecode.program import BundleError
from noetlvm.bytecode.verify.verifier import load
from noetlvm.data.encoding import references_in
from noetlvm.store.interface import DamagedError
from noetlvm.store.migrations import SEQ_BITS
from noetlvm.store.rows import event_problem, first_sum, read_data, read_execution

Statement: TypeAlias = tuple[str, tuple[Any, ...]]

_SEQ_MAX = (1 << SEQ_BITS) - 1
_INDEX_PROBLEMS = ("missing from index", "wrong # of entries in index", "non-unique entry in index")
_BACKUP = "restore a backup, or remove the execution"


class Damage(NamedTuple):
    """Something that is not as it was written."""

    what: str
    remedy: str
    """What a repair does; without statements, what a person can do."""
    repair: tuple[Statement, ...] = ()


class _Row(NamedTuple):
    """What the check needs of an execution."""

    execution_id: str
    seq: int


def damage_in(connection: sqlite3.Connection, path: Path) -> Iterator[Damage]:
    """Yield everything that is damaged, as of one moment."""
    connection.execute("BEGIN")
    try:
        yield from _of_the_file(connection)
        rows: dict[int, _Row] = {}
        yield from _of_executions(connection, path, rows)
        yield from _of_events(connection, rows)
        yield from _of_snapshots(connection, path, rows)
        yield from _of_dependents(connection, rows)
        yield from _of_requests(connection, path)
        yield from _of_bundles(connection)
    except sqlite3.DatabaseError as error:
        yield Damage(f"the file cannot be read to its end: {error}", "restore a backup")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _of_the_file(connection: sqlite3.Connection) -> Iterator[Damage]:
    for (problem,) in connection.execute("PRAGMA integrity_check").fetchall():
        if any(known in problem for known in _INDEX_PROBLEMS):
            yield Damage(
                f"an index differs from its table: {problem}", "the indexes are built anew", (("REINDEX", ()),)
            )
        elif problem != "ok":
            yield Damage(f"SQLite finds: {problem}", "restore a backup")


def _of_executions(connection: sqlite3.Connection, path: Path, rows: dict[int, _Row]) -> Iterator[Damage]:
    """Yield damaged rows, and note those that can be read."""
    columns = "execution_id, bundle, name, path, status, started, ended, parent, counts, seq, due, trace"
    known = {bundle for (bundle,) in connection.execute("SELECT bundle FROM bundles")}
    for key, *row in connection.execute(f"SELECT key, {columns} FROM executions ORDER BY key").fetchall():
        repair: tuple[Statement, ...] = ()
        try:
            execution = read_execution(path.name, row)
        except DamagedError as problem:
            remedy = _BACKUP
            row[8] = "{}"
            try:
                execution = read_execution(path.name, row)
            except DamagedError:
                yield Damage(str(problem).partition("; ")[0], remedy)
                continue
            repair = (("UPDATE executions SET counts = '{}' WHERE key = ?", (key,)),)
            yield Damage(str(problem).partition("; ")[0], "its counters are emptied", repair)
        rows[key] = _Row(execution.execution_id, execution.seq)
        if execution.bundle and execution.bundle not in known:  # a refused request has none
            missing = f"the bundle {execution.bundle} of {execution.execution_id} is missing"
            yield Damage(missing, "the execution can be shown but not resumed")


def _of_events(connection: sqlite3.Connection, rows: dict[int, _Row]) -> Iterator[Damage]:
    select = 'SELECT result FROM "references" WHERE execution = ?'
    keys = {key for (key,) in connection.execute(f"SELECT DISTINCT place >> {SEQ_BITS} FROM events")}
    for key in sorted(keys - rows.keys()):
        yield Damage(
            f"the row of the execution with key {key} is missing, and its events are there", "restore a backup"
        )
    for key, row in rows.items():
        listed = {result for (result,) in connection.execute(select, (key,))}
        yield from _of_log(connection, key, row, listed)


def _of_log(connection: sqlite3.Connection, key: int, row: _Row, listed: set[str]) -> Iterator[Damage]:
    """Yield what is damaged in the events of one execution, and references of theirs that are not listed."""
    select = f"""SELECT place & {_SEQ_MAX}, event_id, timestamp, name, run, iteration, task, label, attempt, data, sum
        FROM events WHERE place > ? AND place <= ? ORDER BY place"""
    base = key << SEQ_BITS
    expected, sum_before = 1, first_sum(row.execution_id)
    sound = True
    beyond: list[tuple[int, bool]] = []
    for event in connection.execute(select, (base, base + _SEQ_MAX)):
        seq = event[0]
        is_next = seq == expected
        problem = event_problem(event, sum_before if is_next else None)
        if seq > row.seq:
            sound = sound and is_next and not problem
            beyond.append((seq, sound))
        else:
            if not is_next:
                yield Damage(f"{_span(expected, seq - 1)} of {row.execution_id} is missing", _BACKUP)
            if problem:
                yield Damage(f"event {seq} of {row.execution_id} is damaged: {problem}", _BACKUP)
        if not problem:
            yield from _unlisted(key, row, event[9], listed)
        expected, sum_before = seq + 1, event[10]
    if expected <= row.seq:
        yield Damage(f"{_span(expected, row.seq)} of {row.execution_id} is missing", _BACKUP)
    if beyond:
        yield _beyond(key, row, beyond)


def _unlisted(key: int, row: _Row, data: bytes, listed: set[str]) -> Iterator[Damage]:
    for result in set(references_in(data)) - listed:
        listed.add(result)
        insert = 'INSERT OR IGNORE INTO "references" (result, execution) VALUES (?, ?)'
        what = f"{row.execution_id} refers to the result {result}, which is not listed"
        yield Damage(what, "it is listed", ((insert, (result, key)),))


def _beyond(key: int, row: _Row, beyond: Sequence[tuple[int, bool]]) -> Damage:
    """Return what to do about events after the last one that the row knows."""
    what = (
        f"{_span(beyond[0][0], beyond[-1][0])} of {row.execution_id} comes after the last event of its row, {row.seq}"
    )
    if all(sound for _, sound in beyond):
        update = ("UPDATE executions SET seq = ? WHERE key = ?", (beyond[-1][0], key))
        return Damage(what, "the events are sound, and the row is moved on", (update,))
    places = ((key << SEQ_BITS) + row.seq, (key << SEQ_BITS) + _SEQ_MAX)
    delete = ("DELETE FROM events WHERE place > ? AND place <= ?", places)
    return Damage(what, "their checksums do not continue the log, and they are removed", (delete,))


def _span(first: int, last: int) -> str:
    return f"event {first}" if first == last else f"events {first} to {last}"


def _of_snapshots(connection: sqlite3.Connection, path: Path, rows: dict[int, _Row]) -> Iterator[Damage]:
    for number, key, seq, data in connection.execute("SELECT rowid, execution, seq, data FROM snapshots").fetchall():
        row = rows.get(key)
        problem = "belongs to no execution" if row is None else ""
        if row is not None and not (isinstance(seq, int) and 0 < seq <= row.seq):
            problem = f"is of event {seq}, which does not exist"
        try:
            read_data(path.name, "it", data)
        except DamagedError:
            problem = "cannot be decoded"
        if problem:
            name = row.execution_id if row else f"key {key}"
            delete = ("DELETE FROM snapshots WHERE rowid = ?", (number,))
            yield Damage(f"the snapshot of {name} {problem}", "it is removed: events give the same state", (delete,))


def _of_dependents(connection: sqlite3.Connection, rows: dict[int, _Row]) -> Iterator[Damage]:
    """Yield what belongs to executions that do not exist."""
    known = {key for (key,) in connection.execute("SELECT key FROM executions")} | rows.keys()
    for table, name in (("commands", "commands"), ('"references"', "references")):
        found = {key for (key,) in connection.execute(f"SELECT DISTINCT execution FROM {table}")}
        for key in sorted(found - known):
            delete = (f"DELETE FROM {table} WHERE execution = ?", (key,))
            yield Damage(f"{name} of an execution that does not exist (key {key})", "they are removed", (delete,))
    select = (
        "SELECT start_key, execution_id FROM start_keys WHERE execution_id NOT IN (SELECT execution_id FROM executions)"
    )
    for start_key, execution_id in connection.execute(select).fetchall():
        delete = ("DELETE FROM start_keys WHERE start_key = ?", (start_key,))
        yield Damage(f"the start key {start_key!r} of {execution_id}, which does not exist", "it is removed", (delete,))


def _of_requests(connection: sqlite3.Connection, path: Path) -> Iterator[Damage]:
    for number, execution_id, data in connection.execute("SELECT number, execution_id, data FROM requests").fetchall():
        try:
            read_data(path.name, "it", data)
        except DamagedError:
            delete = ("DELETE FROM requests WHERE number = ?", (number,))
            what = f"request {number} to {execution_id} cannot be decoded"
            yield Damage(what, "it is removed: send it again", (delete,))


def _of_bundles(connection: sqlite3.Connection) -> Iterator[Damage]:
    names = [bundle for (bundle,) in connection.execute("SELECT bundle FROM bundles")]
    for bundle in names:
        ((data,),) = connection.execute("SELECT data FROM bundles WHERE bundle = ?", (bundle,))
        problem = _bundle_problem(bundle, data)
        if problem:
            yield Damage(f"the bundle {bundle} is damaged: {problem}", "restore a backup")
    select = "SELECT path, version, bundle FROM playbooks WHERE bundle NOT IN (SELECT bundle FROM bundles)"
    for path, version, bundle in connection.execute(select).fetchall():
        yield Damage(f"the bundle {bundle} of `{path}`, version {version}, is missing", "register the playbook again")


def _bundle_problem(bundle: str, data: Any) -> str:
    try:
        load(bytes(data))
        return "" if bundle_id(data) == bundle else "its content has another identifier"
    except (BundleError, TypeError) as problem:
        return str(problem)
