"""Runs the SQL of `kind: postgres` over pooled connections, its data bound as parameters and never spliced in."""

from __future__ import annotations

import re
from asyncio import Future, Semaphore, get_running_loop, wait_for
from collections.abc import Generator
from contextlib import suppress
from functools import cache, lru_cache, partial
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
from psycopg import AsyncClientCursor, AsyncConnection, AsyncCursor, DataError, OperationalError, capabilities
from psycopg._queries import PostgresQuery
from psycopg.adapt import Transformer
from psycopg.generators import fetch, send
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.types import datetime
from psycopg.types.json import Jsonb

from noetlvm.keychain.auth import postgres_parts
from noetlvm.language.keychain import ShapeError
from noetlvm.tools.call import Outcome, ToolCall, error
from noetlvm.tools.inputs import InputError
from noetlvm.tools.rows import StatementResults, checked_rows, statement_text
from noetlvm.tools.script import script_text

if TYPE_CHECKING:
    from psycopg.adapt import Loader
    from psycopg.pq.abc import PGconn, PGresult

    from noetlvm.tools.call import Resources

_DATABASE = {"database": "dbname"}
"""Names that the driver spells differently."""

_PARTS = ("host", "port", "database", "user", "password")
_CONNECT_SECONDS = 10
_ROWS_AT_ONCE = 1_000
_QUERY = r"(?i:SELECT|VALUES|TABLE)\b"
_MAY_BE_MORE = r";|\b(?i:INTO)\b"
"""Another statement may follow, or a table be created. In a literal it is neither; then the rows are not streamed."""

_STATEMENTS_CACHED = 256

_RETRYABLE_CLASSES = ("08", "40", "53")
_RETRYABLE_CODES = frozenset({"55P03", "57P01", "57P02", "57P03", "57P05"})
"""Transient failures: no connection, rolled back for another transaction, out of resources, locked, shutting down."""

_QUERY_CANCELED = "57014"
_SEVERAL = "multiple commands"
"""Part of the server's message if a text with parameters has several statements."""

_PERMANENT = (
    "authentication failed",
    "does not exist",
    "is not permitted to log in",
    "no password supplied",
    "no pg_hba.conf entry",
    "invalid sslmode value",
    "certificate verify failed",
    "server does not support SSL",
)
"""Messages of a connection that will fail the next time too: there is no code for that."""


async def run_command(call: ToolCall, resources: Resources) -> Outcome:
    """Run the command in a transaction of its own; cancelled here, it is cancelled on the server too."""
    inputs = call.inputs
    written = inputs["command"] if "command" in inputs else await script_text(inputs["script"], call, resources)
    text, target, limits = statement_text(written), _target(call), PoolLimits.of(call.spec.get("pool"))
    pool = resources.get(("postgres", limits, tuple(sorted(target.items()))), partial(_Pool, target, limits))
    try:
        connection = await pool.take()
        try:
            return await _execute(connection, text, call)
        finally:
            await pool.give_back(connection)
    except psycopg.Error as failed:
        return _failed(failed)
    except PoolFullError as problem:
        return error("connection", str(problem), retryable=True)


async def _execute(connection: AsyncConnection, text: str, call: ToolCall) -> Outcome:
    if "rows" in call.inputs:
        return await _insert(connection, text, call)
    params = _params(call)
    if _is_query(text):
        return await _stream(connection, text, params)
    cursor = await _executed(connection, text, params)
    if connection.pgconn.transaction_status:
        message = "the command leaves a transaction open, so it was rolled back; end it with `COMMIT`, or drop `BEGIN`"
        return error("postgres", message)
    results = StatementResults()
    while True:
        if cursor.pgresult is not None and not _is_empty(cursor):
            results.begin(_columns(cursor), cursor.rowcount)
            if cursor.description and not results.add(await cursor.fetchall()):
                break
        if not cursor.nextset():
            break
    return results.outcome()


