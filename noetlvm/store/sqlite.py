"""The store in one SQLite file, for one writing process and any number of readers.

A writer has two connections: one writes, and nothing but its transactions uses it; the other reads, so it sees only
what is committed, even while another thread writes.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from noetlvm.data.event import Recorded
from noetlvm.store.chunks import REMEDY, LastSums, checksums_wanted, first_sum, known_sum, read_events, summed
from noetlvm.store.fsck import Damage, damage_in, repairs, unreadable
from noetlvm.store.interface import (
    PAGE_ROWS,
    Append,
    CatalogueEntry,
    DamagedError,
    Durability,
    ExecutionRequest,
    QueuedCommand,
    Snapshot,
    StoreError,
)
from noetlvm.store.migrations import MIGRATIONS, SEQ_BITS, migrate, require_known, schema_version
from noetlvm.store.rows import (
    ENTRY,
    EXECUTION,
    INSERT_REQUEST,
    EncodedAppend,
    SqlReader,
    SqlWriter,
    counts_text,
    encoded_batch,
    read_data,
)
from noetlvm.store.wall_clock import WallClock
from noetlvm.store.writer_lock import PRIVATE_FOLDER, Inode, WriterLock, leave, use

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

    from noetlvm.store.fsck import Damage, Statement

_Done = TypeVar("_Done")

_SYNCHRONOUS = {"full": "FULL", "relaxed": "NORMAL"}
"""In WAL mode NORMAL syncs at checkpoints only, which cannot corrupt the file; OFF could."""

_CHECKPOINT_PAGES = {"full": 64, "relaxed": 1_000}
"""How long the write-ahead log grows before it is copied to the database and reused from its beginning. To sync a file
that grows takes half as long again as to sync one that is overwritten, so where every commit is synced the log is
short; else SQLite's own default is right, since only checkpoints sync."""

_PAGE_BYTES = 2_048
"""Of a new database. A step changes short rows of three pages, and smaller pages leave less to write and to sync."""

_BUSY_SECONDS = 30
"""How long to wait for another connection's transaction: a request from another process, or its checkpoint."""

_PAGE = 100
"""Chunks read at once. A long read would keep the write-ahead log from being reused."""

# Neither changes a row for an execution that lost a race. Identity columns are written on insert only: of the indexed
# columns, only `due` is ever updated. A deleted row's key may be that of another execution later.
_INSERT_EXECUTION = f"""INSERT INTO executions ({EXECUTION}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO NOTHING"""
_MOVED = "WHERE key = ? AND execution_id = ? AND seq = ?"
# To write `ended` costs a page of an index, also where it stays as it is.
_MOVE_RUNNING = f"UPDATE executions SET status = ?, counts = ?, seq = ?, due = ? {_MOVED} AND ended IS NULL"
_MOVE_EXECUTION = f"UPDATE executions SET status = ?, ended = ?, counts = ?, seq = ?, due = ? {_MOVED}"
_KEYS_CACHED = 10_000
_SEQ_MAX = (1 << SEQ_BITS) - 1
_INSERT_CHUNK = "INSERT INTO chunks (place, last, data, sum) VALUES (?, ?, ?, ?)"
_SELECT_SUM = "SELECT sum FROM chunks WHERE place > ? AND place <= ? ORDER BY place DESC LIMIT 1"
_CHUNK = f"place & {_SEQ_MAX}, last, data, sum"
_SELECT_CHUNKS = f"SELECT {_CHUNK} FROM chunks WHERE place > ? AND place <= ? ORDER BY place LIMIT {_PAGE}"
# Where to read from for the events after one: its chunk may hold some of them, and needs the checksum before it.
_SELECT_START = """SELECT min(place) FROM
    (SELECT place FROM chunks WHERE place > ? AND place <= ? ORDER BY place DESC LIMIT 2)"""
_COUNT_EVENTS = f"""SELECT total(min(last, ?) - (place & {_SEQ_MAX}) + 1) FROM chunks WHERE place > ? AND place <= ?"""
_INSERT_REFERENCE = 'INSERT OR IGNORE INTO "references" (result, execution) VALUES (?, ?)'
_INSERT_SNAPSHOT = "INSERT INTO snapshots (execution, bundle, seq, data) VALUES (?, ?, ?, ?)"
_SELECT_SNAPSHOT = """SELECT bundle, seq, data FROM snapshots
    WHERE execution = ? AND bundle = ? AND seq <= ? ORDER BY seq DESC LIMIT 1"""

