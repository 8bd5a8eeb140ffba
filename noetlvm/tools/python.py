"""`kind: python`: a piece of Python in a child process of its own."""

from __future__ import annotations

from noetlvm.tools.kind import Input, Setting, ToolKind, time_limit

KIND = ToolKind(
    name="python",
    summary="Runs Python in a child process with limits on time and memory.",
    example="""\
kind: python
args: { items: "{{ _prev.data }}" }
code: |
  def main(items):
      return [item["id"] for item in items if item["active"]]
""",
    result="what `main` returned, or the value of `result`",
    inputs=(
        Input(
            "code",
            ("string",),
            "The source: it defines `main(**args)`, or assigns `result`.",
            required=True,
            language="python",
        ),
        Input("args", ("object",), "Values the code sees as variables, and `main` gets as arguments."),
    ),
    settings=(time_limit(300), Setting("memory_mb", ("integer",), "Memory that the child may use, in MiB.", 512)),
    helpers=("py",),
    instead={
        "data": "write `args`",
        "input": "write `args`",
        "params": "write `args`",
        "script": "write `code`",
        "source": "write `code`",
    },
)
