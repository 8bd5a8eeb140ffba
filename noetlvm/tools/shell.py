"""`kind: shell`: a command of the operating system, or several in one shell."""

from __future__ import annotations

from os import environ, killpg
from signal import SIGKILL
from typing import TYPE_CHECKING, Any

from noetlvm.language.tool_kinds import Choice, Input, ToolKind, time_limit
from noetlvm.limits import TOOL_OUTPUT_BYTES_MAX
from noetlvm.tools.call import Outcome, ToolCall, error, ok, too_large
from noetlvm.tools.inputs import InputError, as_text

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from asyncio.subprocess import Process

    from noetlvm.tools.call import Resources

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
            "A list of program and arguments, which runs without a shell; or a text, which `sh` runs.",
            language="shell",
        ),
        Input(
            "cmds",
            ("array", "string"),
            "Commands, each of one or more lines. One `sh -e` runs them in order and stops at the first failure.",
            language="shell",
            reads_items=True,
        ),
        Input(
            "env",
            ("object",),
            "Environment variables, besides `PATH`, `HOME` and `NOETL_IDEMPOTENCY_KEY`, the key of the task run.",
        ),
        Input("cwd", ("string",), "Working folder."),
        Input("stdin", ("string",), "Standard input of the command."),
    ),
    choices=(Choice(("command", "cmds"), "exactly one"),),
    settings=(time_limit(300),),
    spellings={
        "cmd": "command",
        "commands": "cmds",
        "environment": "env",
        "input": "stdin",
        "script": "command",
        "timeout": "spec.timeout",
        "workdir": "cwd",
        "working_dir": "cwd",
        "working_directory": "cwd",
    },
    instead={"args": "write all arguments in `command`, as a list"},
)

IDEMPOTENCY_KEY = "NOETL_IDEMPOTENCY_KEY"
"""The environment variable that holds the key of the task run."""

_INHERITED = ("PATH", "HOME")
_CHUNK = 64 * 1024


async def run(call: ToolCall, _resources: Resources) -> Outcome:
    """Run the command in its own process group, which is killed at the end."""
    import asyncio

    # A cancelled start could leave processes behind: so it is awaited, and they are killed.
    starting = asyncio.ensure_future(_start(call))
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
        stdout, stderr = await _exchange(process, call.inputs.get("stdin", "").encode())
        if stdout is None or stderr is None:
            return too_large("the command's output", TOOL_OUTPUT_BYTES_MAX)
        return _ended(await process.wait(), stdout, stderr)
    finally:
        await _end(process)


async def _start(call: ToolCall) -> Process:
    import asyncio

    inputs, pipe = call.inputs, asyncio.subprocess.PIPE
    folder = inputs.get("cwd")
    return await asyncio.create_subprocess_exec(
        *map(_encoded, _arguments(inputs)),
        env={_encoded(name): _encoded(value) for name, value in _environment(call).items()},
        cwd=folder and _encoded(folder),
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        start_new_session=True,
    )


def _encoded(text: str) -> bytes:
    """Return the bytes of a text for the operating system: UTF-8, whatever the locale of this process is."""
    return text.encode(errors="surrogateescape")


def _arguments(inputs: dict[str, Any]) -> list[str]:
    if "cmds" in inputs:
        return ["/bin/sh", "-e", "-c", _script(inputs["cmds"])]
    command = inputs["command"]
    if isinstance(command, str):
        return ["/bin/sh", "-c", command]
    if not command:
        raise InputError("`command` is empty; give a program, and its arguments after it")
    return [as_text(f"command[{at}]", argument) for at, argument in enumerate(command)]


def _script(commands: str | list[Any]) -> str:
    texts = [commands] if isinstance(commands, str) else commands
    for at, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"`cmds[{at}]` must be text")
    if not any(text.strip() for text in texts):
        raise InputError("`cmds` is empty; give at least one command")
    return "\n".join(texts)


def _environment(call: ToolCall) -> dict[str, str]:
    inherited = {name: environ[name] for name in _INHERITED if name in environ}
    given = {name: value for name, value in call.inputs.get("env", {}).items() if value is not None}
    return inherited | {IDEMPOTENCY_KEY: call.key} | {n: as_text(f"env.{n}", value) for n, value in given.items()}


async def _exchange(process: Process, text: bytes) -> tuple[bytes | None, bytes | None]:
    """Write to the command and read its output concurrently: it may write before it has read everything."""
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
        if pipe.is_closing():
            return  # the command has ended, and uvloop takes nothing more
        pipe.write(text)
        await pipe.drain()
        pipe.close()
    except (BrokenPipeError, ConnectionResetError):
        return  # a command need not read its input


async def _read(process: Process, pipe: StreamReader | None) -> bytes | None:
    """Return the whole output; None, and the command is killed, if it is too large."""
    assert pipe is not None, "both are pipes"
    found = bytearray()
    while chunk := await pipe.read(_CHUNK):
        found += chunk
        if len(found) > TOOL_OUTPUT_BYTES_MAX:
            _kill_group(process)
            return None
    return bytes(found)


def _ended(code: int, stdout: bytes, stderr: bytes) -> Outcome:
    complaint = stderr.decode(errors="replace")
    result = {"stdout": stdout.decode(errors="replace"), "stderr": complaint, "exit_code": code}
    if code == 0:
        return ok(result)
    last = complaint.strip().rpartition("\n")[2]
    how = f"exit code {code}" if code > 0 else f"ended by signal {-code}"
    return error("shell", f"{how}: {last}" if last else how, details={"exit_code": code}, result=result)


async def _end(process: Process) -> None:
    """Kill the command and every process in its group."""
    _kill_group(process)
    # A process that left the group may hold the pipes open, and `wait` would wait for them too. Closing the transport
    # itself would take the exit status from asyncio, which then writes a warning to standard error.
    transport = process._transport  # type: ignore[attr-defined]  # nothing public closes our ends
    for descriptor in range(3):
        transport.get_pipe_transport(descriptor).close()
    await process.wait()


def _kill_group(process: Process) -> None:
    try:
        killpg(process.pid, SIGKILL)
    except (ProcessLookupError, PermissionError):  # no process is left, or (on macOS) only dying ones
        return
