"""The process of a command: how it starts and ends, its exit codes, and errors as messages instead of tracebacks.

Most commands take a fraction of a second, so start and end count.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from noetlvm.command_line.declared import CommandProgram

SUCCESS = 0
FAILURE = 1
"""The command ran, and the answer is no: findings, a failed execution, a difference."""
CANNOT_RUN = 2
"""The command could not do its work: wrong options, unusable files. A message gives the reason."""
INTERRUPTED = 130
"""Ctrl-C."""

_AT_START = (200_000, 50, 50)
_AT_WORK = (10_000, 10, 10)
"""A run makes few cycles: with Python's own thresholds most collections find nothing."""

EXTRAS = {
    "fastapi": "server",
    "httpx": "client",
    "nats": "nats",
    "opentelemetry": "otel",
    "prometheus_client": "server",
    "psutil": "conformance",
    "psycopg": "postgres",
    "uvicorn": "server",
    "websockets": "server",
}
"""Packages that commands import when they need them, and the extra that installs each."""


class CommandError(Exception):
    """The command cannot run. Its message is all that the user sees; none if it was printed already. Exit code 2."""


def begin() -> None:
    """Raise the GC thresholds: a short-lived command frees almost nothing."""
    gc.set_threshold(*_AT_START)


def settle() -> None:
    """Lower the GC thresholds for work that may take days, and exempt what is loaded already."""
    if gc.get_threshold() == _AT_START:
        gc.freeze()
        gc.set_threshold(*_AT_WORK)


def run_program(name: str, version: str, load: Callable[[], CommandProgram]) -> int:
    """Run the command line of this process and return the exit code. No traceback reaches the user."""
    _prepare_streams()
    try:
        code = _dispatch(name, version, load)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader (`head`) closed the pipe; keep Python's own flush quiet too
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    except OSError as error:  # the system refused: a full disk behind standard output, for example
        where = f"{error.filename}: " if error.filename else "cannot read or write: "
        return _report(name, error, f"{where}{error.strerror or error}")
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            return _report_defect(name, error)
        return _report(name, error, f"this needs the package `{package}`: pip install 'noetlc[{EXTRAS[package]}]'")
    except Exception as error:  # a bug of ours, reported in two lines
        return _report_defect(name, error)
    return code


def leave(code: int) -> None:
    """End the process without tearing down the interpreter; exit functions have run and output is flushed.

    With a live thread, a profiler, a debugger or a stream that cannot be flushed, Python ends the process as usual.
    """
    threading = sys.modules.get("threading")
    if (threading and threading.active_count() > 1) or sys.getprofile() or sys.gettrace():
        sys.exit(code)
    atexit._run_exitfuncs()  # the only way to run them before `os._exit`
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        sys.exit(code)
    os._exit(code)


def _dispatch(name: str, version: str, load: Callable[[], CommandProgram]) -> int:
    words = sys.argv[1:]
    if words == ["--version"]:  # without loading anything: scripts call it often
        print(f"{name} {version}")
        return SUCCESS
    program = load()
    from noetlvm.command_line.declared import run_words

    try:
        return run_words(program, words)
    except (CommandError, *program.errors) as problem:  # type: ignore[misc]
        if str(problem):
            print(f"{name}: {problem}", file=sys.stderr)
        return CANNOT_RUN


def _prepare_streams() -> None:
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller; without a replacement the next opened file would get its number
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: PTH123, SIM115 - for good
        elif name != "stdin":  # escape what the terminal cannot show instead of raising
            stream.reconfigure(errors="backslashreplace")


def _report(name: str, error: Exception, message: str) -> int:
    if os.environ.get(_debug_variable(name)):
        raise error
    print(f"{name}: {message}", file=sys.stderr)
    return CANNOT_RUN


def _report_defect(name: str, error: Exception) -> int:
    what = f"internal error: {type(error).__name__}: {error}\nThis is a defect of {name}, not of your playbook."
    return _report(name, error, f"{what} Please report it; {_debug_variable(name)}=1 shows the traceback.")


def _debug_variable(name: str) -> str:
    return f"{name.upper()}_DEBUG"
