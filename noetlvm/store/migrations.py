"""The schema of the SQLite store, as the steps that led to it.

A step is never changed once it has been released: a new one follows it. A database remembers the steps it has taken.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from noetlvm.data.encoding import references_in
from noetlvm.store.event_rows import EVENT_ROW, chunks_of_event_rows
from noetlvm.store.interface import StoreError

APPLICATION_ID = 0x4E6F4554
"""`NoET` in ASCII: distinguishes our files from others."""

SEQ_BITS = 32
"""Bits of an event's place that hold its number; the other bits hold the key of its execution."""

Migration: TypeAlias = tuple[str | Callable[[sqlite3.Connection], None], ...]
"""Statements, and what SQL cannot do."""


def _record_references(connection: sqlite3.Connection) -> None:
    """Fill the table of references from events that were written before there was one."""
    for place, data in connection.execute("SELECT place, data FROM events"):
        values = [(key, place >> SEQ_BITS) for key in set(references_in(data))]
        connection.executemany('INSERT OR IGNORE INTO "references" (result, execution) VALUES (?, ?)', values)


def _make_chunks(connection: sqlite3.Connection) -> None:
    """Move events that were written one to a row into chunks."""
    known = {key: (id, seq) for key, id, seq in connection.execute("SELECT key, execution_id, seq FROM executions")}
    last = (1 << SEQ_BITS) - 1
    select = f"SELECT place & {last}, {EVENT_ROW} FROM events WHERE place > ? AND place <= ? ORDER BY place"
    for (key,) in connection.execute(f"SELECT DISTINCT place >> {SEQ_BITS} FROM events").fetchall():
        base = key << SEQ_BITS
        chunks = chunks_of_event_rows(*known.get(key, ("", 0)), connection.execute(select, (base, base + last)))
        rows = ((base + first, *chunk) for first, *chunk in chunks)
        connection.executemany("INSERT INTO chunks (place, last, data, sum) VALUES (?, ?, ?, ?)", rows)


