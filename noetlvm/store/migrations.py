"""The schema of the SQLite store, as the steps that led to it.

A step is never changed once it has been released: a new one follows it. A database remembers the steps it has taken.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from noetlvm.store.interface import StoreError

APPLICATION_ID = 0x4E6F4554
"""`NoET` in ASCII: tells our files from others."""

SEQ_BITS = 32
"""Of the place of an event, those that hold its number; the rest holds the key of its execution."""

Migration: TypeAlias = tuple[str, ...]

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
        # Numbers are not given twice: a request that is met must not take a later one with it.
        """CREATE TABLE requests (
            number INTEGER PRIMARY KEY AUTOINCREMENT, execution_id TEXT NOT NULL, action TEXT NOT NULL)""",
        """CREATE TABLE commands (
            number INTEGER PRIMARY KEY AUTOINCREMENT, execution INTEGER NOT NULL, run INTEGER NOT NULL,
            unit TEXT NOT NULL, lease INTEGER NOT NULL, worker TEXT NOT NULL DEFAULT '', until REAL NOT NULL DEFAULT 0,
            UNIQUE (execution, run, unit))""",
    ),
)


def schema_version(connection: sqlite3.Connection, path: Path) -> int:
    """Return how many steps a database has taken; 0 for an empty file. Raises StoreError for somebody else's file."""
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if not tables:
        return 0
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise StoreError(f"{path} is a database of another program; give a file of its own with --db")
    return int(connection.execute("SELECT max(version) FROM migrations").fetchone()[0])


def require_known(version: int, path: Path, known: int = len(MIGRATIONS)) -> None:
    """Raise StoreError for a database that a later noetlvm has written."""
    if version > known:
        raise StoreError(f"a later noetlvm wrote {path} (schema {version}, this one knows {known}); update noetlvm")


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
            connection.execute(statement)
        connection.execute("INSERT INTO migrations (version) VALUES (?)", (version,))
