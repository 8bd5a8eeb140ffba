"""`kind: duckdb`: SQL on an embedded DuckDB database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from noetlvm.language.tool_kind import Input, Setting, ToolKind, time_limit
from noetlvm.tools.call import Outcome, ToolCall, error
from noetlvm.tools.rows import rows_outcome

if TYPE_CHECKING:
    import duckdb
    from duckdb import DuckDBPyConnection, Statement

    from noetlvm.tools.kept import Kept

_COMMAND = "write `command`"

KIND = ToolKind(
    name="duckdb",
    summary="Runs SQL on DuckDB, in memory or in a file.",
    example="""\
kind: duckdb
command: "SELECT city, count(*) AS n FROM read_csv(?) GROUP BY city"
params: ["{{ workload.csv_path }}"]
""",
    result="`{rows, columns, row_count}` of the last statement; in `rows`, mappings, a second column `id` is `id_2`",
    result_fields=("rows", "columns", "row_count"),
    inputs=(
        Input(
            "command",
            ("string",),
            "The SQL, with `?` or `$name` for parameters; several statements are separated by `;`.",
            required=True,
            language="sql",
        ),
        Input("params", ("array", "object"), "Values for `?` as a list, or for `$name` as a mapping."),
        Input("database", ("string",), "Database file.", default=":memory:"),
    ),
    settings=(time_limit(300), Setting("read_only", ("boolean",), "Open the file without the right to write.", False)),
    extra="duckdb",
    instead={
        "args": "write `params`",
        "commands": "write `command`, with `;` between statements",
        "db_path": "write `database`",
        "parameters": "write `params`",
        "path": "write `database`",
        "query": _COMMAND,
        "sql": _COMMAND,
    },
)

_IN_MEMORY = ":memory:"
_COUNT = "Count"
"""The column by which DuckDB says how many rows a statement changed."""

_KINDS = {"HTTPException": "connection", "OutOfMemoryException": "memory"}
_PASSING = frozenset({"HTTPException", "TransactionException", "SerializationException", "ResourceInUseException"})
_LOCKED = "Could not set lock"
"""How DuckDB says that another process has the file open."""


async def run(call: ToolCall, _kept: Kept) -> Outcome:
    """Run the statements in a thread, on a connection of their own; cancelled here, they are interrupted there."""
    import asyncio

    import duckdb

    try:
        connection = await asyncio.to_thread(_connect, call)
    except duckdb.Error as failed:
        return _failed(failed)
    work = asyncio.ensure_future(asyncio.to_thread(_execute, connection, call))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        connection.interrupt()
        await asyncio.wait([work])
        work.exception()  # that it was interrupted: heard of, or the event loop would print it
        raise
    except duckdb.Error as failed:
        return _failed(failed)
    finally:
        connection.close()


def _connect(call: ToolCall) -> DuckDBPyConnection:
    import duckdb

    database = call.inputs["database"]
    # A database in memory is new for each task: opened without the right to write, it could not even be made.
    return duckdb.connect(database, read_only=call.spec["read_only"] and database != _IN_MEMORY)


def _execute(connection: DuckDBPyConnection, call: ToolCall) -> Outcome:
    """Run the statements, each a transaction of its own unless they say `BEGIN`; the result is the last one's."""
    statements = connection.extract_statements(call.inputs["command"])
    if not statements:
        return error("duckdb", "`command` has no statement")
    params = call.inputs.get("params")
    for statement in statements:
        is_last = statement is statements[-1]
        connection.execute(statement, _params_of(statement, params, is_last=is_last))
    columns = [column[0] for column in connection.description or ()]
    if columns == [_COUNT] and "CHANGED_ROWS" in str(statements[-1].expected_result_type):
        (changed,) = connection.fetchone() or (0,)
        return rows_outcome([], (), changed)
    return rows_outcome(columns, iter(connection.fetchone, None), 0)


def _params_of(statement: Statement, params: Any, *, is_last: bool) -> Any:
    """Return what one of several statements is given: by name, what it names; a list goes to the last one."""
    if isinstance(params, dict):
        return {name: value for name, value in params.items() if name in statement.named_parameters}
    return params if is_last else None


def _failed(failed: duckdb.Error) -> Outcome:
    name, message = type(failed).__name__, str(failed)
    is_passing = name in _PASSING or _LOCKED in message
    return error(_KINDS.get(name, "duckdb"), message, retryable=is_passing, details={"exception_type": name})