# Commands, by part: an older lease gives way to a newer one, never the other way round.
_PART = "execution = ? AND run = ? AND unit = ?"
_CLOSE_COMMAND = f"DELETE FROM commands WHERE {_PART} AND lease <= ?"
# A replaced row gets a new number: a new lease queues at the end.
_OPEN_COMMAND = """INSERT INTO commands
    (execution, run, unit, lease, step, pool, not_before, worker, until, attempts, number)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?8 <> '', ?10)
    ON CONFLICT DO UPDATE SET lease = excluded.lease, step = excluded.step, pool = excluded.pool,
    not_before = excluded.not_before, worker = excluded.worker, until = excluded.until,
    attempts = attempts + excluded.attempts, number = excluded.number WHERE lease < excluded.lease"""
_COMMAND = "run, unit, lease, step, pool, not_before, worker, until, attempts"
_SELECT_COMMANDS = f"""SELECT execution_id, {_COMMAND}, bundle, path FROM commands JOIN executions ON key = execution"""
_SELECT_EXPIRED = f"{_SELECT_COMMANDS} WHERE worker <> '' AND until <= ? ORDER BY number LIMIT ?"
_CLAIM = f"""UPDATE commands SET worker = ?, until = ?, attempts = attempts + 1 WHERE (execution, run, unit) IN
    (SELECT execution, run, unit FROM commands
    WHERE worker = '' AND not_before <= ? AND pool IN (SELECT value FROM json_each(?)) ORDER BY number LIMIT ?)
    RETURNING number, execution, {_COMMAND}"""
_RENEW = """UPDATE commands SET until = ? WHERE execution = (SELECT key FROM executions WHERE execution_id = ?)
    AND run = ? AND unit = ? AND lease = ? AND worker = ? AND until > 0"""


_ANOTHER = "; --db names another database"
_REMEDIES = {
    sqlite3.SQLITE_FULL: "; make room, and `noetlvm resume` continues: what was recorded stays",
    sqlite3.SQLITE_READONLY: "; the file and its folder must be writable: copy it elsewhere",
    sqlite3.SQLITE_CANTOPEN: f"; is it a file that you may read and write, in such a folder?{_ANOTHER}",
    sqlite3.SQLITE_NOTADB: _ANOTHER,
    sqlite3.SQLITE_CORRUPT: f"; the file is damaged: take a copy from before{_ANOTHER}",
    sqlite3.SQLITE_IOERR: "; look at the disk, then `noetlvm resume` continues: what was recorded stays",
}
"""What to do about an error of SQLite, by its code."""


