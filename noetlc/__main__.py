"""Entry point of `noetlc`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noetlc import __version__
from noetlvm.command_line.process import begin, leave, run_program

if TYPE_CHECKING:
    from noetlvm.command_line.declared import CommandProgram


def command() -> None:
    """Run the command line and end the process."""
    begin()
    leave(main())


def main() -> int:
    """Run the command line and return the exit code."""
    return run_program("noetlc", __version__, _load)


def _load() -> CommandProgram:
    from noetlc.cli.app import PROGRAM

    return PROGRAM


if __name__ == "__main__":
    command()
