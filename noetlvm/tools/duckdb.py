"""`kind: duckdb`: SQL on an embedded DuckDB database, with other databases and object stores attached to it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noetlvm.keychain.auth import postgres_parts
from noetlvm.language.keychain import ShapeError, read_auth
from noetlvm.language.tool_kinds import Choice, Input, Setting, ToolKind, time_limit
from noetlvm.tools.call import Outcome, ToolCall, error
from noetlvm.tools.inputs import InputError
from noetlvm.tools.rows import RESULT, RESULT_FIELDS, ROWS, StatementResults, checked_rows, statement_text
from noetlvm.tools.script import SCRIPT, script_text

if TYPE_CHECKING:
    import duckdb
    from duckdb import DuckDBPyConnection, Statement

    from noetlvm.language.keychain import AuthUse
    from noetlvm.tools.call import Resources

KIND = ToolKind(
    name="duckdb",
    summary="Runs SQL on DuckDB, in memory or in a file.",
    example="""\
kind: duckdb
command: "SELECT city, count(*) AS n FROM read_csv(?) GROUP BY city"
params: ["{{ workload.csv_path }}"]
""",
    result=RESULT,
    result_fields=RESULT_FIELDS,
    inputs=(
        Input(
            "command",
            ("string", "array"),
            "The SQL, with `?` or `$name` for parameters; several statements as a list, or with `;` between them.",
            language="sql",
            reads_items=True,
        ),
        Input("script", ("string", "object"), f"SQL. {SCRIPT}", language="sql"),
        Input(
            "params",
            ("array", "object"),
            "Values for `?` as a list, or for `$name` as a mapping. A list stays a list (`list_contains($xs, x)`).",
        ),
        Input("rows", ("array",), ROWS),
        Input("database", ("string",), "Database file.", default=":memory:"),
        Input(
            "attach",
            ("object",),
            "Databases and object stores by name, each a keychain entry, or `{auth: entry, type: postgres, …}`.",
        ),
    ),
    choices=(Choice(("command", "script"), "exactly one"), Choice(("params", "rows"), "at most one")),
    settings=(time_limit(300), Setting("read_only", ("boolean",), "Open the file for reading only.", False)),
    extra="duckdb",
    package="duckdb",
    spellings={
        "auth": "attach",
        "commands": "command",
        "credentials": "attach",
        "db_path": "database",
        "parameters": "params",
        "path": "database",
        "query": "command",
        "sql": "command",
        "statement": "command",
        "timeout": "spec.timeout",
        "with": "params",
    },
    instead={"args": "write `params`"},
)

_IN_MEMORY = ":memory:"
_COUNT = "Count"
"""The column in which DuckDB gives the number of rows that a statement changed."""

_KINDS = {"HTTPException": "connection", "OutOfMemoryException": "memory"}
_RETRYABLE = frozenset({"HTTPException", "TransactionException", "SerializationException", "ResourceInUseException"})
_LOCKED = "Could not set lock"
"""Part of DuckDB's message if another process has the file open."""


async def run(call: ToolCall, resources: Resources) -> Outcome:
    """Run the statements in a thread, on a connection of their own; a cancellation interrupts them."""
    import asyncio

    import duckdb

    inputs = call.inputs
    written = inputs["command"] if "command" in inputs else await script_text(inputs["script"], call, resources)
    text, attached = statement_text(written), _attachments(call)
    try:
        connection = await asyncio.to_thread(_connect, duckdb.connect, call)
    except duckdb.Error as failed:
        return _failed(failed)
    work = asyncio.ensure_future(asyncio.to_thread(_execute, connection, text, call, attached))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        connection.interrupt()
        await asyncio.wait([work])
        work.exception()  # retrieved, or the event loop would print it
        raise
    except duckdb.Error as failed:
        return _failed(failed)
    finally:
        connection.close()


def _connect(connect: Callable[..., DuckDBPyConnection], call: ToolCall) -> DuckDBPyConnection:
    database = call.inputs["database"]
    # A database in memory is new for each task: it can only be opened for writing.
    return connect(database, read_only=call.spec["read_only"] and database != _IN_MEMORY)


def _execute(connection: DuckDBPyConnection, text: str, call: ToolCall, attached: list[str]) -> Outcome:
    """Run the statements, each a transaction of its own unless they use `BEGIN`."""
    for sql in attached:
        connection.execute(sql)
    statements = connection.extract_statements(text)
    results = StatementResults()
    if "rows" in call.inputs:
        return _insert(connection, statements, checked_rows(call.inputs["rows"]), results)
    params = _Params(call.inputs.get("params"), len(statements))
    for statement in statements:
        connection.execute(statement, params.of(statement))
        if not _collect(connection, statement, results):
            break
    return results.outcome()


def _collect(connection: DuckDBPyConnection, statement: Statement, results: StatementResults) -> bool:
    columns = [column[0] for column in connection.description or ()]
    if columns == [_COUNT] and "CHANGED_ROWS" in str(statement.expected_result_type):
        (changed,) = connection.fetchone() or (0,)
        results.begin([], changed)
        return True
    results.begin(columns)
    return results.add(iter(connection.fetchone, None))


def _insert(
    connection: DuckDBPyConnection, statements: list[Statement], rows: list[Any], results: StatementResults
) -> Outcome:
    """Run one statement for each of the rows, in one transaction."""
    if len(statements) != 1:
        raise InputError("`rows` takes one statement in `command`")
    connection.execute("BEGIN")
    if rows:
        connection.executemany(statements[0].query, rows)
    connection.execute("COMMIT")
    results.begin([], len(rows))
    return results.outcome()


