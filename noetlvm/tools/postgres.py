"""`kind: postgres`: one SQL command, its data bound as parameters and never spliced into the text."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any

from noetlvm.language.tool_kind import Choice, Input, ToolKind, time_limit
from noetlvm.tools.call import Outcome, ToolCall, error
from noetlvm.tools.fit import Unfit
from noetlvm.tools.rows import Rows

if TYPE_CHECKING:
    import psycopg
    from psycopg import AsyncConnection, AsyncCursor
    from psycopg.adapt import Loader

    from noetlvm.tools.kept import Kept

_INPUTS = (
    Input("command", ("string",), "The SQL, with `%s` or `%(name)s` for parameters.", required=True, language="sql"),
    Input("params", ("array", "object"), "Values for `%s` as a list, or for `%(name)s` as a mapping."),
    Input("host", ("string",), "Server, if `auth` does not name it.", takes_secret=True),
    Input("port", ("integer",), "Port, if `auth` does not give it.", takes_secret=True),
    Input("database", ("string",), "Database, if `auth` does not name it.", takes_secret=True),
    Input("user", ("string",), "User, if `auth` does not name it.", takes_secret=True),
    Input("password", ("string",), "Password, if `auth` does not give it.", takes_secret=True),
)

_COMMAND = "write `command`"

KIND = ToolKind(
    name="postgres",
    summary="Runs one SQL command on PostgreSQL. Serialization failures and lost connections are retryable.",
    example="""\
kind: postgres
auth: pg_main
command: "INSERT INTO items (id, name) VALUES (%(id)s, %(name)s)"
params: { id: "{{ iter.item.id }}", name: "{{ iter.item.name }}" }
""",
    result="`{rows, columns, row_count}`; `rows` is a list of mappings, in which a second column `id` is `id_2`",
    result_fields=("rows", "columns", "row_count"),
    inputs=_INPUTS,
    choices=(Choice(("auth", "host"), "at least one"),),
    settings=(time_limit(60),),
    takes_auth=True,
    extra="postgres",
    helpers=("pg",),
    instead={
        "args": "write `params`",
        "commands": "write one `command` a task",
        "db_host": "write `host`, or better `auth`",
        "db_name": "write `database`, or better `auth`",
        "db_password": "write `auth` and declare the credential in `keychain`",
        "db_port": "write `port`, or better `auth`",
        "db_user": "write `user`, or better `auth`",
        "parameters": "write `params`",
        "query": _COMMAND,
        "sql": _COMMAND,
        "statement": _COMMAND,
    },
)

_DATABASE = {"database": "dbname"}
"""What the driver calls by another name."""

_WHERE = ("host", "port", "database", "user", "password")
_CONNECT_SECONDS = 10
_IDLE_MAX = 10
"""Connections to one database that are kept while nobody uses them."""

_ROWS_AT_ONCE = 1_000
_QUERY = r"(?i:SELECT|VALUES|TABLE)\b"
_NOT_ALONE = r";|\b(?i:INTO)\b"
"""Another statement may follow, or a table be made. In a literal it is neither; the rows then come all at once."""

_PASSING_CLASSES = ("08", "40", "53")
_PASSING_CODES = frozenset({"55P03", "57P01", "57P02", "57P03", "57P05"})
"""Failures that pass: no connection, rolled back for another's sake, out of resources, locked, shutting down."""

_QUERY_CANCELED = "57014"

_REFUSED = (
    "authentication failed",
    "does not exist",
    "is not permitted to log in",
    "no password supplied",
    "no pg_hba.conf entry",
    "invalid sslmode value",
    "certificate verify failed",
    "server does not support SSL",
)
"""What is said of a connection that will not come about the next time either: then there is no code to tell by."""


async def run(call: ToolCall, kept: Kept) -> Outcome:
    """Run the command in a transaction of its own; cancelled here, it is cancelled on the server too."""
    import psycopg

    where = _where(call)
    pool = kept.get(("postgres", tuple(sorted(where.items()))), partial(_Pool, where))
    try:
        connection = await pool.take()
        try:
            return await _execute(connection, call)
        finally:
            await pool.give_back(connection)
    except psycopg.Error as failed:
        return _failed(failed)


async def _execute(connection: AsyncConnection, call: ToolCall) -> Outcome:
    command, params = call.inputs["command"], _params(call)
    if _is_query(command):
        return await _stream(connection, command, params)
    cursor = await connection.execute(command, params)
    while cursor.nextset():  # of several statements the last one counts
        pass
    if connection.pgconn.transaction_status:
        message = "the command leaves a transaction open, so it was rolled back; end it with `COMMIT`, or drop `BEGIN`"
        return error("postgres", message)
    rows = Rows(_columns(cursor))
    if cursor.description:
        rows.add(await cursor.fetchall())
    return rows.outcome(cursor.rowcount)


def _is_query(command: str) -> bool:
    """Return whether a command is one query and nothing else, whose rows can be taken as they come."""
    import re

    from psycopg import capabilities

    text = command.strip().removesuffix(";")
    return bool(re.match(_QUERY, text)) and not re.search(_NOT_ALONE, text) and capabilities.has_stream_chunked()


