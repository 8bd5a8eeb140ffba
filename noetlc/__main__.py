"""Where `noetlc` starts: answers the two commonest calls without typer, and lets no traceback reach the user."""

from __future__ import annotations

import os
import sys
from typing import Any

from noetlvm.process import begin, leave

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
    for stream in (sys.stdout, sys.stderr):  # what the terminal cannot show is escaped, not an exception
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    return _guarded(arguments)


def _guarded(arguments: list[str]) -> int:
    from noetlc.lint.cannot_run import CannotRun

    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
    except CannotRun as problem:
        print(f"noetlc: {problem}", file=sys.stderr)
        return CANNOT_RUN
    except KeyboardInterrupt:  # the user knows
        return INTERRUPTED
    except BrokenPipeError:  # the reader, `head` perhaps, has seen enough; keep Python's own flush quiet too
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # the last line of defence: a defect of ours is told in one line
        return _internal_error(error)
    return code


def _dispatch(arguments: list[str]) -> int:
    if _is_plain_lint(arguments):
        from noetlc.lint.options import Options
        from noetlc.lint.run import lint

        switches = dict(_SWITCHES[word] for word in arguments[1:] if word in _SWITCHES)
        return lint(Options(paths=tuple(word for word in arguments[1:] if word not in _SWITCHES), **switches))
    from noetlc.cli.app import build_app

    code = build_app()(arguments, prog_name="noetlc")
    return int(code or 0)


_SWITCHES: dict[str, tuple[str, Any]] = {
    "--no-cache": ("cache", False),
    "--fix": ("fix", True),
    "--diff": ("diff", True),
    "--quiet": ("quiet", True),
}
"""Options without a value, and what they set."""


def _is_plain_lint(arguments: list[str]) -> bool:
    """`noetlc lint PATHS` with switches needs no option parser, and importing one takes longer than linting."""
    return arguments[:1] == ["lint"] and all(
        word in _SWITCHES or word == "-" or not word.startswith("-") for word in arguments[1:]
    )


def _internal_error(error: Exception) -> int:
    if os.environ.get("NOETLC_DEBUG"):
        raise error
    kind = f"{type(error).__name__}: {error}"
    print(f"noetlc: internal error: {kind}\nThis is a defect of noetlc, not of your playbook.", file=sys.stderr)
    print("Please report it, with the playbook if you can; NOETLC_DEBUG=1 shows the traceback.", file=sys.stderr)
    return CANNOT_RUN


if __name__ == "__main__":
    command()