class _Params:
    """Distributes parameters over statements: by name to those that name them, a list in order."""

    def __init__(self, params: Any, statements: int) -> None:
        self._params = params
        self._is_shared = statements > 1 and isinstance(params, list)
        self._next = 0

    def of(self, statement: Statement) -> Any:
        if isinstance(self._params, dict):
            return {name: value for name, value in self._params.items() if name in statement.named_parameters}
        if not self._is_shared:
            return self._params
        start, self._next = self._next, self._next + len(statement.named_parameters)
        return self._params[start : self._next] or None


# ---- attached databases and object stores


def _attachments(call: ToolCall) -> list[str]:
    """Return the statements that attach what `attach` names. Raises InputError."""
    found: list[str] = []
    given = call.inputs.get("attach", {})
    for alias, value in given.items():
        use = value.get("auth", value) if isinstance(value, Mapping) else value
        options = value if isinstance(value, Mapping) else {}
        try:
            named = read_auth(use)
            entry = call.keychain[named.entry]
            kind = str(options.get("type") or named.scheme or _type_of(entry)).lower()
            attach = _ATTACH.get(kind)
            if attach is None:
                raise ShapeError(f"`{kind}` is not a known type; give `type`: {', '.join(_ATTACH)}")
            found += attach(alias, entry, named._replace(scope=str(options.get("scope") or named.scope)))
        except KeyError:
            raise InputError(f"`attach.{alias}`: the keychain has no entry `{named.entry}`") from None
        except ShapeError as problem:
            raise InputError(f"`attach.{alias}`: {problem}") from None
    return found


def _type_of(entry: Any) -> str:
    """Return the type that an entry gives itself, or that its fields or its URL imply."""
    if isinstance(entry, str):
        return "postgres" if entry.startswith(("postgres://", "postgresql://")) else "file"
    parts: Mapping[str, Any] = entry if isinstance(entry, Mapping) else {}
    if parts.get("type"):
        return str(parts["type"])
    if "key_id" in parts or "access_key_id" in parts:
        return "s3"
    return "postgres"


def _postgres(alias: str, entry: Any, _use: AuthUse) -> list[str]:
    names = {"host": "HOST", "port": "PORT", "database": "DATABASE", "user": "USER", "password": "PASSWORD"}
    parts = {names[name]: value for name, value in postgres_parts(entry).items() if name in names}
    secret = _identifier(f"{alias}_secret")
    return [
        *_extension("postgres_scanner"),
        _secret(secret, {"TYPE": "postgres", **parts}),
        f"ATTACH '' AS {_identifier(alias)} (TYPE postgres, SECRET {secret})",
    ]


def _object_store(type_: str) -> Callable[[str, Any, AuthUse], list[str]]:
    def attach(alias: str, entry: Any, use: AuthUse) -> list[str]:
        parts: Mapping[str, Any] = entry if isinstance(entry, Mapping) else {}
        key = parts.get("key_id") or parts.get("access_key_id")
        secret = parts.get("secret") or parts.get("secret_key") or parts.get("secret_access_key")
        if not key or not secret:
            raise ShapeError("the keychain entry must have `key_id` and `secret`")
        names = ("region", "endpoint", "session_token", "url_style", "use_ssl")
        options = {name.upper(): parts[name] for name in names if parts.get(name) is not None}
        scope = {"SCOPE": use.scope} if use.scope else {}
        made = {"TYPE": type_, "KEY_ID": key, "SECRET": secret, **options, **scope}
        return [*_extension("httpfs"), _secret(_identifier(alias), made)]

    return attach


def _file(alias: str, entry: Any, _use: AuthUse) -> list[str]:
    path = entry.get("path") or entry.get("database") if isinstance(entry, Mapping) else entry
    if not isinstance(path, str):
        raise ShapeError("the keychain entry must be a path, or have `path`")
    return [f"ATTACH {_literal(path)} AS {_identifier(alias)}"]


_ATTACH: dict[str, Callable[[str, Any, AuthUse], list[str]]] = {
    "postgres": _postgres,
    "postgresql": _postgres,
    "s3": _object_store("s3"),
    "gcs": _object_store("gcs"),
    "gs": _object_store("gcs"),
    "file": _file,
    "duckdb": _file,
}
"""How each type is attached. Secrets go through DuckDB's secrets, which never appear in a result."""


def _extension(name: str) -> list[str]:
    """Return what loads an extension: from its Python package if that is installed, else downloaded once."""
    import duckdb

    found = importlib.util.find_spec(f"duckdb_extension_{name}")
    for folder in found.submodule_search_locations or () if found else ():
        file = Path(folder, "extensions", f"v{duckdb.__version__}", f"{name}.duckdb_extension")
        if file.exists():
            return [f"LOAD {_literal(file)}"]
    return [f"INSTALL {name}", f"LOAD {name}"]


def _secret(name: str, options: Mapping[str, Any]) -> str:
    written = ", ".join(f"{option} {_literal(value)}" for option, value in options.items())
    return f"CREATE OR REPLACE TEMPORARY SECRET {name} ({written})"


def _literal(value: Any) -> str:
    return "'" + str(value).replace("'", "''") + "'"


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _failed(failed: duckdb.Error) -> Outcome:
    name, message = type(failed).__name__, str(failed)
    is_retryable = name in _RETRYABLE or _LOCKED in message
    return error(_KINDS.get(name, "duckdb"), message, retryable=is_retryable, details={"exception_type": name})