class SqliteReader(SqlReader):
    """Reads a database that others may be writing to."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise StoreError(f"there is no database {path}; `noetlvm run` makes one, --db names another")
        self.path, self._where = path, str(path)
        self._selecting = threading.Lock()
        self._inode: Inode | None = use(path)
        self._copy: TemporaryDirectory[str] | None = None
        try:
            with _explained(path):
                self._reading = self._opened()
                if _version(self._reading, path) < len(MIGRATIONS):
                    self._reading.close()
                    SqliteStore(path).close()  # migrates it
                    self._reading = self._opened()
        except StoreError:
            self._leave()
            raise

    def close(self) -> None:
        self._reading.close()
        self._leave()

    def _opened(self) -> sqlite3.Connection:
        """Open a connection for reading, also where nothing can be written: SQLite needs a file beside a database."""
        try:
            connection = _connect(self.path, "ro")
            connection.execute("SELECT count(*) FROM sqlite_master")
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
                raise
            return self._opened_unwritable()
        return connection

    def _opened_unwritable(self) -> sqlite3.Connection:
        """Open a database that no process can write to; what its log holds is read in a copy."""
        from shutil import copyfile
        from tempfile import TemporaryDirectory

        actual = self.path.resolve()
        log = Path(f"{actual}-wal")
        if not log.exists() or not log.stat().st_size:
            return _connect(actual, "ro&immutable=1")
        self._copy = TemporaryDirectory(prefix="noetlvm-")
        for file in (actual, log):
            copyfile(file, Path(self._copy.name, file.name))
        return _connect(Path(self._copy.name, actual.name), "ro")

    def _leave(self) -> None:
        if self._inode is not None:
            leave(self._inode)
            self._inode = None
        if self._copy is not None:
            self._copy.cleanup()
            self._copy = None

    # ---- log

    def events(self, execution_id: str, after: int = 0, until: int | None = None) -> Iterator[Recorded]:
        row = self.execution(execution_id)
        if row is None:
            return
        last = row.seq if until is None else min(until, row.seq)
        rows = self._chunk_rows(self._key(execution_id) << SEQ_BITS, after, last)
        yield from read_events(execution_id, self._where, rows, after, last)

    def _chunk_rows(self, base: int, after: int, last: int) -> Iterator[Sequence[Any]]:
        """Yield the chunks with the events after one, and those that `read_events` needs before them."""
        ((start,),) = self._select(_SELECT_START, base, base + after) if after else [(None,)]
        before = start - 1 if start else base
        while page := self._select(_SELECT_CHUNKS, before, base + last):
            yield from page
            before = base + page[-1][0]

    def snapshot(self, execution_id: str, bundle: str, until: int | None = None) -> Snapshot | None:
        last = _SEQ_MAX if until is None else until
        key = self._key(execution_id)
        for made_with, seq, data in self._select(_SELECT_SNAPSHOT, key, bundle, last):
            base = key << SEQ_BITS
            if self._select(_COUNT_EVENTS, seq, base, base + seq) != [(seq,)]:
                list(self.events(execution_id, 0, seq))  # names the missing one: a snapshot must not hide it
            return Snapshot(made_with, seq, read_data(self._where, f"the snapshot of {execution_id}", data))
        return None

    def references(self) -> Iterator[str]:
        for (key,) in self._select('SELECT DISTINCT result FROM "references"'):
            yield str(key)  # a damaged row may have any type

    # ---- catalogue

    def playbooks(self, *, after: str = "", limit: int = PAGE_ROWS) -> list[CatalogueEntry]:
        # With max() SQLite takes the other columns from the row that has it.
        select = "SELECT path, max(version), bundle, registered FROM playbooks WHERE path > ? GROUP BY path LIMIT ?"
        return [CatalogueEntry._make(row) for row in self._select(select, after, limit)]

    # ---- executions

    def requests(
        self, execution_id: str | None = None, *, after: int = 0, limit: int | None = None
    ) -> list[ExecutionRequest]:
        condition = "number > ? AND (? IS NULL OR execution_id = ?)"
        return self._requests(condition, after, execution_id, execution_id, limit=limit)

    def damage(self) -> Iterator[Damage]:
        """Yield everything that is damaged in the database, as of one moment."""
        self._reading.execute("BEGIN")
        try:
            yield from damage_in(_CheckedSqlite(self._reading, self.path.name))
        except (sqlite3.DatabaseError, OverflowError) as error:  # a key may be too large for a number of an event
            yield unreadable(error)
        finally:
            if self._reading.in_transaction:
                self._reading.execute("ROLLBACK")

    def _select(self, statement: str, *values: Any) -> list[Any]:
        # A statement that begins while another one runs sees what that one sees, and misses what was written since.
        with _explained(self.path), self._selecting:
            return self._reading.execute(statement, values).fetchall()


class SqliteStore(SqlWriter, SqliteReader):
    """Reads and writes a database, which is made where there is none. One process at a time may have it open."""

    def __init__(self, path: Path, durability: Durability = "full", *, checksums: bool | None = None) -> None:
        self.durability: Durability = durability
        self._checksums = checksums_wanted() if checksums is None else checksums
        self.path, self._where = path, str(path)
        self._inode = self._copy = None  # the lock counts as the user of the file
        self._sums = LastSums()
        self._keys: dict[str, int] = {}
        """Keys of executions at work: a cache."""
        self._selecting = threading.Lock()
        self._writing = threading.RLock()
        self._is_closed = False
        self._clock: WallClock | None = None
        """Made when it is first read: an engine has its own."""
        with _explained(path):
            path.parent.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
            self._lock = WriterLock(path)
        try:
            with _explained(path):
                self._connection = _connect(path, "rwc")
                schema_version(self._connection, path)  # refuses a file of another program before anything is changed
                self._connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[durability]}")
                self._connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES[durability]}")
                migrate(self._connection, path)
                self._reading = _connect(path, "ro")
                # In SQLite a damaged row may have any type, and text is greater than every number.
                largest = "SELECT max(number) FROM commands WHERE typeof(number) = 'integer'"
                (last,) = self._connection.execute(largest).fetchone()
        except StoreError:
            self._lock.release()
            raise
        self._numbers = count((last or 0) + 1)
        """Positions of commands in the order of their opening."""

    def close(self) -> None:
        with self._writing:
            self._is_closed = True
            self._reading.close()
            self._connection.close()
            self._lock.release()

    def now(self) -> float:
        if self._clock is None:
            self._clock = WallClock()
            self._clock.catch_up(self._last_time())
        return self._clock.now()

    def _last_time(self) -> float:
        """Return when the last event of what has not ended was recorded."""
        last = 0.0
        for row in self.unfinished(PAGE_ROWS):
            with suppress(StoreError):  # an event that cannot be read does not stop the others
                last = max([last, *(recorded.timestamp for recorded in self.events(row.execution_id, row.seq - 1))])
        return last

    # ---- log

    def write(self, batch: Sequence[Append], bundles: Mapping[str, bytes] = {}) -> set[str]:
        encoded = encoded_batch(batch)
        conflicts: set[str] = set()
        sums: list[int | None] = []

        def write(connection: sqlite3.Connection) -> None:
            if bundles:
                connection.executemany("INSERT OR IGNORE INTO bundles VALUES (?, ?)", bundles.items())
            for append in encoded:
                key = self._moved(connection, append)
                if key:
                    sums.append(self._write_chunks(connection, append, key))
                    _write_dependents(connection, append, key, self._numbers)
                else:
                    sums.append(None)
                    conflicts.add(append.execution.execution_id)

        self._transact(write)
        for append, last in zip(encoded, sums, strict=True):
            self._sums.note(append.execution, last)
        return conflicts

    def _moved(self, connection: sqlite3.Connection, append: EncodedAppend) -> int:
        """Move the row of an execution on from the known event, and return its key; 0 if it lost a race."""
        *made, status, started, ended, parent, counts, seq, due, trace = append.execution
        execution_id, text = append.execution.execution_id, counts_text(counts)
        if not append.known_seq:
            row = (*made, status, started, ended, parent, text, seq, due, trace)
            return _inserted(connection, row, append.start_key)
        key = self._key_of(connection, execution_id)
        moving = text, seq, due, key, execution_id, append.known_seq
        if ended is None and connection.execute(_MOVE_RUNNING, (status, *moving)).rowcount:
            return key
        self._keys.pop(execution_id, None)
        return key if connection.execute(_MOVE_EXECUTION, (status, ended, *moving)).rowcount else 0

    def _key_of(self, connection: sqlite3.Connection, execution_id: str) -> int:
        """Return the key of an execution's row, which is looked up once; 0: there is none."""
        key = self._keys.get(execution_id, 0)
        if not key:
            found = connection.execute("SELECT key FROM executions WHERE execution_id = ?", (execution_id,)).fetchone()
            key = found[0] if found else 0
            if len(self._keys) >= _KEYS_CACHED:
                self._keys.clear()
            self._keys[execution_id] = key
        return key

    def _write_chunks(self, connection: sqlite3.Connection, append: EncodedAppend, key: int) -> int | None:
        """Write the events of an append; return the last checksum, if there is any."""
        base, known_seq, last = key << SEQ_BITS, append.known_seq, None
        if self._checksums:
            last = self._sums.of(append.execution.execution_id, known_seq)
            if last is None:
                found = connection.execute(_SELECT_SUM, (base, base + known_seq)).fetchone()
                last = known_sum(found[0]) if found else None
            if last is None:  # where none was made, there is none to continue
                last = first_sum(append.execution.execution_id)
        for first, end, data, sum in summed(append.chunks, last):
            connection.execute(_INSERT_CHUNK, (base + first, end, data, sum))
            last = sum
        return last

    # ---- dispatch

    def claim(self, worker: str, pools: Iterable[str], until: float, limit: int, now: float) -> list[QueuedCommand]:
        wanted = json.dumps(list(pools))

        def claim(connection: sqlite3.Connection) -> list[QueuedCommand]:
            claimed = sorted(connection.execute(_CLAIM, (worker, until, now, wanted, limit)))
            select = "SELECT execution_id, bundle, path FROM executions WHERE key = ?"
            rows = [(row, connection.execute(select, (row[1],)).fetchone()) for row in claimed]
            return [QueuedCommand(of[0], *row[2:], *of[1:]) for row, of in rows]

        return self._transact(claim)

    def renew(self, worker: str, held: Sequence[QueuedCommand], until: float) -> list[QueuedCommand]:
        def is_renewed(connection: sqlite3.Connection, command: QueuedCommand) -> bool:
            return bool(connection.execute(_RENEW, (until, *command[:4], worker)).rowcount)

        return self._transact(
            lambda connection: [one._replace(until=until) for one in held if is_renewed(connection, one)]
        )

    def release(self, worker: str, held: Sequence[QueuedCommand]) -> list[QueuedCommand]:
        return self.renew(worker, held, 0.0)

    def expired(self, now: float, limit: int = PAGE_ROWS) -> list[QueuedCommand]:
        return [QueuedCommand._make(row) for row in self._select(_SELECT_EXPIRED, now, limit)]

    # ---- catalogue

    def put_bundle(self, bundle: str, data: bytes) -> None:
        self.write([], {bundle: data})

    def register(self, path: str, bundle: str, data: bytes, now: float) -> CatalogueEntry:
        def register(connection: sqlite3.Connection) -> CatalogueEntry:
            connection.execute("INSERT OR IGNORE INTO bundles VALUES (?, ?)", (bundle, data))
            select = f"SELECT {ENTRY} FROM playbooks WHERE path = ? ORDER BY version DESC LIMIT 1"
            latest = connection.execute(select, (path,)).fetchone()
            if latest and latest[2] == bundle:
                return CatalogueEntry._make(latest)
            entry = CatalogueEntry(path, latest[1] + 1 if latest else 1, bundle, now)
            connection.execute(f"INSERT INTO playbooks ({ENTRY}) VALUES (?, ?, ?, ?)", entry)
            return entry

        return self._transact(register)

    # ---- executions

    def delete(self, execution_ids: Iterable[str]) -> int:
        return self._transact(lambda connection: sum(_deleted(connection, one) for one in set(execution_ids)))

    def repair(self) -> list[Damage]:
        """Repair what follows from the rest, all of it or nothing; return what was damaged."""
        found = [damage for damage in self.damage() if damage.repair]

        def repair(connection: sqlite3.Connection) -> None:
            for statement, values in repairs(found):
                connection.execute(statement, values)

        self._transact(repair)
        return found

    def _change(self, statement: str, *values: Any) -> int:
        return self._transact(lambda connection: connection.execute(statement, values).rowcount)

    def _transact(self, work: Callable[[sqlite3.Connection], _Done]) -> _Done:
        """Return what the work returns, all of it durable; if it raises, nothing of it stays.

        It takes a function and is not a context manager: those cost more than the statements of a small write.
        """
        connection = self._connection
        with self._writing:
            if self._is_closed:
                raise StoreError("the store is closed")
            self._lock.check()  # an effect must not begin that the log then forgets
            try:
                connection.execute("BEGIN IMMEDIATE")
                done = work(connection)
                connection.execute("COMMIT")
            except BaseException as error:  # whatever stopped it: half a write must not stay
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                if isinstance(error, (sqlite3.Error, OSError)):
                    raise _explanation(self.path, error) from error
                raise
        return done