async def _executed(connection: AsyncConnection, text: str, params: Any) -> AsyncCursor:
    """Run one statement with the server binding parameters, or several with the driver doing so."""
    try:
        return await connection.execute(text, params)
    except psycopg.errors.SyntaxError as failed:
        if params is None or _SEVERAL not in str(failed):
            raise
    cursor = AsyncClientCursor(connection)
    return await cursor.execute(text, params)


async def _insert(connection: AsyncConnection, text: str, call: ToolCall) -> Outcome:
    """Run one statement for each of the rows, in one transaction."""
    rows = [_bound_row(row) for row in checked_rows(call.inputs["rows"])]
    results, cursor = StatementResults(), connection.cursor()
    if rows:
        async with connection.transaction():
            await cursor.executemany(text, rows)
    results.begin([], cursor.rowcount if rows else 0)
    return results.outcome()


def _is_empty(cursor: AsyncCursor) -> bool:
    return cursor.pgresult is not None and cursor.pgresult.status == ExecStatus.EMPTY_QUERY


@lru_cache(_STATEMENTS_CACHED)
def _is_query(command: str) -> bool:
    """Return whether a command is one query and nothing else, whose rows can be streamed."""
    return (
        bool(re.match(_QUERY, command)) and not re.search(_MAY_BE_MORE, command) and capabilities.has_stream_chunked()
    )


async def _stream(connection: AsyncConnection, command: str, params: Any) -> Outcome:
    """Read rows as they arrive, and no more of them than a result may hold: the driver would read them all."""
    results = StatementResults()
    rows = _rows(connection, command, params, results)
    if not await connection.wait(rows):
        await connection.cancel_safe()
        await connection.wait(_left(connection.pgconn))
    return results.outcome()


def _rows(
    connection: AsyncConnection, command: str, params: Any, results: StatementResults
) -> Generator[Any, Any, bool]:
    """Run a query and add its rows to the results; False: there are more than these may hold."""
    libpq, transformer = connection.pgconn, Transformer(connection)
    query = PostgresQuery(transformer)
    query.convert(command, params)
    libpq.send_query_params(query.query, query.params, query.types, query.formats)
    libpq.set_chunked_rows_mode(_ROWS_AT_ONCE)
    yield from send(libpq)
    has_columns = False
    while (result := (yield from fetch(libpq))) is not None:
        if result.status not in _WITH_ROWS:
            with suppress(psycopg.Error):  # the first error is the reason of what follows
                yield from _left(libpq)
            raise psycopg.errors.error_from_result(result, transformer.encoding)
        transformer.set_pgresult(result, set_loaders=not has_columns)
        if not has_columns:
            has_columns = True
            results.begin(_column_names(result, transformer.encoding))
        if result.ntuples and not results.add(transformer.load_rows(0, result.ntuples, tuple)):
            return False
    return True


def _left(libpq: PGconn) -> Generator[Any, Any, None]:
    """Drop what is left of a query that failed or was cancelled."""
    while (yield from fetch(libpq)) is not None:
        pass


def _column_names(result: PGresult, encoding: str) -> list[str]:
    return [(result.fname(at) or b"").decode(encoding) for at in range(result.nfields)]


_WITH_ROWS = (ExecStatus.TUPLES_OK, ExecStatus.TUPLES_CHUNK)


def _columns(cursor: AsyncCursor) -> list[str]:
    return [column.name for column in cursor.description or ()]


def _target(call: ToolCall) -> dict[str, Any]:
    """Return where and as whom to connect: inputs of the task win over the keychain entry."""
    parts = {} if call.auth is None else _auth_parts(call.auth)
    parts |= {name: call.inputs[name] for name in _PARTS if name in call.inputs}
    given = {_DATABASE.get(name, name): value for name, value in parts.items() if value is not None}
    return {"connect_timeout": _CONNECT_SECONDS} | given


def _auth_parts(auth: Any) -> dict[str, Any]:
    """Return the parts of a keychain entry. Raises InputError."""
    try:
        return postgres_parts(auth)
    except ShapeError as problem:
        raise InputError(f"the keychain entry of `auth` cannot be used: {problem}") from None


