"""`kind: workbook`: a task of the playbook's own `workbook`, put in place by the compiler (S42)."""

from __future__ import annotations

from noetlvm.language.tool_kinds import Input, ToolKind

KIND = ToolKind(
    name="workbook",
    summary="Calls a task, or a list of tasks, of the playbook's `workbook`.",
    example="""\
kind: workbook
task: save_item
args: { table: items }
""",
    result="the result of the last task of the call",
    inputs=(
        Input("task", ("string",), "Name under `workbook.tasks`.", required=True),
        Input(
            "args",
            ("object",),
            "Values that override the step's `args` for these tasks; a single task without its own `args` gets them.",
        ),
    ),
    runs_on="compiler",
    spellings={"input": "args", "ref": "task", "use": "task"},
)