def _write_dependents(connection: sqlite3.Connection, append: EncodedAppend, key: int, numbers: Iterator[int]) -> None:
    if append.references:
        connection.executemany(_INSERT_REFERENCE, [(result, key) for result in append.references])
    if append.snapshot is not None:
        connection.execute("DELETE FROM snapshots WHERE execution = ?", (key,))
        connection.execute(_INSERT_SNAPSHOT, (key, *append.snapshot))
    if append.closed:
        connection.executemany(_CLOSE_COMMAND, [(key, *command[1:4]) for command in append.closed])
    if append.opened:
        opened = [(key, *command[1:9], next(numbers)) for command in append.opened]
        connection.executemany(_OPEN_COMMAND, opened)
    if append.acknowledged:
        connection.executemany("DELETE FROM requests WHERE number = ?", [(number,) for number in append.acknowledged])
    if append.sent:
        connection.executemany(INSERT_REQUEST, append.sent)


class _CheckedSqlite:
    """The tables of a database, for `fsck`."""

    references = '"references"'
    snapshot_id = "rowid"

    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        self._connection = connection
        self.name = name

    def select(self, statement: str, *values: Any) -> list[Any]:
        return self._connection.execute(statement, values).fetchall()

    def log_keys(self) -> set[int]:
        return {key for (key,) in self._connection.execute(f"SELECT DISTINCT place >> {SEQ_BITS} FROM chunks")}

    def chunks(self, key: int) -> Iterator[Sequence[Any]]:
        base = key << SEQ_BITS
        select = f"SELECT {_CHUNK} FROM chunks WHERE place > ? AND place <= ? ORDER BY place"
        return self._connection.execute(select, (base, base + _SEQ_MAX))

    def delete_chunks(self, key: int, after: int) -> Statement:
        base = key << SEQ_BITS
        return "DELETE FROM chunks WHERE place > ? AND place <= ?", (base + after, base + _SEQ_MAX)

    def medium_damage(self) -> Iterator[Damage]:
        for (problem,) in self._connection.execute("PRAGMA integrity_check").fetchall():
            if any(known in problem for known in _INDEX_PROBLEMS):
                yield Damage(
                    f"an index differs from its table: {problem}", "the indexes are rebuilt", (("REINDEX", ()),)
                )
            elif problem != "ok":
                yield Damage(f"SQLite finds: {problem}", "restore a backup")


