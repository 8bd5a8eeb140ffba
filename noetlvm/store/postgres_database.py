"""Connections to a PostgreSQL database, its clock, and what its errors mean."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import psycopg
from psycopg import Connection
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult
from psycopg.sql import SQL, Identifier

from noetlvm.store.chunks import REMEDY
from noetlvm.store.interface import DamagedError, StoreError
from noetlvm.store.postgres_schema import migrate

_Done = TypeVar("_Done")

_ATTEMPTS = 5
"""Tries of a transaction that the database stops to resolve a deadlock."""
_IDLE_CONNECTIONS = 8
_CONNECTION = {
    "connect_timeout": 10,
    "keepalives_idle": 5,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
"""Unless the address says otherwise. A host that has gone without a word is noticed in 20 seconds: by default, a system
waits for it for hours, and nothing is decided meanwhile."""
_SETTINGS = SQL(
    "SET search_path TO {}; SET plan_cache_mode TO force_generic_plan; SET enable_seqscan TO off; "
    "SET random_page_cost TO 1"
)
"""Of a connection. The plan of a statement is made once, often while a table is empty that soon has many rows: reading
all of it must not look cheap."""


def with_limits(address: str) -> str:
    """Return an address that says how long to wait for a host that does not answer. Raises psycopg.Error."""
    return make_conninfo("", **(_CONNECTION | conninfo_to_dict(address)))


class PostgresDatabase:
    """A schema of a database, made and migrated where needed. Any thread may use it; each call borrows a connection."""

    def __init__(self, address: str, schema: str = "noetlvm") -> None:
        self.address = address
        self.schema = schema
        self.name = _public_name(address)
        self._idle: list[Connection] = []
        self._prepared: WeakKeyDictionary[Connection, _PreparedStatements] = WeakKeyDictionary()
        self._lock = Lock()
        self._is_closed = False
        self._clock_offset = 0.0
        with self.connection() as connection:
            migrate(connection, schema)
            row = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
            assert row is not None
            self.set_clock(row[0])

    def close(self) -> None:
        """Close all connections. Idempotent."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def require_open(self) -> None:
        """Raise StoreError after `close`."""
        if self._is_closed:
            raise StoreError("the store is closed")

    # ---- time

    def now(self) -> float:
        """Return the time of the database: its clock when last read, continued by the monotonic clock of this host."""
        return time.monotonic() + self._clock_offset

    def set_clock(self, now: float) -> None:
        """Note what the clock of the database shows."""
        self._clock_offset = now - time.monotonic()

    # ---- statements

    def select(self, statement: bytes, *values: Any) -> list[Any]:
        """Return the rows of a query."""
        with self.connection() as connection:
            return connection.execute(statement, values).fetchall()

    def run(self, statement: bytes, values: Any) -> list[Any]:
        """Return the rows of a prepared statement that is a transaction of its own."""

        def run() -> list[Any]:
            with self.connection() as connection:
                return connection.execute(statement, values, prepare=True).fetchall()

        return _retried(run)

    def run_binary(self, statement: bytes, values: Sequence[bytes | None]) -> list[list[bytes | None]]:
        """Run a prepared statement that is a transaction of its own, straight through libpq.

        Values and the rows that it returns are in PostgreSQL's binary form: a write has so many values that what
        psycopg does for each costs more than the statement.
        """

        def run() -> list[list[bytes | None]]:
            with self.connection() as connection:
                prepared = self._prepared.get(connection)
                if prepared is None:
                    prepared = self._prepared[connection] = _PreparedStatements(connection)
                return prepared.run(statement, values)

        return _retried(run)

    def transact(self, work: Callable[[Connection], _Done]) -> _Done:
        """Return what the work returns, all of it durable; if it raises, nothing of it stays."""

        def run() -> _Done:
            with self.connection() as connection, connection.transaction():
                return work(connection)

        return _retried(run)

    # ---- connections

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Lend a connection. A broken one is not lent again."""
        connection: Connection | None = None
        try:
            connection = self._taken()
            yield connection
        except psycopg.Error as error:
            raise _explanation(self.name, error) from error
        finally:
            if connection is not None:
                self._put_back(connection)

    def _taken(self) -> Connection:
        with self._lock:
            self.require_open()
            if self._idle:
                return self._idle.pop()
        connection = psycopg.connect(with_limits(self.address), autocommit=True)
        connection.execute(_SETTINGS.format(Identifier(self.schema)))
        return connection

    def _put_back(self, connection: Connection) -> None:
        with self._lock:
            if not (self._is_closed or connection.closed or len(self._idle) >= _IDLE_CONNECTIONS):
                self._idle.append(connection)
                return
        connection.close()


class _PreparedStatements:
    """Statements that a connection has prepared for binary values."""

    def __init__(self, connection: Connection) -> None:
        self._libpq = connection.pgconn
        self._names: dict[bytes, bytes] = {}

    def run(self, statement: bytes, values: Sequence[bytes | None]) -> list[list[bytes | None]]:
        """Return the rows of a statement. Raises psycopg.Error."""
        try:
            result = self._execute(statement, values)
        except psycopg.errors.InvalidSqlStatementName:  # psycopg drops all of a connection after a rollback
            self._names.clear()
            result = self._execute(statement, values)
        columns = range(result.nfields)
        return [[result.get_value(row, column) for column in columns] for row in range(result.ntuples)]

    def _execute(self, statement: bytes, values: Sequence[bytes | None]) -> PGresult:
        formats = [Format.BINARY] * len(values)
        given: Any = values  # None is NULL, which the type of the parameter forgets
        return _checked(self._libpq.exec_prepared(self._name(statement), given, formats, Format.BINARY))

    def _name(self, statement: bytes) -> bytes:
        name = self._names.get(statement)
        if name is None:
            name = b"noetlvm_%d" % len(self._names)
            _checked(self._libpq.prepare(name, statement))
            self._names[statement] = name
        return name


def _checked(result: PGresult) -> PGresult:
    if result.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
        error = psycopg.errors.error_from_result(result)
        # Without a code it is libpq's own: the connection is lost.
        raise error if error.sqlstate else psycopg.OperationalError(str(error))
    return result


class _GaveWayError(StoreError):
    """The database chose this transaction to resolve a deadlock. Nothing was written."""


def _retried(work: Callable[[], _Done]) -> _Done:
    for _ in range(_ATTEMPTS - 1):
        try:
            return work()
        except _GaveWayError:
            continue
    return work()


def _public_name(address: str) -> str:
    """Return an address without its password, for messages."""
    known = conninfo_to_dict(address)
    return f"postgresql://{known.get('host') or 'local socket'}/{known.get('dbname') or ''}"


def _explanation(name: str, error: psycopg.Error) -> StoreError:
    text = (str(error).strip() or type(error).__name__).splitlines()[0]
    if isinstance(error, (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure)):
        return _GaveWayError(f"{name}: {text}")
    if isinstance(error, psycopg.IntegrityError):
        return DamagedError(f"{name}: another program wrote a conflicting row ({text}); {REMEDY}")
    if isinstance(error, psycopg.OperationalError):
        return StoreError(f"{name}: {text}; is PostgreSQL running, and the address right?")
    return StoreError(f"{name}: {text}")
