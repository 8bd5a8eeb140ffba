"""`kind: shell`: one command of the operating system."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from noetlvm.language.tool_kind import Input, ToolKind, time_limit
from noetlvm.limits import TOOL_OUTPUT_BYTES_MAX
from noetlvm.tools.call import Outcome, ToolCall, error, ok, too_much
from noetlvm.tools.fit import Unfit, as_text

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from asyncio.subprocess import Process

    from noetlvm.tools.kept import Kept

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

_KEPT_VARIABLES = ("PATH", "HOME")
_CHUNK = 64 * 1024


async def run(call: ToolCall, _kept: Kept) -> Outcome:
    """Run the command in a process group of its own, of which nothing is left when this ends."""
    import asyncio

    # A start that is broken off would leave behind what the command has started by then: so it is waited for.
    starting = asyncio.ensure_future(_start(call.inputs))
    try:
        process = await asyncio.shield(starting)
    except (OSError, ValueError) as failed:
        return error("shell", f"the command cannot be started: {failed}")
    except asyncio.CancelledError:
        await asyncio.wait([starting])
        if starting.exception() is None:
            await _end(starting.result())
        raise
    try:
        stdout, stderr = await _talk(process, call.inputs.get("stdin", "").encode())
        if stdout is None or stderr is None:
            return too_much("the command's output", TOOL_OUTPUT_BYTES_MAX)
        return _ended(await process.wait(), stdout, stderr)
    finally:
        await _end(process)


async def _start(inputs: dict[str, Any]) -> Process:
    import asyncio

    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        *_arguments(inputs["command"]),
        env=_environment(inputs.get("env", {})),
        cwd=inputs.get("cwd"),
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        start_new_session=True,
    )


def _arguments(command: str | list[Any]) -> list[str]:
    if isinstance(command, str):
        return ["/bin/sh", "-c", command]
    if not command:
        raise Unfit("`command` is empty; give a program, and its arguments after it")
    return [as_text(f"command[{at}]", argument) for at, argument in enumerate(command)]


def _environment(given: dict[str, Any]) -> dict[str, str]:
    from os import environ

    return {name: environ[name] for name in _KEPT_VARIABLES if name in environ} | {
        name: as_text(f"env.{name}", value) for name, value in given.items() if value is not None
    }


async def _talk(process: Process, text: bytes) -> tuple[bytes | None, bytes | None]:
    """Give the command its text and take what it writes, both at once: it may write before it has read all."""
    import asyncio

    stdin, out, err = process.stdin, process.stdout, process.stderr
    assert stdin is not None, "it is a pipe"
    async with asyncio.TaskGroup() as group:
        group.create_task(_write(stdin, text))
        stdout = group.create_task(_read(process, out))
        stderr = group.create_task(_read(process, err))
    return stdout.result(), stderr.result()


async def _write(pipe: StreamWriter, text: bytes) -> None:
    try:
        pipe.write(text)
        await pipe.drain()
        pipe.close()
    except (BrokenPipeError, ConnectionResetError):
        return  # a command need not read what it is given


async def _read(process: Process, pipe: StreamReader | None) -> bytes | None:
    """Return all that is written; None, and an end to the command, if that is too much."""
    assert pipe is not None, "both are pipes"
    found = bytearray()
    while chunk := await pipe.read(_CHUNK):
        found += chunk
        if len(found) > TOOL_OUTPUT_BYTES_MAX:
            _kill_group(process)
            return None
    return bytes(found)


def _ended(code: int, stdout: bytes, stderr: bytes) -> Outcome:
    told = stderr.decode(errors="replace")
    result = {"stdout": stdout.decode(errors="replace"), "stderr": told, "exit_code": code}
    if code == 0:
        return ok(result)
    last = told.strip().rpartition("\n")[2]
    how = f"exit code {code}" if code > 0 else f"ended by signal {-code}"
    return error("shell", f"{how}: {last}" if last else how, details={"exit_code": code}, result=result)


async def _end(process: Process) -> None:
    """Kill what is still there of the command and of all that it started in its group."""
    _kill_group(process)
    # What has left the group may hold the pipes for as long as it likes, and `wait` would wait for them too.
    process._transport.close()  # type: ignore[attr-defined]  # nothing public closes our ends
    await process.wait()


def _kill_group(process: Process) -> None:
    from os import killpg
    from signal import SIGKILL

    try:
        killpg(process.pid, SIGKILL)
    except (ProcessLookupError, PermissionError):  # nothing is left, or (on macOS) only what is already dying
        return