async def _stream(connection: AsyncConnection, command: str, params: Any) -> Outcome:
    """Take rows as they come, and no more of them than a result may hold: the driver would take them all."""
    from contextlib import aclosing

    cursor, rows = connection.cursor(), None
    stream: Any = cursor.stream(command, params, size=_ROWS_AT_ONCE)
    async with aclosing(stream):  # left early, the query is cancelled on the server
        async for row in stream:
            rows = rows or Rows(_columns(cursor))
            if not rows.add([row]):
                break
    if rows is None:  # the driver does not say which columns a query without rows has
        query = command.strip().removesuffix(";")
        rows = Rows(_columns(await connection.execute(f"SELECT * FROM ({query}\n) AS query LIMIT 0", params)))
    return rows.outcome(0)


def _columns(cursor: AsyncCursor) -> list[str]:
    return [column.name for column in cursor.description or ()]


def _where(call: ToolCall) -> dict[str, Any]:
    """Return where and as whom to connect: what the task says goes before what the keychain entry says."""
    from noetlvm.keychain.auth import postgres_parts
    from noetlvm.keychain.shapes import Misshapen

    try:
        parts = {} if call.auth is None else postgres_parts(call.auth)
    except Misshapen as problem:
        raise Unfit(f"the keychain entry that `auth` names does not fit: {problem}") from None
    parts |= {name: call.inputs[name] for name in _WHERE if name in call.inputs}
    given = {_DATABASE.get(name, name): value for name, value in parts.items() if value is not None}
    return {"connect_timeout": _CONNECT_SECONDS} | given


def _params(call: ToolCall) -> Any:
    """Return the values to bind. A mapping, which PostgreSQL has no type for, goes as JSON."""
    params = call.inputs.get("params")
    if isinstance(params, dict):
        return {"idempotency_key": call.key} | {name: _bound(value) for name, value in params.items()}
    return None if params is None else [_bound(value) for value in params]


def _bound(value: Any) -> Any:
    from psycopg.types.json import Jsonb

    is_json = isinstance(value, dict) or (isinstance(value, list) and any(isinstance(item, dict) for item in value))
    return Jsonb(value) if is_json else value


class _Pool:
    """Connections to one database as one user. What one command leaves in its session, the next never meets."""

    def __init__(self, where: dict[str, Any]) -> None:
        self._where = where
        self._idle: list[AsyncConnection] = []

    async def take(self) -> AsyncConnection:
        from psycopg import AsyncConnection

        while self._idle:
            connection = self._idle.pop()
            if not _has_news(connection):
                return connection
            await connection.close()
        # Prepared statements do not outlive `DISCARD ALL`.
        connection = await AsyncConnection.connect(**self._where, autocommit=True, prepare_threshold=None)
        for name, loader in _lenient_loaders().items():
            connection.adapters.register_loader(name, loader)
        return connection

    async def give_back(self, connection: AsyncConnection) -> None:
        import psycopg

        try:
            if connection.pgconn.transaction_status:
                await connection.rollback()
            await connection.execute("DISCARD ALL")
        except psycopg.Error:  # it is of no use any more, and the command's own outcome says what there is to say
            await connection.close()
        if connection.closed or len(self._idle) >= _IDLE_MAX:
            await connection.close()
            return
        self._idle.append(connection)

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        for connection in idle:
            await connection.close()


@cache
def _lenient_loaders() -> dict[str, type[Loader]]:
    """Return loaders, by type, that give as text what Python has no date or time for: `infinity`, 44 BC, 24:00."""
    from psycopg import DataError
    from psycopg.types import datetime

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


def _has_news(connection: AsyncConnection) -> bool:
    """Return whether an idle connection has something to read: the server's farewell, most likely."""
    from select import POLLIN, poll

    if connection.closed:
        return True
    poller = poll()
    poller.register(connection.fileno(), POLLIN)
    return bool(poller.poll(0))


def _failed(failed: psycopg.Error) -> Outcome:
    from psycopg import OperationalError

    state = failed.sqlstate
    if state == _QUERY_CANCELED:
        return error("timeout", str(failed), retryable=True, pg=_code(state))
    if state is None:
        is_lost = isinstance(failed, OperationalError)
        message = str(failed) or type(failed).__name__
        is_passing = is_lost and not any(words in message for words in _REFUSED)
        return error("connection" if is_lost else "postgres", message, retryable=is_passing)
    is_passing = state.startswith(_PASSING_CLASSES) or state in _PASSING_CODES
    diagnosis = failed.diag
    details = {"sqlstate": state, "constraint": diagnosis.constraint_name, "table": diagnosis.table_name}
    kind = "connection" if state.startswith("08") else "postgres"
    return error(kind, str(failed), retryable=is_passing, details=details, pg=_code(state))


def _code(state: str | None) -> dict[str, Any]:
    return {"code": state, "sqlstate": state}
