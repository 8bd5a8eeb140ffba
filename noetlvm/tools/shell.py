"""`kind: shell`: one command of the operating system."""

from __future__ import annotations

from noetlvm.tools.kind import Input, ToolKind, time_limit

KIND = ToolKind(
    name="shell",
    summary="Runs a command. An exit code other than 0 is an error.",
    example="""\
kind: shell
command: [gzip, --keep, "{{ workload.file }}"]
cwd: /data
""",
    result="`{stdout, stderr, exit_code}`",
    result_fields=("stdout", "stderr", "exit_code"),
    inputs=(
        Input(
            "command",
            ("string", "array"),
            "A list of program and arguments, run without a shell; or a text, read by `sh`.",
            required=True,
            language="shell",
        ),
        Input("env", ("object",), "Environment variables, besides `PATH` and `HOME`."),
        Input("cwd", ("string",), "Folder to run in."),
        Input("stdin", ("string",), "Text given to the command."),
    ),
    settings=(time_limit(300),),
    instead={
        "args": "write all arguments in `command`, as a list",
        "cmd": "write `command`",
        "environment": "write `env`",
        "input": "write `stdin`",
        "script": "write `command`",
        "working_directory": "write `cwd`",
    },
)
