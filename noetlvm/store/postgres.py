"""The store in PostgreSQL, which any number of servers share.

A write is one prepared statement (`postgres_write`). Load makes writes larger, not more frequent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import Connection
from psycopg.sql import SQL, Identifier

from noetlvm.data.event import Recorded
from noetlvm.store.chunks import LastSums, checksums_wanted, first_sum, read_events
from noetlvm.store.fsck import damage_in, repairs, unreadable
from noetlvm.store.interface import (
    PAGE_ROWS,
    Append,
    CatalogueEntry,
    Durability,
    ExecutionRequest,
    QueuedCommand,
    Snapshot,
)
from noetlvm.store.postgres_database import PostgresDatabase
from noetlvm.store.postgres_schema import create_partition, end_of_period, partition, period_of
from noetlvm.store.postgres_write import CHUNK, COMMAND, read_written, rows_of, write_statement
from noetlvm.store.rows import (
    ENTRY,
    EncodedAppend,
    SqlWriter,
    encoded_batch,
    read_data,
)

if TYPE_CHECKING:
    from noetlvm.store.fsck import Damage, Statement

_PAGE = 100
_RETURNED_MAX = 1_000

_OF_LOG = "FROM chunks WHERE period = %s AND execution = %s"
_SELECT_CHUNKS = f"SELECT {CHUNK} {_OF_LOG} AND seq > %s AND seq <= %s ORDER BY seq LIMIT {_PAGE}"
# Where to read from for the events after one: its chunk may hold some of them, and needs the checksum before it.
_SELECT_START = f"SELECT min(seq) FROM (SELECT seq {_OF_LOG} AND seq <= %s ORDER BY seq DESC LIMIT 2) AS latest"


_CLAIM = f"""WITH free AS (SELECT execution, run, unit FROM commands
    WHERE worker = '' AND pool = ANY(%s) AND not_before <= %s ORDER BY number LIMIT %s FOR UPDATE SKIP LOCKED)
    UPDATE commands c SET worker = %s, until = %s, attempts = c.attempts + 1 FROM free f, executions e
    WHERE c.execution = f.execution AND c.run = f.run AND c.unit = f.unit AND e.key = c.execution
    RETURNING c.number, e.execution_id, {COMMAND.replace("run, unit", "c.run, c.unit")}, e.bundle, e.path""".encode()
_RENEW = b"""WITH wanted AS (SELECT c.execution, c.run, c.unit, place
    FROM unnest(%s::text[], %s::bigint[], %s::text[], %s::bigint[])
    WITH ORDINALITY AS r(execution_id, run, unit, lease, place)
    JOIN executions USING (execution_id)
    JOIN commands c ON c.execution = key AND c.run = r.run AND c.unit = r.unit AND c.lease = r.lease
    WHERE c.worker = %s AND c.until > 0 ORDER BY c.execution, c.run, c.unit FOR UPDATE OF c)
    UPDATE commands c SET until = %s FROM wanted w
    WHERE c.execution = w.execution AND c.run = w.run AND c.unit = w.unit RETURNING place"""
_SELECT_EXPIRED = f"""SELECT execution_id, {COMMAND}, bundle, path FROM commands JOIN executions ON key = execution
    WHERE worker <> '' AND until <= %s ORDER BY number LIMIT %s"""
_SELECT_SNAPSHOT = """SELECT s.bundle, s.seq, s.data, (SELECT sum(least(c.last, s.seq) - c.seq + 1) FROM chunks c
        WHERE c.period = x.period AND c.execution = x.key AND c.seq <= s.seq)
    FROM snapshots s JOIN executions x ON key = execution
    WHERE execution_id = %s AND s.bundle = %s AND (%s::bigint IS NULL OR s.seq <= %s)"""
_SELECT_SUMS = """SELECT execution_id, c.sum FROM unnest(%s::text[], %s::bigint[]) AS i(execution_id, known)
    JOIN executions x USING (execution_id)
    JOIN chunks c ON c.period = x.period AND c.execution = x.key AND c.last = i.known AND c.seq = (
        SELECT max(seq) FROM chunks l WHERE l.period = x.period AND l.execution = x.key AND l.seq <= i.known)"""


class PostgresStore(SqlWriter):
    """All four ports over a schema of a PostgreSQL database, which is made and migrated where needed."""

    durability: Durability = "full"

    def __init__(self, address: str, schema: str = "noetlvm", *, checksums: bool | None = None) -> None:
        self._checksums = checksums_wanted() if checksums is None else checksums
        self.database = PostgresDatabase(address, schema)
        self._where = self.database.name
        self._run = self.database.run
        self._run_binary = self.database.run_binary
        self._transact = self.database.transact
        self._periods: set[int] = set()
        """Periods whose partitions are known to exist."""
        self._sums = LastSums()
        self._returned: set[int] = set()
        """Numbers of requests that were returned: later commits may have lower ones."""

    def close(self) -> None:
        self.database.close()

    def now(self) -> float:
        return self.database.now()

    # ---- log

    def events(self, execution_id: str, after: int = 0, until: int | None = None) -> Iterator[Recorded]:
        found = self._select("SELECT key, period, seq FROM executions WHERE execution_id = %s", execution_id)
        if not found:
            return
        key, period, seq = found[0]
        last = seq if until is None else min(until, seq)
        rows = self._chunk_rows(period, key, after, last)
        yield from read_events(execution_id, self._where, rows, after, last)

    def _chunk_rows(self, period: int, key: int, after: int, last: int) -> Iterator[Sequence[Any]]:
        """Yield the chunks with the events after one, and those that `read_events` needs before them."""
        ((start,),) = self._select(_SELECT_START, period, key, after) if after else [(None,)]
        before = start - 1 if start else 0
        while page := self._select(_SELECT_CHUNKS, period, key, before, last):
            yield from page
            before = page[-1][0]

    def snapshot(self, execution_id: str, bundle: str, until: int | None = None) -> Snapshot | None:
        for made_with, seq, data, count in self._select(_SELECT_SNAPSHOT, execution_id, bundle, until, until):
            if count != seq:
                list(self.events(execution_id, 0, seq))  # names the missing one: a snapshot must not hide it
            return Snapshot(made_with, seq, read_data(self._where, f"the snapshot of {execution_id}", data))
        return None

    def references(self) -> Iterator[str]:
        for (key,) in self._select("SELECT DISTINCT result FROM result_references"):
            yield key

    def write(self, batch: Sequence[Append], bundles: Mapping[str, bytes] = {}) -> set[str]:
        encoded = encoded_batch(batch)
        if not encoded and not bundles:
            self.database.require_open()
            return set()
        born = {period_of(append.execution.started) for append in encoded if not append.known_seq}
        self._ensure_partitions(born)
        sums = self._sums_before(encoded) if self._checksums else {}
        rows = rows_of(encoded, sums, bundles)
        text, values = write_statement(rows)
        written, now = read_written(self._run_binary(text, values))
        self.database.set_clock(now)
        conflicts = {append.execution.execution_id for append in encoded} - written
        for append in encoded:
            execution_id = append.execution.execution_id
            self._sums.note(append.execution, sums.get(execution_id) if execution_id in written else None)
        return conflicts

    def _sums_before(self, batch: Sequence[EncodedAppend]) -> dict[str, int | None]:
        """Return the checksum that the chunks of each append continue."""
        known = {append.execution.execution_id: append.known_seq for append in batch}
        sums = {execution_id: self._sums.of(execution_id, seq) for execution_id, seq in known.items()}
        missing = [execution_id for execution_id, found in sums.items() if found is None]
        if missing:
            stored = dict(self._select(_SELECT_SUMS, missing, [known[execution_id] for execution_id in missing]))
            for execution_id in missing:
                found = stored.get(execution_id)
                # Where none was made, there is none to continue.
                sums[execution_id] = first_sum(execution_id) if found is None else found
        return sums

    def _ensure_partitions(self, periods: set[int]) -> None:
        for period in sorted(periods - self._periods):
            self._transact(partial(create_partition, period=period))
            self._periods.add(period)

    # ---- dispatch

    def claim(self, worker: str, pools: Iterable[str], until: float, limit: int, now: float) -> list[QueuedCommand]:
        values = (list(pools), now, limit, worker, until)
        return [QueuedCommand._make(row[1:]) for row in sorted(self._run(_CLAIM, values))]

    def renew(self, worker: str, held: Sequence[QueuedCommand], until: float) -> list[QueuedCommand]:
        if not held:
            return []
        columns = [list(column) for column in zip(*(command[:4] for command in held), strict=True)]
        values = (*columns, worker, until)
        return [held[place - 1]._replace(until=until) for (place,) in sorted(self._run(_RENEW, values))]

    def release(self, worker: str, held: Sequence[QueuedCommand]) -> list[QueuedCommand]:
        return self.renew(worker, held, 0.0)

    def expired(self, now: float, limit: int = PAGE_ROWS) -> list[QueuedCommand]:
        return [QueuedCommand._make(row) for row in self._select(_SELECT_EXPIRED, now, limit)]

    # ---- catalogue

    def put_bundle(self, bundle: str, data: bytes) -> None:
        self.write([], {bundle: data})

    def register(self, path: str, bundle: str, data: bytes, now: float) -> CatalogueEntry:
        self.put_bundle(bundle, data)

        def register(connection: Connection) -> CatalogueEntry:
            # One at a time for each path, so that no version is skipped or given twice.
            connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 1))", [path])
            select = f"SELECT {ENTRY} FROM playbooks WHERE path = %s ORDER BY version DESC LIMIT 1"
            latest = connection.execute(select.encode(), [path]).fetchone()
            if latest and latest[2] == bundle:
                return CatalogueEntry._make(latest)
            entry = CatalogueEntry(path, latest[1] + 1 if latest else 1, bundle, now)
            connection.execute("INSERT INTO playbooks VALUES (%s, %s, %s, %s)", entry)
            return entry

        return self._transact(register)

    def playbooks(self, *, after: str = "", limit: int = PAGE_ROWS) -> list[CatalogueEntry]:
        select = """SELECT DISTINCT ON (path COLLATE "C") path, version, bundle, registered FROM playbooks
            WHERE path COLLATE "C" > %s ORDER BY path COLLATE "C", version DESC LIMIT %s"""
        return [CatalogueEntry._make(row) for row in self._select(select, after, limit)]

    # ---- executions

    def requests(
        self, execution_id: str | None = None, *, after: int = 0, limit: int | None = None
    ) -> list[ExecutionRequest]:
        known = list(self._returned) if after else []
        condition = "(number > ? OR number <> ALL(?::bigint[])) AND (?::text IS NULL OR execution_id = ?)"
        found = self._requests(condition, after, known, execution_id, execution_id, limit=limit)
        if execution_id is None:
            self._note_returned([request.number for request in found])
        return found

    def _note_returned(self, numbers: list[int]) -> None:
        """Note which requests were returned; once there are many, drop those that were acknowledged."""
        self._returned.update(numbers)
        if len(self._returned) > _RETURNED_MAX:
            pending = {number for (number,) in self._select("SELECT number FROM requests")}
            self._returned &= pending

    def delete(self, execution_ids: Iterable[str]) -> int:
        ids = sorted(set(execution_ids))

        def delete(connection: Connection) -> int:
            gone = connection.execute(
                "DELETE FROM executions WHERE execution_id = ANY(%s) RETURNING period, key, execution_id", [ids]
            ).fetchall()
            for period, key, _ in gone:
                connection.execute("DELETE FROM chunks WHERE period = %s AND execution = %s", (period, key))
            _delete_dependents(connection, [key for _, key, _ in gone], [one for _, _, one in gone])
            return len(gone)

        return self._transact(delete)

    def damage(self) -> list[Damage]:
        """Return everything that is damaged in the database, in one snapshot; servers continue meanwhile."""

        def check(connection: Connection) -> list[Damage]:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            return _damage_in(connection, self._where)

        return self._transact(check)

    def repair(self) -> list[Damage]:
        """Repair what follows from the rest, all of it or nothing; return what was damaged. Servers wait meanwhile."""

        def repair(connection: Connection) -> list[Damage]:
            connection.execute("LOCK TABLE executions, requests, commands IN EXCLUSIVE MODE")
            found = [damage for damage in _damage_in(connection, self._where) if damage.repair]
            for statement, values in repairs(found):
                connection.execute(_with_marks(statement), values)
            return found

        return self._transact(repair)

    def delete_before(self, time: float) -> int:
        """Remove the executions of all months that ended before a time; one that is unfinished keeps its month.

        Their events go by dropping a table, which takes no longer for many than for few.
        """

        def delete(connection: Connection) -> int:
            found = connection.execute(
                "SELECT period FROM executions GROUP BY period HAVING every(ended IS NOT NULL) ORDER BY period"
            ).fetchall()
            count = 0
            for (period,) in found:
                if end_of_period(period) <= time:
                    count += _drop_period(connection, period)
                    self._periods.discard(period)
            return count

        return self._transact(delete)

    # ---- statements

    def _select(self, statement: str, *values: Any) -> list[Any]:
        return self.database.select(_with_marks(statement), *values)

    def _change(self, statement: str, *values: Any) -> int:
        return self._transact(lambda connection: connection.execute(_with_marks(statement), values).rowcount)


# ---- checking


class _CheckedPostgres:
    """The tables of a schema, for `fsck`."""

    references = "result_references"
    snapshot_id = "execution"

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self.name = name
        self._periods: dict[int, int] = dict(connection.execute("SELECT key, period FROM executions").fetchall())

    def select(self, statement: str, *values: Any) -> list[Any]:
        return self._connection.execute(_with_marks(statement), values).fetchall()

    def log_keys(self) -> set[int]:
        return {key for (key,) in self._connection.execute("SELECT DISTINCT execution FROM chunks")}

    def chunks(self, key: int) -> Iterator[Sequence[Any]]:
        last = 0
        while page := self.select(_PAGE_OF_CHUNKS, self._periods[key], key, last):
            yield from page
            last = page[-1][0]

    def delete_chunks(self, key: int, after: int) -> Statement:
        delete = "DELETE FROM chunks WHERE period = ? AND execution = ? AND seq > ?"
        return delete, (self._periods[key], key, after)

    def medium_damage(self) -> Iterator[Damage]:
        """Yield nothing: PostgreSQL reports a damaged page when it reads it."""
        return iter(())


_PAGE_OF_CHUNKS = f"""SELECT {CHUNK} FROM chunks
    WHERE period = ? AND execution = ? AND seq > ? ORDER BY seq LIMIT {_PAGE}"""


@cache
def _with_marks(statement: str) -> bytes:
    """Return a statement with psycopg's marks of values for SQLite's."""
    return statement.replace("?", "%s").encode()


def _damage_in(connection: Connection, name: str) -> list[Damage]:
    found: list[Damage] = []
    try:
        found.extend(damage_in(_CheckedPostgres(connection, name)))
    except psycopg.InternalError as error:  # a page or an index that it cannot read
        found.append(unreadable(error))
    return found


def _delete_dependents(connection: Connection, keys: list[int], ids: list[str]) -> None:
    for table in ("snapshots", "commands", "result_references"):
        connection.execute(SQL("DELETE FROM {} WHERE execution = ANY(%s)").format(Identifier(table)), [keys])
    for table in ("requests", "start_keys"):
        connection.execute(SQL("DELETE FROM {} WHERE execution_id = ANY(%s)").format(Identifier(table)), [ids])


def _drop_period(connection: Connection, period: int) -> int:
    gone = connection.execute(
        "DELETE FROM executions WHERE period = %s RETURNING key, execution_id", [period]
    ).fetchall()
    _delete_dependents(connection, [key for key, _ in gone], [one for _, one in gone])
    connection.execute(SQL("DROP TABLE IF EXISTS {}").format(partition(period)))
    return len(gone)
