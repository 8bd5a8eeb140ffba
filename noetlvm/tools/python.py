"""`kind: python`: a piece of Python in a child process of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from noetlvm.language.tool_kind import Input, Setting, ToolKind, time_limit
from noetlvm.limits import PRINTED_BYTES_MAX, TOOL_OUTPUT_BYTES_MAX
from noetlvm.tools.call import Outcome, ToolCall, error, ok, too_much

if TYPE_CHECKING:
    from noetlvm.tools.kept import Kept
    from noetlvm.tools.python_pool import Answer

KIND = ToolKind(
    name="python",
    summary="Runs Python in a child process that has limits on time and memory, no network, and changes no file.",
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


async def run(call: ToolCall, kept: Kept) -> Outcome:
    """Run the code in a child process; cancelled or too slow, it is killed."""
    from noetlvm.tools.python_pool import Gone, PythonPool

    pool = kept.get("python", PythonPool)
    try:
        answer = await pool.run(_request(call))
    except Gone:
        return _failed("python", "the child process ended unasked", retryable=True)
    if answer.too_much:
        return too_much("what the code gives", TOOL_OUTPUT_BYTES_MAX) | {"py": _part(None, answer.printed)}
    if not answer.body:
        return _killed(answer, call)
    return _ended(answer)


def _request(call: ToolCall) -> dict[str, Any]:
    limits = {
        "memory_mb": call.spec["memory_mb"],
        "cpu_s": int(call.spec["timeout"]) + 1,
        "output_max": TOOL_OUTPUT_BYTES_MAX,
        "printed_max": PRINTED_BYTES_MAX,
    }
    return {"code": call.inputs["code"], "args": call.inputs.get("args", {}), "limits": limits}


def _ended(answer: Answer) -> Outcome:
    import json

    try:
        told = json.loads(answer.body)
    except (ValueError, RecursionError):  # the code can write into its own pipe
        return _failed("python", "the code ended without a result", printed=answer.printed)
    if "error" not in told:
        return ok(told["result"], py=_part(None, answer.printed))
    raised = told["error"]
    name, line = raised["exception_type"], raised["line"]
    message = f"{name}: {raised['message']}" if raised["message"] else name
    where = f" (line {line} of `code`)" if line else ""
    kind = "memory" if name == "MemoryError" else "python"
    details = {"line": line, "traceback": raised["traceback"]}
    return _failed(kind, message + where, name, answer.printed, details=details)


def _killed(answer: Answer, call: ToolCall) -> Outcome:
    from signal import SIGXCPU, Signals

    if answer.signal == SIGXCPU:
        return _failed("timeout", f"it used more than {call.spec['timeout']} s of processor time", retryable=True)
    how = f"was ended by {Signals(answer.signal).name}" if answer.signal else "ended without a result"
    return _failed("python", f"the code {how}", printed=answer.printed)


def _failed(
    kind: str,
    message: str,
    exception_type: str | None = None,
    printed: str = "",
    *,
    retryable: bool = False,
    details: dict[str, Any] | None = None,
) -> Outcome:
    return error(kind, message, retryable=retryable, details=details, py=_part(exception_type, printed))


def _part(exception_type: str | None, printed: str) -> dict[str, Any]:
    kept = _whole_words(printed)
    return {"exception_type": exception_type} | ({"stdout": kept} if kept else {})


def _whole_words(printed: str) -> str:
    """Return what was printed without a word that the limit cut in two: half a secret may not be known as one."""
    if len(printed.encode()) < PRINTED_BYTES_MAX:
        return printed
    end = len(printed)
    while end and not printed[end - 1].isspace():
        end -= 1
    return printed[:end]
