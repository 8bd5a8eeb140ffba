"""`kind: postgres`: one SQL command, its data bound as parameters and never spliced into the text."""

from __future__ import annotations

from noetlvm.tools.kind import Choice, Input, ToolKind, time_limit

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
    result="`{rows, columns, row_count}`; `rows` is a list of mappings",
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
