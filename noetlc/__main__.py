"""Where `noetlc` starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noetlc import __version__
from noetlvm.command_line.entrance import enter
from noetlvm.command_line.process import begin, leave

if TYPE_CHECKING:
    from noetlvm.command_line.declared import Program


def command() -> None:
    """Be the process that runs the command line."""
    begin()
    leave(main())


def main() -> int:
    """Run the command line and return the exit code."""
    return enter("noetlc", __version__, _load)


def _load() -> tuple[Program, tuple[type[Exception], ...]]:
    from noetlc.cli.app import PROGRAM
    from noetlc.lint.cannot_run import CannotRun

    return PROGRAM, (CannotRun,)


if __name__ == "__main__":
    command()
