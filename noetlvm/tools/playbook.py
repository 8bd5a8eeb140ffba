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
        Input("workload", ("object",), "The request: merged over the child's workload defaults."),
        Input(
            "return_step",
            ("string",),
            "Step of the child whose result is the child's `result`; without it, that of the step that ran last.",
        ),
    ),
    settings=(Setting("timeout", ("number",), "Seconds that the child may take; without it, as long as it needs."),),
    runs_on="server",
    spellings={
        "args": "workload",
        "input": "workload",
        "payload": "workload",
        "playbook": "path",
        "timeout": "spec.timeout",
    },
)
