"""`kind: postgres`: what it takes. `postgres_client.py` runs it: importing its driver takes longer than lint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noetlvm.language.tool_kinds import Choice, Input, Setting, ToolKind, time_limit
from noetlvm.tools.rows import RESULT, RESULT_FIELDS, ROWS
from noetlvm.tools.script import SCRIPT

if TYPE_CHECKING:
    from noetlvm.tools.call import Outcome, Resources, ToolCall

_INPUTS = (
    Input(
        "command",
        ("string", "array"),
        "The SQL, with `%s` or `%(name)s` for parameters; several statements as a list, or with `;` between them, "
        "run in one transaction.",
        language="sql",
        reads_items=True,
    ),
    Input("script", ("string", "object"), f"SQL. {SCRIPT}", language="sql"),
    Input(
        "params",
        ("array", "object"),
        "Values for `%s` as a list, or for `%(name)s` as a mapping; `%(idempotency_key)s` is always available. "
        "A number is bound as a number, a list as an array (`id = ANY(%(ids)s)`), a mapping as `jsonb`.",
    ),
    Input("rows", ("array",), ROWS),
    Input("host", ("string",), "Server, if `auth` does not name it.", takes_secret=True),
    Input("port", ("integer",), "Port, if `auth` does not give it.", takes_secret=True),
    Input("database", ("string",), "Database, if `auth` does not name it.", takes_secret=True),
    Input("user", ("string",), "User, if `auth` does not name it.", takes_secret=True),
    Input("password", ("string",), "Password, if `auth` does not give it.", takes_secret=True),
)

KIND = ToolKind(
    name="postgres",
    summary="Runs SQL on PostgreSQL. Serialization failures and lost connections are retryable.",
    example="""\
kind: postgres
auth: pg_main
command: "INSERT INTO items (id, name) VALUES (%(id)s, %(name)s)"
params: { id: "{{ iter.item.id }}", name: "{{ iter.item.name }}" }
""",
    result=RESULT,
    result_fields=RESULT_FIELDS,
    inputs=_INPUTS,
    choices=(
        Choice(("command", "script"), "exactly one"),
        Choice(("params", "rows"), "at most one"),
        Choice(("auth", "host"), "at least one"),
    ),
    settings=(
        time_limit(60),
        Setting(
            "pool",
            ("object",),
            "Connection pool: `max_size` connections at once, of which `min_size` stay open; a task waits `timeout` "
            "seconds for one, and at most `max_waiting` tasks wait; a connection closes after `max_idle` seconds "
            "without use or `max_lifetime` seconds. Another `name` is a separate pool.",
        ),
    ),
    takes_auth=True,
    extra="postgres",
    package="psycopg",
    helpers=("pg",),
    spellings={
        "commands": "command",
        "credential": "auth",
        "db_host": "host",
        "db_name": "database",
        "db_port": "port",
        "db_user": "user",
        "parameters": "params",
        "pool": "spec.pool",
        "query": "command",
        "sql": "command",
        "statement": "command",
        "timeout": "spec.timeout",
        "with": "params",
    },
    instead={"args": "write `params`", "db_password": "write `auth` and declare the credential in `keychain`"},
)


async def run(call: ToolCall, resources: Resources) -> Outcome:
    """Run the command."""
    from noetlvm.tools.postgres_client import run_command

    return await run_command(call, resources)
