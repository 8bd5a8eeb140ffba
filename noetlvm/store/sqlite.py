"""The store in one SQLite file, for one writing process and any number of readers.

A writer has two connections: one writes, and nothing but its transactions touches it; the other reads, so it sees only
what is committed, even while a commit goes on in another thread.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from noetlvm.data.encoding import decode
from noetlvm.data.event import Recorded
from noetlvm.store.buffered import BufferedStore, Pending, recorded_event, required_execution
from noetlvm.store.interface import (
    Action,
    ConflictError,
    ControlRequest,
    Dispatch,
    Durability,
    Execution,
    Snapshot,
    StoreError,
)
from noetlvm.store.migrations import MIGRATIONS, SEQ_BITS, migrate, require_known, schema_version
from noetlvm.store.writer_lock import WriterLock

_Done = TypeVar("_Done")

_SYNCHRONOUS = {"full": "FULL", "relaxed": "NORMAL"}
"""In WAL mode NORMAL syncs at checkpoints only, which keeps the file whole; OFF would not."""

_CHECKPOINT_PAGES = {"full": 64, "relaxed": 1_000}
"""How long the write-ahead log grows before it is written to the database and used again from its beginning. To sync a
file that grows takes half as long again as to sync one that is written over, so where every commit is synced the log
is short; else SQLite's own number is right, since only checkpoints sync."""

_BUSY_SECONDS = 30
"""How long to wait for another connection's transaction: a request from outside, or its checkpoint."""

_PAGE = 1_000
"""Events read at once. A long read would keep the write-ahead log from being reused."""

_EXECUTION = "execution_id, bundle, name, path, status, started, ended, parent, counts, seq"
# What an execution is stays as its first append said; no column of an index is written again.
_PUT_EXECUTION = f"""INSERT INTO executions (key, {_EXECUTION}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (key) DO UPDATE SET (status, started, ended, counts, seq)
    = (excluded.status, excluded.started, excluded.ended, excluded.counts, excluded.seq)"""
_SELECT_LAST_KEY = "SELECT coalesce(max(key), 0) FROM executions"
_EVENT = "event_id, timestamp, name, run, iteration, task, label, attempt, data"
_INSERT_EVENT = f"INSERT INTO events (place, {_EVENT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_SEQ_MAX = (1 << SEQ_BITS) - 1
_SELECT_EVENTS = f"""SELECT place & {_SEQ_MAX}, {_EVENT} FROM events
    WHERE place > ? AND place <= ? ORDER BY place LIMIT {_PAGE}"""
_INSERT_SNAPSHOT = "INSERT OR REPLACE INTO snapshots (execution, bundle, seq, data) VALUES (?, ?, ?, ?)"
_SELECT_SNAPSHOT = """SELECT seq, data FROM snapshots
    WHERE execution = ? AND bundle = ? AND seq <= ? ORDER BY seq DESC LIMIT 1"""
_INSERT_REQUEST = "INSERT INTO requests (execution_id, action) VALUES (?, ?)"

# Commands, by part: an older lease gives way to a newer one, never the other way round.
_PART = "execution = ? AND run = ? AND unit = ?"
_REMOVE_OLDER = f"DELETE FROM commands WHERE {_PART} AND lease < ?"
_REMOVE_UP_TO = f"DELETE FROM commands WHERE {_PART} AND lease <= ?"
_INSERT_COMMAND = "INSERT OR IGNORE INTO commands (execution, run, unit, lease) VALUES (?, ?, ?, ?)"
_COMMAND = "SELECT number, execution_id, run, unit, lease FROM commands JOIN executions ON key = execution"
_SELECT_FREE = f"{_COMMAND} WHERE worker = '' ORDER BY number LIMIT ?"
_SELECT_EXPIRED = f"{_COMMAND} WHERE worker <> '' AND until <= ? ORDER BY number"
_CLAIM = "UPDATE commands SET worker = ?, until = ? WHERE number = ?"
_RENEW = f"UPDATE commands SET until = ? WHERE {_PART} AND lease = ? AND worker = ?"


_ANOTHER = "; --db names another database"
_REMEDIES = {
    sqlite3.SQLITE_FULL: "; make room, and `noetlvm resume` goes on: what was recorded stays",
    sqlite3.SQLITE_READONLY: "; the file and its folder must be writable, even to look at it: copy it elsewhere",
    sqlite3.SQLITE_CANTOPEN: f"; is it a file that you may read and write, in such a folder?{_ANOTHER}",
    sqlite3.SQLITE_NOTADB: _ANOTHER,
    sqlite3.SQLITE_CORRUPT: f"; the file is damaged: take a copy from before{_ANOTHER}",
    sqlite3.SQLITE_IOERR: "; look at the disk, then `noetlvm resume` goes on: what was recorded stays",
}
"""What to do about an error of SQLite, by its code."""


