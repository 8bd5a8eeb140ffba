"""`kind: playbook`: another playbook as a child execution (S43). The server starts it, never the worker."""

from __future__ import annotations

from noetlvm.language.tool_kinds import Input, Setting, ToolKind

KIND = ToolKind(
    name="playbook",
    summary="Runs another playbook as a child execution and waits for it.",
    example="""\
kind: playbook
path: billing/invoice
version: "3"
workload: { customer: "{{ args.customer }}" }
""",
    result="`{status, result, ctx}` of the child",
    result_fields=("status", "result", "ctx"),
    inputs=(
        Input("path", ("string",), "The child's `metadata.path`.", required=True),
        Input("version", ("string", "integer"), "The child's version; the newest if absent."),
        Input("workload", ("object",), "Payload of the child, merged over its workload defaults."),
        Input(
            "return_step",
            ("string",),
            "Step of the child whose result becomes the child's `result`; by default the last step that ran.",
        ),
    ),
    settings=(Setting("timeout", ("number",), "Time limit of the child in seconds; by default none."),),
    runs_on="server",
    spellings={
        "args": "workload",
        "input": "workload",
        "payload": "workload",
        "playbook": "path",
        "timeout": "spec.timeout",
    },
)
