"""`kind: duckdb`: SQL on an embedded DuckDB database."""

from __future__ import annotations

from noetlvm.tools.kind import Input, Setting, ToolKind, time_limit

_COMMAND = "write `command`"

KIND = ToolKind(
    name="duckdb",
    summary="Runs SQL on DuckDB, in memory or in a file.",
    example="""\
kind: duckdb
command: "SELECT city, count(*) AS n FROM read_csv(?) GROUP BY city"
params: ["{{ workload.csv_path }}"]
""",
    result="`{rows, columns, row_count}` of the last statement; `rows` is a list of mappings",
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