def _params(call: ToolCall) -> Any:
    params = call.inputs.get("params")
    if isinstance(params, dict):
        return {"idempotency_key": call.key, **_bound_row(params)}
    return None if params is None else _bound_row(params)


def _bound_row(row: Any) -> Any:
    """Return values to bind. A mapping, for which PostgreSQL has no type, becomes JSON."""
    return {name: _bound(value) for name, value in row.items()} if isinstance(row, dict) else [*map(_bound, row)]


def _bound(value: Any) -> Any:
    is_json = isinstance(value, dict) or (isinstance(value, list) and any(isinstance(item, dict) for item in value))
    return Jsonb(value) if is_json else value


# ---- connections


class PoolFullError(Exception):
    """No connection became free in time."""


class PoolLimits(NamedTuple):
    """The settings of `spec.pool`."""

    name: str = ""
    max_size: int = 20
    min_size: int = 10
    """Connections that stay open while they are idle."""
    timeout: float = 30
    max_waiting: int = 0
    """0: any number."""
    max_idle: float = 600
    max_lifetime: float = 3600

    @classmethod
    def of(cls, given: Any) -> PoolLimits:
        """Read `spec.pool`. Raises InputError."""
        if not given:
            return _USUAL_POOL
        for name, value in given.items():
            if name not in cls._fields:
                raise InputError(f"`spec.pool` has no `{name}`; it takes {', '.join(f'`{n}`' for n in cls._fields)}")
            if name != "name" and (isinstance(value, bool) or not isinstance(value, int | float) or value < 0):
                raise InputError(f"`spec.pool.{name}` is {value!r}; give a number")
        limits = cls(**given)
        return limits._replace(max_size=max(1, limits.max_size))


_USUAL_POOL = PoolLimits()

_SPARE_SECONDS = 5.0
"""How long more connections than `min_size` stay open: the next tasks of a loop need them at once."""


class _Pool:
    """Connections to one database as one user. No session state of one command is visible to the next."""

    def __init__(self, target: dict[str, Any], limits: PoolLimits) -> None:
        self._target = target
        self._limits = limits
        self._idle: list[tuple[AsyncConnection, float]] = []
        """With the time at which each became idle."""
        self._opened: dict[int, float] = {}
        self._slots = Semaphore(limits.max_size)
        self._waiting = 0

    async def take(self) -> AsyncConnection:
        """Return a connection. Raises PoolFullError or the driver's error."""
        await self._wait()
        try:
            return await self._reused() or await self._connect()
        except BaseException:
            self._slots.release()
            raise

    async def _wait(self) -> None:
        limits = self._limits
        if not self._slots.locked():
            await self._slots.acquire()
            return
        if limits.max_waiting and self._waiting >= limits.max_waiting:
            raise PoolFullError(f"{self._waiting} tasks wait for a connection already (`spec.pool.max_waiting`)")
        self._waiting += 1
        try:
            await wait_for(self._slots.acquire(), limits.timeout)
        except TimeoutError:
            message = f"no connection became free within {limits.timeout:g} s; raise `spec.pool.max_size` or `timeout`"
            raise PoolFullError(message) from None
        finally:
            self._waiting -= 1

    async def _reused(self) -> AsyncConnection | None:
        while self._idle:
            connection, since = self._idle.pop()
            is_good = False
            try:
                is_good = monotonic() - since < self._limits.max_idle and await _is_discarded(connection)
            finally:
                if not is_good:
                    self._drop(connection)
            if is_good:
                return connection
        return None

    async def _connect(self) -> AsyncConnection:
        # Prepared statements do not survive `DISCARD ALL`.
        connection = await AsyncConnection.connect(**self._target, autocommit=True, prepare_threshold=None)
        for name, loader in _lenient_loaders().items():
            connection.adapters.register_loader(name, loader)
        self._opened[id(connection)] = monotonic()
        return connection

    async def give_back(self, connection: AsyncConnection) -> None:
        """Take a connection back. All session state is discarded: any function, view or trigger may have set some.

        The answer to that is read before the connection is used again: no task waits for it.
        """
        try:
            await self._discard(connection)
        finally:
            self._slots.release()

    async def _discard(self, connection: AsyncConnection) -> None:
        try:
            if connection.pgconn.transaction_status:
                await connection.rollback()
            connection.pgconn.send_query(b"DISCARD ALL")
            connection.pgconn.flush()
        except psycopg.Error:  # the connection is unusable; the outcome of the command has the reason
            self._drop(connection)
            return
        except BaseException:  # the task is cancelled
            self._drop(connection)
            raise
        now = monotonic()
        is_old = now - self._opened.get(id(connection), now) > self._limits.max_lifetime
        if connection.closed or is_old:
            self._drop(connection)
        else:
            self._idle.append((connection, now))
        while len(self._idle) > max(self._limits.min_size, 1) and now - self._idle[0][1] > _SPARE_SECONDS:
            self._drop(self._idle.pop(0)[0])

    def _drop(self, connection: AsyncConnection) -> None:
        self._opened.pop(id(connection), None)
        connection.pgconn.finish()

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        for connection, _ in idle:
            await connection.close()