_INDEX_PROBLEMS = ("missing from index", "wrong # of entries in index", "non-unique entry in index")


def _inserted(connection: sqlite3.Connection, row: tuple[Any, ...], start_key: str) -> int:
    """Insert the row of a new execution, and return its key; 0 if it exists, or another has its start key."""
    if start_key:
        select = "SELECT 1 FROM start_keys WHERE start_key = ?"
        if connection.execute(select, (start_key,)).fetchone():
            return 0
    inserted = connection.execute(_INSERT_EXECUTION, row)
    if not inserted.rowcount:
        return 0
    if start_key:
        connection.execute("INSERT INTO start_keys VALUES (?, ?)", (start_key, row[0]))
    return inserted.lastrowid or 0


def _deleted(connection: sqlite3.Connection, execution_id: str) -> bool:
    found = connection.execute("SELECT key FROM executions WHERE execution_id = ?", (execution_id,)).fetchone()
    if not found:
        return False
    first = found[0] << SEQ_BITS
    connection.execute("DELETE FROM chunks WHERE place BETWEEN ? AND ?", (first, first + _SEQ_MAX))
    for table in ("snapshots", "commands", '"references"'):
        connection.execute(f"DELETE FROM {table} WHERE execution = ?", found)
    for table in ("requests", "start_keys", "executions"):
        connection.execute(f"DELETE FROM {table} WHERE execution_id = ?", (execution_id,))
    return True