class SqliteReader:
    """Reads a database that others may be writing to."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise StoreError(f"there is no database {path}; `noetlvm run` makes one, --db names another")
        self.path = path
        with _explained(path):
            if _version(path) < len(MIGRATIONS):
                SqliteStore(path).close()  # brings it forward
            self._reading = _connect(path, "ro")

    def execution(self, execution_id: str) -> Execution | None:
        found = self._select(f"SELECT {_EXECUTION} FROM executions WHERE execution_id = ?", execution_id)
        return _execution(found[0]) if found else None

    def executions(self, *, limit: int | None = None, parent: str | None = None) -> list[Execution]:
        count = -1 if limit is None else limit  # SQLite's word for no limit
        where, values = ("", [count]) if parent is None else ("WHERE parent = ?", [parent, count])
        select = f"SELECT {_EXECUTION} FROM executions {where} ORDER BY key DESC LIMIT ?"
        return [_execution(row) for row in self._select(select, *values)]

    def unfinished(self) -> list[Execution]:
        select = f"SELECT {_EXECUTION} FROM executions WHERE ended IS NULL ORDER BY key"
        return [_execution(row) for row in self._select(select)]

    def events(self, execution_id: str, after: int = 0, until: int | None = None) -> Iterator[Recorded]:
        before = (self._key(execution_id) or 0) << SEQ_BITS
        last = before + (_SEQ_MAX if until is None else until)
        while page := self._select(_SELECT_EVENTS, before + after, last):
            yield from map(recorded_event, page)
            after = page[-1][0]

    def bundle(self, bundle: str) -> bytes | None:
        found = self._select("SELECT data FROM bundles WHERE bundle = ?", bundle)
        return found[0][0] if found else None

    def snapshot(self, execution_id: str, bundle: str, until: int | None = None) -> Snapshot | None:
        last = _SEQ_MAX if until is None else until
        found = self._select(_SELECT_SNAPSHOT, self._key(execution_id), bundle, last)
        return Snapshot(bundle, found[0][0], decode(found[0][1])) if found else None

    def close(self) -> None:
        self._reading.close()

    def _key(self, execution_id: str) -> int | None:
        found = self._select("SELECT key FROM executions WHERE execution_id = ?", execution_id)
        return found[0][0] if found else None

    def _select(self, statement: str, *values: Any) -> list[Any]:
        with _explained(self.path):
            return self._reading.execute(statement, values).fetchall()


class SqliteStore(BufferedStore, SqliteReader):
    """Reads and writes a database, which is made where there is none. One process at a time may have it open."""

    def __init__(self, path: Path, durability: Durability = "full") -> None:
        BufferedStore.__init__(self, durability)
        self.path = path
        self._keys: dict[str, int] = {}
        """Keys of executions at work, those that wait for their first commit included."""
        with _explained(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = WriterLock(path)
        try:
            with _explained(path):
                self._connection = _connect(path, "rwc")
                schema_version(self._connection, path)  # refuses a file of somebody else before anything is changed
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[durability]}")
                self._connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES[durability]}")
                migrate(self._connection, path)
                self._last_key = int(self._connection.execute(_SELECT_LAST_KEY).fetchone()[0])
                self._reading = _connect(path, "ro")
        except StoreError:
            self._lock.release()
            raise

    def close(self) -> None:
        with self._writing:
            self._refusal = "the store is closed"
            SqliteReader.close(self)
            self._connection.close()
            self._lock.release()

    # ---- writing

    def _committed_seq(self, execution_id: str) -> int:
        execution = self.execution(execution_id)
        return execution.seq if execution else 0

    def _base(self, execution_id: str) -> int:
        key = self._known_key(execution_id)
        if key is None:
            # Nobody else writes, so the next number is ours; knowing it here lets an event's row be made once.
            self._last_key = key = self._last_key + 1
        self._keys[execution_id] = key
        return key << SEQ_BITS

    def _write(self, pending: Pending) -> None:
        self._transact(partial(self._put, pending))
        for execution_id, execution in pending.executions.items():
            if execution.ended is not None:
                self._keys.pop(execution_id, None)

    def _put(self, pending: Pending, connection: sqlite3.Connection) -> None:
        if pending.bundles:
            connection.executemany("INSERT OR IGNORE INTO bundles VALUES (?, ?)", pending.bundles.items())
        connection.executemany(_PUT_EXECUTION, map(self._execution_row, pending.executions.values()))
        connection.executemany(_INSERT_EVENT, chain.from_iterable(pending.events.values()))
        for execution_id in pending.dropped:
            connection.execute("DELETE FROM snapshots WHERE execution = ?", (self._known_key(execution_id),))
        for execution_id, *values in pending.snapshots:
            connection.execute(_INSERT_SNAPSHOT, (self._known_key(execution_id), *values))
        for is_opened, dispatch in pending.changes:
            self._write_command(dispatch, is_opened=is_opened)
        if pending.met:
            connection.executemany("DELETE FROM requests WHERE number = ?", [(number,) for number in pending.met])

    def _execution_row(self, execution: Execution) -> tuple[Any, ...]:
        *known, counts, seq = execution
        return (self._known_key(execution.execution_id), *known, _counts_text(counts), seq)

    def _write_command(self, dispatch: Dispatch, *, is_opened: bool) -> None:
        row = (self._known_key(dispatch.execution_id), *dispatch[1:])
        if not is_opened:
            self._connection.execute(_REMOVE_UP_TO, row)
            return
        self._connection.execute(_REMOVE_OLDER, row)
        self._connection.execute(_INSERT_COMMAND, row)

    def _known_key(self, execution_id: str) -> int | None:
        """Return the key of an execution that was ever appended to."""
        return self._keys.get(execution_id) or self._key(execution_id)

    def _transact(self, work: Callable[[sqlite3.Connection], _Done]) -> _Done:
        """Return what the work gives, all of it durable; if it raises, nothing of it stays.

        It takes a function and is no context manager: those cost more than the statements of a small commit.
        """
        connection = self._connection
        with self._writing:
            try:
                connection.execute("BEGIN IMMEDIATE")
                done = work(connection)
                connection.execute("COMMIT")
            except BaseException as error:  # whatever stopped it: half a decision must not stay
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                if isinstance(error, (sqlite3.Error, OSError)):
                    raise _explanation(self.path, error) from error
                raise
        return done

    # ---- commands and their leases

    def claim(self, worker: str, until: float, limit: int = 1) -> list[Dispatch]:
        def claim(connection: sqlite3.Connection) -> list[Dispatch]:
            free = connection.execute(_SELECT_FREE, (limit,)).fetchall()
            connection.executemany(_CLAIM, [(worker, until, number) for number, *_ in free])
            return [Dispatch(*row) for _, *row in free]

        self._require_usable()
        return self._transact(claim)

    def renew(self, worker: str, held: Sequence[Dispatch], until: float) -> list[Dispatch]:
        def is_renewed(connection: sqlite3.Connection, dispatch: Dispatch) -> bool:
            values = (until, self._known_key(dispatch.execution_id), *dispatch[1:], worker)
            return bool(connection.execute(_RENEW, values).rowcount)

        self._require_usable()
        return self._transact(lambda connection: [one for one in held if is_renewed(connection, one)])

    def expired(self, now: float) -> list[Dispatch]:
        return [Dispatch(*row) for _, *row in self._select(_SELECT_EXPIRED, now)]

    # ---- requests from outside

    def request(self, execution_id: str, action: Action) -> None:
        self._require_usable()
        required_execution(self.execution(execution_id), execution_id, action)
        self._transact(lambda connection: connection.execute(_INSERT_REQUEST, (execution_id, action)))

    def requests(self) -> list[ControlRequest]:
        return [ControlRequest(*row) for row in self._select("SELECT * FROM requests ORDER BY number")]


def send_request(path: Path, execution_id: str, action: Action) -> None:
    """Ask for an action while another process has the database open for writing."""
    with closing(SqliteReader(path)) as reader:
        required_execution(reader.execution(execution_id), execution_id, action)
    with _explained(path), closing(_connect(path, "rw")) as connection:
        connection.execute(_INSERT_REQUEST, (execution_id, action))


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    """Open a connection that begins transactions only when told to. Threads take turns on it."""
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        uri=True,
    )


def _version(path: Path) -> int:
    with closing(_connect(path, "ro")) as connection:
        version = schema_version(connection, path)
    if not version:
        raise StoreError(f"{path} is empty; `noetlvm run` writes the first execution to it")
    require_known(version, path)
    return version


def _execution(row: Sequence[Any]) -> Execution:
    *known, counts, seq = row
    return Execution._make((*known, json.loads(counts), seq))


def _counts_text(counts: Mapping[str, int]) -> str:
    """Return counts as JSON. Their names are plain words, and every commit asks: `json` takes three times as long."""
    return "{" + ", ".join([f'"{name}": {count}' for name, count in counts.items()]) + "}"


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Let SQLite's errors say which file, and be ours."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise _explanation(path, error) from error


def _explanation(path: Path, error: sqlite3.Error | OSError) -> StoreError:
    if isinstance(error, sqlite3.IntegrityError):
        return ConflictError(f"{path}: somebody else wrote to it: {error}")
    if isinstance(error, OSError):
        return StoreError(f"{error.filename or path}: {error.strerror or error}{_ANOTHER}")
    remedy = _REMEDIES.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, "")
    return StoreError(f"{path}: {error}{remedy}")
