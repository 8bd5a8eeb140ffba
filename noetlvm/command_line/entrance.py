"""Where a program's process comes in: `--version` is answered at once, and no traceback reaches the user."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from noetlvm.command_line.exit_codes import CANNOT_RUN, INTERRUPTED

if TYPE_CHECKING:
    from noetlvm.command_line.declared import Program

Load: TypeAlias = "Callable[[], tuple[Program, tuple[type[Exception], ...]]]"
"""Returns the program, and the exceptions whose message is all that the user has to know."""


def enter(name: str, version: str, load: Load) -> int:
    """Carry out the command line of this process and return the exit code."""
    _prepare_streams()
    try:
        code = _answered(name, version, load)
        sys.stdout.flush()
    except KeyboardInterrupt:  # the user knows
        return INTERRUPTED
    except BrokenPipeError:  # the reader, `head` perhaps, has seen enough; keep Python's own flush quiet too
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:  # the system's doing, not ours: a full disk behind standard output, say
        where = f"{error.filename}: " if error.filename else "cannot read or write: "
        return _told(name, error, f"{where}{error.strerror or error}")
    except Exception as error:  # the last line of defence: a defect of ours is told in one line
        told = f"internal error: {type(error).__name__}: {error}\nThis is a defect of {name}, not of your playbook."
        return _told(name, error, f"{told} Please report it; {_debug(name)}=1 shows the traceback.")
    return code


def _answered(name: str, version: str, load: Load) -> int:
    words = sys.argv[1:]
    if words == ["--version"]:  # scripts ask for it often
        print(f"{name} {version}")
        return 0
    program, refusals = load()
    from noetlvm.command_line.plain import answer

    try:
        return answer(program, words)
    except refusals as problem:
        if str(problem):
            print(f"{name}: {problem}", file=sys.stderr)
        return CANNOT_RUN


def _prepare_streams() -> None:
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller: else a print would go astray, and a file would get its number
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: PTH123, SIM115 - for good
        elif name != "stdin":  # what the terminal cannot show is escaped, not an exception
            stream.reconfigure(errors="backslashreplace")


def _told(name: str, error: Exception, message: str) -> int:
    if os.environ.get(_debug(name)):
        raise error
    print(f"{name}: {message}", file=sys.stderr)
    return CANNOT_RUN


def _debug(name: str) -> str:
    return f"{name.upper()}_DEBUG"