class SqliteGuest(SqlWriter, SqliteReader):
    """Writes tokens and requests to a database that another process has open for writing."""

    def now(self) -> float:
        return time.time()

    def _change(self, statement: str, *values: Any) -> int:
        with _explained(self.path), closing(_connect(self.path, "rw")) as connection:
            return connection.execute(statement, values).rowcount


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    """Open a connection that begins transactions only explicitly. Threads take turns on it."""
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        uri=True,
    )


def _version(connection: sqlite3.Connection, path: Path) -> int:
    version = schema_version(connection, path)
    if not version:
        raise StoreError(f"{path} is empty{_other_name(path) or '; `noetlvm run` writes the first execution to it'}")
    require_known(version, path)
    return version


def _other_name(path: Path) -> str:
    """Return what to do about a file with several names: SQLite's log of changes stands beside the writer's."""
    with suppress(OSError):
        if (links := path.stat().st_nlink) > 1:
            return f": it is one of {links} hard links of a file, so give the name that its writer uses"
    return ""


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into ours, which name the file."""
    try:
        yield
    except (sqlite3.Error, OSError, OverflowError) as error:
        raise _explanation(path, error) from error


def _explanation(path: Path, error: sqlite3.Error | OSError | OverflowError) -> StoreError:
    if isinstance(error, OverflowError):
        return DamagedError(f"{path}: a row has a number out of range ({error}); {REMEDY}")
    if isinstance(error, sqlite3.IntegrityError):
        return DamagedError(f"{path}: another program wrote a conflicting row ({error}); {REMEDY}")
    if isinstance(error, OSError):
        return StoreError(f"{error.filename or path}: {error.strerror or error}{_ANOTHER}")
    remedy = _other_name(path) or _REMEDIES.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, "")
    return StoreError(f"{path}: {error}{remedy}")
