"""`kind: workbook`: a task of the playbook's own `workbook`, put in place by the compiler (S42)."""

from __future__ import annotations

from noetlvm.language.tool_kinds import Input, ToolKind

KIND = ToolKind(
    name="workbook",
    summary="Stands for a task, or a list of tasks, of the playbook's `workbook`.",
    example="""\
kind: workbook
task: save_item
args: { table: items }
""",
    result="the result of the last task put in its place",
    inputs=(
        Input("task", ("string",), "Name under `workbook.tasks`.", required=True),
        Input(
            "args",
            ("object",),
            "Laid over the step's `args` for these tasks; a single task without `args` of its own gets them.",
        ),
    ),
    runs_on="compiler",
    spellings={"input": "args", "ref": "task", "use": "task"},
)
