"""The command `noetlvm`: answers `--version` at once, because scripts ask for it often, and lets no traceback out."""

from __future__ import annotations

import os
import sys

from noetlvm import __version__
from noetlvm.command_line.process import begin, leave


def command() -> None:
    """Be the process that runs the command line."""
    begin()
    leave(main())


def main() -> int:
    """Run the command line and return the exit code."""
    if sys.argv[1:] == ["--version"]:
        print(f"noetlvm {__version__}")
        return 0
    _prepare_streams()
    return _guarded()


def _prepare_streams() -> None:
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller: else a print would go astray, and a file would get its number
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: PTH123, SIM115 - for good
        elif name != "stdin":  # what the terminal cannot show is escaped, not an exception
            stream.reconfigure(errors="backslashreplace")


def _guarded() -> int:
    from noetlvm.cli.app import PROGRAM
    from noetlvm.cli.refused import INTERRUPTED, REFUSED, Refused
    from noetlvm.command_line.plain import answer
    from noetlvm.store.interface import StoreError

    try:
        code = answer(PROGRAM, sys.argv[1:])
        sys.stdout.flush()
    except (Refused, StoreError) as problem:
        if str(problem):
            print(f"noetlvm: {problem}", file=sys.stderr)
        return REFUSED
    except KeyboardInterrupt:  # the user knows
        return INTERRUPTED
    except BrokenPipeError:  # the reader, `head` perhaps, has seen enough; keep Python's own flush quiet too
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:  # the system's doing, not ours: a full disk behind standard output, say
        return _system_error(error, REFUSED)
    except Exception as error:  # the last line of defence: a defect of ours is told in one line
        return _internal_error(error, REFUSED)
    return code


def _system_error(error: OSError, code: int) -> int:
    if os.environ.get("NOETLVM_DEBUG"):
        raise error
    where = f"{error.filename}: " if error.filename else "cannot read or write: "
    print(f"noetlvm: {where}{error.strerror or error}", file=sys.stderr)
    return code


def _internal_error(error: Exception, code: int) -> int:
    if os.environ.get("NOETLVM_DEBUG"):
        raise error
    print(f"noetlvm: internal error: {type(error).__name__}: {error}", file=sys.stderr)
    print("This is a defect of noetlvm. Please report it; NOETLVM_DEBUG=1 shows the traceback.", file=sys.stderr)
    return code


if __name__ == "__main__":
    command()