MIGRATIONS: tuple[Migration, ...] = (
    (
        """CREATE TABLE executions (
            key INTEGER PRIMARY KEY, execution_id TEXT NOT NULL UNIQUE, bundle TEXT NOT NULL, name TEXT NOT NULL,
            path TEXT NOT NULL, status TEXT NOT NULL, started REAL NOT NULL, ended REAL, parent TEXT NOT NULL,
            counts TEXT NOT NULL, seq INTEGER NOT NULL)""",
        "CREATE INDEX children ON executions (parent)",
        # The place of an event is its execution's key and its number in one integer. With a key of two columns SQLite
        # would write half as many pages again for each commit: only a table by integers is cheap to grow at its end.
        """CREATE TABLE events (
            place INTEGER PRIMARY KEY, event_id TEXT NOT NULL, timestamp REAL NOT NULL, name TEXT NOT NULL,
            run INTEGER NOT NULL, iteration TEXT NOT NULL, task INTEGER NOT NULL, label TEXT NOT NULL,
            attempt INTEGER NOT NULL, data BLOB NOT NULL)""",
        "CREATE TABLE bundles (bundle TEXT PRIMARY KEY, data BLOB NOT NULL)",
        """CREATE TABLE snapshots (
            execution INTEGER NOT NULL, bundle TEXT NOT NULL, seq INTEGER NOT NULL, data BLOB NOT NULL,
            PRIMARY KEY (execution, bundle, seq))""",
        # Numbers are not used twice: acknowledging a request must not remove a later one.
        """CREATE TABLE requests (
            number INTEGER PRIMARY KEY AUTOINCREMENT, execution_id TEXT NOT NULL, action TEXT NOT NULL)""",
        """CREATE TABLE commands (
            number INTEGER PRIMARY KEY AUTOINCREMENT, execution INTEGER NOT NULL, run INTEGER NOT NULL,
            unit TEXT NOT NULL, lease INTEGER NOT NULL, worker TEXT NOT NULL DEFAULT '', until REAL NOT NULL DEFAULT 0,
            UNIQUE (execution, run, unit))""",
    ),
    (
        # Timers, open work and filters of lists. Rows without a timer are not in the first index: a move costs nothing.
        "ALTER TABLE executions ADD COLUMN due REAL",
        "CREATE INDEX due_executions ON executions (due) WHERE due IS NOT NULL",
        "CREATE INDEX unfinished_executions ON executions (key) WHERE ended IS NULL",
        "CREATE INDEX paths ON executions (path, key)",
        "CREATE TABLE start_keys (start_key TEXT PRIMARY KEY, execution_id TEXT NOT NULL) WITHOUT ROWID",
        "CREATE INDEX keys_of_executions ON start_keys (execution_id)",
        "ALTER TABLE requests ADD COLUMN data BLOB NOT NULL DEFAULT x'C0'",
        "ALTER TABLE commands ADD COLUMN step TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE commands ADD COLUMN pool TEXT NOT NULL DEFAULT 'default'",
        "ALTER TABLE commands ADD COLUMN not_before REAL NOT NULL DEFAULT 0",
        "ALTER TABLE commands ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0",
        """CREATE TABLE playbooks (
            path TEXT NOT NULL, version INTEGER NOT NULL, bundle TEXT NOT NULL, registered REAL NOT NULL,
            PRIMARY KEY (path, version)) WITHOUT ROWID""",
        # Which executions refer to which stored results: garbage collection reads this instead of every event.
        """CREATE TABLE "references" (
            result TEXT NOT NULL, execution INTEGER NOT NULL, PRIMARY KEY (result, execution)) WITHOUT ROWID""",
        'CREATE INDEX references_of_executions ON "references" (execution)',
        """CREATE TABLE tokens (
            id TEXT PRIMARY KEY, digest TEXT NOT NULL, scopes TEXT NOT NULL, created REAL NOT NULL, revoked REAL)""",
        _record_references,
    ),
    ("ALTER TABLE events ADD COLUMN sum INTEGER",),
    (
        # Roots are not in the index, so most executions pay nothing for it.
        "ALTER TABLE executions ADD COLUMN trace TEXT NOT NULL DEFAULT ''",
        """WITH RECURSIVE family (execution_id, trace) AS (
            SELECT execution_id, parent FROM executions
            WHERE parent <> '' AND parent NOT IN (SELECT execution_id FROM executions WHERE parent <> '')
            UNION ALL SELECT e.execution_id, f.trace FROM executions e JOIN family f ON e.parent = f.execution_id)
            UPDATE executions SET trace = (SELECT trace FROM family f WHERE f.execution_id = executions.execution_id)
            WHERE execution_id IN (SELECT execution_id FROM family)""",
        "CREATE INDEX traces ON executions (trace) WHERE trace <> ''",
    ),
    (
        # The place of a chunk is that of its first event: a write after an event that is not the last collides.
        """CREATE TABLE chunks (
            place INTEGER PRIMARY KEY, last INTEGER NOT NULL, data BLOB NOT NULL, sum INTEGER)""",
        _make_chunks,
        "DROP TABLE events",
    ),
    (
        # One page for a command that opens or closes, where a table by number took three: its own, that of the index of
        # its key and that of SQLite's last numbers. The queue has what waits for a claim, so a run that claims what it
        # opens pays nothing for it.
        """CREATE TABLE queued (
            execution INTEGER NOT NULL, run INTEGER NOT NULL, unit TEXT NOT NULL, lease INTEGER NOT NULL,
            step TEXT NOT NULL, pool TEXT NOT NULL, not_before REAL NOT NULL, worker TEXT NOT NULL,
            until REAL NOT NULL, attempts INTEGER NOT NULL, number INTEGER NOT NULL,
            PRIMARY KEY (execution, run, unit)) WITHOUT ROWID""",
        """INSERT INTO queued
            SELECT execution, run, unit, lease, step, pool, not_before, worker, until, attempts, number
            FROM commands""",
        "DROP TABLE commands",
        "ALTER TABLE queued RENAME TO commands",
        "CREATE INDEX queue ON commands (number) WHERE worker = ''",
    ),
)


def schema_version(connection: sqlite3.Connection, path: Path) -> int:
    """Return how many steps a database has taken; 0: it is empty. Raises StoreError for a file of another program."""
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if not tables:
        return 0
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise StoreError(f"{path} is a database of another program; give another file with --db")
    return int(connection.execute("SELECT max(version) FROM migrations").fetchone()[0])


def require_known(version: int, path: Path, known: int = len(MIGRATIONS)) -> None:
    """Raise StoreError for a database that a later noetlvm has written."""
    if version > known:
        raise StoreError(f"a later noetlvm wrote {path} (schema {version}, this one has {known}); update noetlvm")


def migrate(connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Take the steps that a database has not taken yet: all of them, or none if one fails."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        _take_steps(connection, path, migrations)
        connection.execute("COMMIT")
    except BaseException:  # whatever stopped it, half a schema must not stay
        connection.execute("ROLLBACK")
        raise


def _take_steps(connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration]) -> None:
    taken = schema_version(connection, path)
    require_known(taken, path, len(migrations))
    if not taken:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("CREATE TABLE migrations (version INTEGER PRIMARY KEY, at TEXT DEFAULT CURRENT_TIMESTAMP)")
    for version, statements in enumerate(migrations[taken:], taken + 1):
        for statement in statements:
            if isinstance(statement, str):
                connection.execute(statement)
            else:
                statement(connection)
        connection.execute("INSERT INTO migrations (version) VALUES (?)", (version,))
