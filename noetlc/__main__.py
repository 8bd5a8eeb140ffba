"""Where `noetlc` starts: answers `--version` at once, and lets no traceback reach the user."""

from __future__ import annotations

import os
import sys

from noetlvm.command_line.process import begin, leave

CANNOT_RUN = 2
INTERRUPTED = 130


def command() -> None:
    """Be the process that runs the command line."""
    begin()
    leave(main())


def main() -> int:
    """Run the command line and return the exit code."""
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        from noetlc import __version__

        print(f"noetlc {__version__}")
        return 0
    _prepare_streams()
    return _guarded(arguments)


def _prepare_streams() -> None:
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller: else a print would go astray, and a file would get its number
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: PTH123, SIM115 - for good
        elif name != "stdin":  # what the terminal cannot show is escaped, not an exception
            stream.reconfigure(errors="backslashreplace")


def _guarded(arguments: list[str]) -> int:
    from noetlc.cli.app import PROGRAM
    from noetlc.lint.cannot_run import CannotRun
    from noetlvm.command_line.plain import answer

    try:
        code = answer(PROGRAM, arguments)
        sys.stdout.flush()
    except CannotRun as problem:
        print(f"noetlc: {problem}", file=sys.stderr)
        return CANNOT_RUN
    except KeyboardInterrupt:  # the user knows
        return INTERRUPTED
    except BrokenPipeError:  # the reader, `head` perhaps, has seen enough; keep Python's own flush quiet too
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:  # the system's doing, not ours: a full disk behind standard output, say
        return _system_error(error)
    except Exception as error:  # the last line of defence: a defect of ours is told in one line
        return _internal_error(error)
    return code


def _system_error(error: OSError) -> int:
    if os.environ.get("NOETLC_DEBUG"):
        raise error
    where = f"{error.filename}: " if error.filename else "cannot read or write: "
    print(f"noetlc: {where}{error.strerror or error}", file=sys.stderr)
    return CANNOT_RUN


def _internal_error(error: Exception) -> int:
    if os.environ.get("NOETLC_DEBUG"):
        raise error
    kind = f"{type(error).__name__}: {error}"
    print(f"noetlc: internal error: {kind}\nThis is a defect of noetlc, not of your playbook.", file=sys.stderr)
    print("Please report it, with the playbook if you can; NOETLC_DEBUG=1 shows the traceback.", file=sys.stderr)
    return CANNOT_RUN


if __name__ == "__main__":
    command()