@cache
def _lenient_loaders() -> dict[str, type[Loader]]:
    """Return loaders, by type, that give dates and times outside Python's range as text: `infinity`, 44 BC, 24:00."""

    def lenient(strict: type[Loader]) -> type[Loader]:
        class Lenient(strict):  # type: ignore[misc, valid-type]  # a class for each type, made when first needed
            def load(self, data: Any) -> Any:
                try:
                    return super().load(data)
                except DataError:
                    return bytes(data).decode()

        return Lenient

    return {
        "date": lenient(datetime.DateLoader),
        "time": lenient(datetime.TimeLoader),
        "timetz": lenient(datetime.TimetzLoader),
        "timestamp": lenient(datetime.TimestampLoader),
        "timestamptz": lenient(datetime.TimestamptzLoader),
    }


async def _is_discarded(connection: AsyncConnection) -> bool:
    """Return whether a connection that was given back is as good as a new one; False: the server has closed it."""
    if connection.closed:
        return False
    pgconn = connection.pgconn
    try:
        pgconn.consume_input()
        while pgconn.is_busy():
            pgconn.flush()
            await _readable(pgconn.socket)
            pgconn.consume_input()
        is_good = True
        while (result := pgconn.get_result()) is not None:
            is_good = is_good and result.status == ExecStatus.COMMAND_OK
        pgconn.consume_input()  # a server that closes the connection sends that after its last answer
    except psycopg.Error:
        return False
    return is_good and pgconn.status == ConnStatus.OK


async def _readable(socket: int) -> None:
    """Wait until there is something to read."""
    loop = get_running_loop()
    arrived = loop.create_future()
    loop.add_reader(socket, _arrive, arrived)
    try:
        await arrived
    finally:
        loop.remove_reader(socket)


def _arrive(arrived: Future[None]) -> None:
    if not arrived.done():
        arrived.set_result(None)


def _failed(failed: psycopg.Error) -> Outcome:
    state = failed.sqlstate
    if state == _QUERY_CANCELED:
        return error("timeout", str(failed), retryable=True, pg=_code(state))
    if state is None:
        is_lost = isinstance(failed, OperationalError)
        message = str(failed) or type(failed).__name__
        is_retryable = is_lost and not any(words in message for words in _PERMANENT)
        return error("connection" if is_lost else "postgres", message, retryable=is_retryable)
    is_retryable = state.startswith(_RETRYABLE_CLASSES) or state in _RETRYABLE_CODES
    diagnosis = failed.diag
    details = {"sqlstate": state, "constraint": diagnosis.constraint_name, "table": diagnosis.table_name}
    kind = "connection" if state.startswith("08") else "postgres"
    return error(kind, str(failed), retryable=is_retryable, details=details, pg=_code(state))


def _code(state: str | None) -> dict[str, Any]:
    return {"code": state, "sqlstate": state}
