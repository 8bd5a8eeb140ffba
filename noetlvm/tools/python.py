"""`kind: python`: Python code in a child process with limits."""

from __future__ import annotations

import json
from signal import SIGXCPU, Signals
from typing import TYPE_CHECKING, Any

from noetlvm.expr.values import Undefined
from noetlvm.language.tool_kinds import Choice, Input, Setting, ToolKind, time_limit
from noetlvm.limits import PRINTED_BYTES_MAX, TOOL_OUTPUT_BYTES_MAX
from noetlvm.tools.call import Outcome, ToolCall, error, ok, too_large
from noetlvm.tools.inputs import InputError, plain, size_of
from noetlvm.tools.script import SCRIPT, script_text

if TYPE_CHECKING:
    from noetlvm.tools.call import Resources
    from noetlvm.tools.python_pool import Response

KIND = ToolKind(
    name="python",
    summary="Runs Python in a child process with limited time and memory, without network or write access to files.",
    example="""\
kind: python
args: { items: "{{ _prev.data }}" }
code: |
  def main(items):
      return [item["id"] for item in items if item["active"]]
""",
    result="the return value of `main` or of a `return` at top level, or the value of `result`",
    inputs=(
        Input(
            "code",
            ("string",),
            "The source. It defines `main`, which may be `async`, returns at top level, or assigns `result`; else the "
            "result is null. `main` gets the args that its signature names; nothing runs if one is missing. The code "
            "can use `input_data` (the args), `context` (the names that templates see there) and `idempotency_key`; "
            "`main` can have parameters of these names.",
            language="python",
        ),
        Input("script", ("string", "object"), f"The source. {SCRIPT}", language="python"),
        Input("args", ("object",), "Values that are variables of the code and arguments of `main`."),
        Input(
            "libs",
            ("object", "array"),
            "Modules imported before the code runs: a list of modules, or a mapping of name to module or to "
            "`{from: module, import: name}`.",
        ),
    ),
    choices=(Choice(("code", "script"), "exactly one"),),
    settings=(time_limit(300), Setting("memory_mb", ("integer",), "Memory limit of the child process, in MiB.", 512)),
    helpers=("py",),
    spellings={"data": "args", "input": "args", "params": "args", "source": "code", "timeout": "spec.timeout"},
)

_ALLOWED = (
    "a `python` task may read files, but neither change nor lock them (SQLite reads with `?immutable=1`), and has no "
    "network: use `kind: http` for requests, `postgres`, `duckdb` or `nats` for data, `shell` for files and programs"
)


async def run(call: ToolCall, resources: Resources) -> Outcome:
    """Run the code in a child process; cancelled or too slow, it is killed."""
    from noetlvm.tools.python_pool import ChildEndedError, PythonPool

    code = call.inputs["code"] if "code" in call.inputs else await script_text(call.inputs["script"], call, resources)
    pool = resources.get("python", PythonPool)
    try:
        response = await pool.run(call.key.partition("/")[0], _limits(call), _request(code, call))
    except ChildEndedError:
        return _failed("python", "the child process ended unexpectedly", retryable=True)
    if response.stopped == "output":
        return too_large("the result of the code", TOOL_OUTPUT_BYTES_MAX) | {"py": _part(None, response.printed)}
    if response.stopped == "processes":
        return _failed("python", "the code started too many processes", printed=response.printed)
    if not response.body:
        return _killed(response, call)
    return _ended(response)


def _limits(call: ToolCall) -> dict[str, int]:
    return {
        "memory_mb": call.spec["memory_mb"],
        "cpu_s": int(call.spec["timeout"]) + 1,
        "output_max": TOOL_OUTPUT_BYTES_MAX,
        "printed_max": PRINTED_BYTES_MAX,
    }


def _request(code: str, call: ToolCall) -> dict[str, Any]:
    return {
        "code": code,
        "args": call.inputs.get("args", {}),
        "libs": _libs(call.inputs.get("libs", {})),
        "context": _context(code, call),
        "key": call.key,
    }


def _libs(given: dict[str, Any] | list[Any]) -> dict[str, str]:
    """Return modules by the name that each gets. Raises InputError."""
    libs = {name.partition(".")[0]: name.partition(".")[0] for name in given if isinstance(name, str)}
    libs = libs if isinstance(given, list) else {name: _module(module) for name, module in given.items()}
    for name, module in libs.items():
        if not name.isidentifier() or not isinstance(module, str) or not module:
            raise InputError("`libs` must be a mapping of names to modules, or a list of modules")
    if isinstance(given, list) and len(libs) != len(given):
        raise InputError("`libs` must be a mapping of names to modules, or a list of different modules")
    return libs


def _module(given: Any) -> Any:
    """Return the dotted name of what `{from: module, import: name}` imports; anything else as it is."""
    if isinstance(given, dict) and given.keys() == {"from", "import"}:
        return f"{given['from']}.{given['import']}"
    return given


def _context(code: str, call: ToolCall) -> dict[str, Any]:
    """Return what templates see, if the code mentions it: it may be large. Raises InputError."""
    if "context" not in code or call.context is None:
        return {}
    found: dict[str, Any] = {}
    for name, value in call.context().items():
        try:
            found[name] = plain(_defined(value))
        except TypeError:  # undefined values and functions of the template language are not data
            continue
    if size_of(found) > TOOL_OUTPUT_BYTES_MAX:
        raise InputError("`context` is too large for the code; pass what it needs in `args`")
    return found


def _defined(value: Any) -> Any:
    """Return a value without what is undefined in it: a masked secret, which is not recorded."""
    if isinstance(value, dict):
        return {key: _defined(item) for key, item in value.items() if not isinstance(item, Undefined)}
    return [_defined(item) for item in value] if isinstance(value, list | tuple) else value


def _ended(response: Response) -> Outcome:
    try:
        answer = json.loads(response.body)
    except (ValueError, RecursionError):  # the code can write into its own pipe
        return _failed("python", "the code ended without a result", printed=response.printed)
    if "error" not in answer:
        return ok(answer["result"], py=_part(None, response.printed))
    raised = answer["error"]
    name, line = raised["exception_type"], raised["line"]
    message = f"{name}: {raised['message']}" if raised["message"] else name
    message += f" (line {line} of `code`)" if line else ""
    message += f"; {_ALLOWED}" if raised.get("denied") is True else ""
    kind = "memory" if name == "MemoryError" else "python"
    details = {"line": line, "traceback": raised["traceback"]}
    return _failed(kind, message, name, response.printed, details=details)


def _killed(response: Response, call: ToolCall) -> Outcome:
    if response.signal == SIGXCPU:
        return _failed("timeout", f"it used more than {call.spec['timeout']} s of processor time", retryable=True)
    how = f"was ended by {Signals(response.signal).name}" if response.signal else "ended without a result"
    return _failed("python", f"the code {how}", printed=response.printed)


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
    shown = _whole_words(printed)
    return {name: value for name, value in (("exception_type", exception_type), ("stdout", shown)) if value}


def _whole_words(printed: str) -> str:
    """Return printed text without a word that the limit cut in two: half a secret may not be found as one."""
    if len(printed.encode()) < PRINTED_BYTES_MAX:
        return printed
    end = len(printed)
    while end and not printed[end - 1].isspace():
        end -= 1
    return printed[:end]
