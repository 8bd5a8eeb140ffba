"""The schema of the PostgreSQL store, as the steps that led to it. A released step is never changed: a new one follows.

Events are partitioned by the month in which their execution started, so that old executions are removed by dropping
tables instead of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TypeAlias

from psycopg import Connection
from psycopg.sql import SQL, Identifier, Literal

from noetlvm.store.event_rows import EVENT_ROW, chunks_of_event_rows
from noetlvm.store.interface import StoreError

_MIGRATION_LOCK = 0x4E6F4554
"""Key of the advisory lock: one server at a time migrates, and the others wait for it."""

Migration: TypeAlias = tuple[str | Callable[[Connection], None], ...]
"""Statements, and what SQL cannot do."""


def _make_chunks(connection: Connection) -> None:
    """Move events that were written one to a row into chunks."""
    known = connection.execute("SELECT period, key, execution_id, seq FROM executions").fetchall()
    lost = connection.execute(
        "SELECT DISTINCT period, execution, '', 0::bigint FROM events "
        "WHERE execution NOT IN (SELECT key FROM executions)"
    ).fetchall()
    for (period,) in connection.execute("SELECT DISTINCT period FROM events").fetchall():
        create_partition(connection, period)
    select = f"SELECT seq, {EVENT_ROW} FROM events WHERE period = %s AND execution = %s ORDER BY seq".encode()
    insert = "INSERT INTO chunks (period, execution, seq, last, data, sum) VALUES (%s, %s, %s, %s, %s, %s)"
    for period, key, execution_id, seq in [*known, *lost]:
        with connection.cursor("rows") as rows, connection.cursor() as writing:
            rows.execute(select, (period, key))
            for chunk in chunks_of_event_rows(execution_id, seq, rows):
                writing.execute(insert, (period, key, *chunk))


MIGRATIONS: tuple[Migration, ...] = (
    (
        """CREATE TABLE executions (
            key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, execution_id text NOT NULL UNIQUE,
            bundle text NOT NULL, name text NOT NULL, path text NOT NULL, status text NOT NULL,
            started float8 NOT NULL, ended float8, parent text NOT NULL, counts text NOT NULL, seq bigint NOT NULL,
            due float8, period integer NOT NULL) WITH (fillfactor = 70)""",
        "CREATE INDEX ON executions (parent, key) WHERE parent <> ''",
        "CREATE INDEX ON executions (path, key)",
        "CREATE INDEX ON executions (period)",
        "CREATE INDEX ON executions (key) WHERE ended IS NULL",
        "CREATE INDEX ON executions (due) WHERE due IS NOT NULL",
        """CREATE TABLE events (
            period integer NOT NULL, execution bigint NOT NULL, seq bigint NOT NULL, event_id text NOT NULL,
            timestamp float8 NOT NULL, name text NOT NULL, run bigint NOT NULL, iteration text NOT NULL,
            task bigint NOT NULL, label text NOT NULL, attempt bigint NOT NULL, data bytea NOT NULL, sum bigint,
            PRIMARY KEY (period, execution, seq)) PARTITION BY LIST (period)""",
        "CREATE TABLE bundles (bundle text PRIMARY KEY, data bytea NOT NULL)",
        """CREATE TABLE playbooks (
            path text NOT NULL, version integer NOT NULL, bundle text NOT NULL, registered float8 NOT NULL,
            PRIMARY KEY (path, version))""",
        """CREATE TABLE snapshots (
            execution bigint PRIMARY KEY, bundle text NOT NULL, seq bigint NOT NULL, data bytea NOT NULL)""",
        """CREATE TABLE requests (
            number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, execution_id text NOT NULL, action text NOT NULL,
            data bytea NOT NULL)""",
        "CREATE INDEX ON requests (execution_id)",
        "CREATE SEQUENCE command_numbers",
        """CREATE TABLE commands (
            execution bigint NOT NULL, run bigint NOT NULL, unit text NOT NULL, lease bigint NOT NULL,
            step text NOT NULL, pool text NOT NULL, not_before float8 NOT NULL, worker text NOT NULL,
            until float8 NOT NULL, attempts integer NOT NULL,
            number bigint NOT NULL DEFAULT nextval('command_numbers'), PRIMARY KEY (execution, run, unit))""",
        "CREATE INDEX ON commands (pool, number) WHERE worker = ''",
        "CREATE INDEX ON commands (until) WHERE worker <> ''",
        "CREATE TABLE start_keys (start_key text PRIMARY KEY, execution_id text NOT NULL)",
        "CREATE INDEX ON start_keys (execution_id)",
        """CREATE TABLE result_references (
            result text NOT NULL, execution bigint NOT NULL, PRIMARY KEY (result, execution))""",
        "CREATE INDEX ON result_references (execution)",
        """CREATE TABLE tokens (
            id text PRIMARY KEY, digest text NOT NULL, scopes text NOT NULL, created float8 NOT NULL,
            revoked float8)""",
    ),
    (
        # Results are stored as they are: what they hold is mostly read once.
        """CREATE TABLE results (
            key text PRIMARY KEY, put_at float8 NOT NULL, data bytea STORAGE EXTERNAL NOT NULL)""",
    ),
    (
        # Roots are not in the index, so most executions pay nothing for it.
        "ALTER TABLE executions ADD COLUMN trace text NOT NULL DEFAULT ''",
        """WITH RECURSIVE family (execution_id, trace) AS (
            SELECT execution_id, parent FROM executions e WHERE parent <> '' AND NOT EXISTS
            (SELECT 1 FROM executions p WHERE p.execution_id = e.parent AND p.parent <> '')
            UNION ALL SELECT e.execution_id, f.trace FROM executions e JOIN family f ON e.parent = f.execution_id)
            UPDATE executions e SET trace = f.trace FROM family f WHERE f.execution_id = e.execution_id""",
        "CREATE INDEX ON executions (trace) WHERE trace <> ''",
    ),
    (
        "LOCK TABLE executions, events IN EXCLUSIVE MODE",
        # A chunk has the number of its first event: a write after an event that is not the last collides.
        """CREATE TABLE chunks (
            period integer NOT NULL, execution bigint NOT NULL, seq bigint NOT NULL, last bigint NOT NULL,
            data bytea NOT NULL, sum bigint, PRIMARY KEY (period, execution, seq)) PARTITION BY LIST (period)""",
        _make_chunks,
        "DROP TABLE events",
    ),
)


def migrate(connection: Connection, schema: str, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Take the steps that a database has not taken yet, all or none. Several servers may do so at once."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [_MIGRATION_LOCK])
        connection.execute(SQL("CREATE SCHEMA IF NOT EXISTS {}").format(Identifier(schema)))
        connection.execute(
            "CREATE TABLE IF NOT EXISTS migrations (version integer PRIMARY KEY, at timestamptz DEFAULT now())"
        )
        row = connection.execute("SELECT coalesce(max(version), 0) FROM migrations").fetchone()
        taken = row[0] if row else 0
        if taken > len(migrations):
            raise StoreError(
                f"a later noetlvm wrote the database (schema {taken}, this one has {len(migrations)}); update noetlvm"
            )
        for version, statements in enumerate(migrations[taken:], taken + 1):
            for statement in statements:
                if isinstance(statement, str):
                    connection.execute(statement.encode())
                else:
                    statement(connection)
            connection.execute("INSERT INTO migrations (version) VALUES (%s)", [version])


def period_of(started: float) -> int:
    """Return the month in which an execution started, as 202611."""
    moment = datetime.fromtimestamp(started, UTC)
    return moment.year * 100 + moment.month


def end_of_period(period: int) -> float:
    """Return the time at which a period ends."""
    year, month = divmod(period, 100)
    return datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC).timestamp()


def partition(period: int) -> Identifier:
    """Return the name of the table with a period's events."""
    return Identifier(f"chunks_{period}")


def create_partition(connection: Connection, period: int) -> None:
    """Make the table for a period's events. `IF NOT EXISTS` alone lets two servers collide."""
    connection.execute("SELECT pg_advisory_xact_lock(%s)", [_MIGRATION_LOCK])
    statement = "CREATE TABLE IF NOT EXISTS {} PARTITION OF chunks FOR VALUES IN ({})"
    connection.execute(SQL(statement).format(partition(period), Literal(period)))
