"""Where `noetlvm` starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noetlvm import __version__
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
    return enter("noetlvm", __version__, _load)


def _load() -> tuple[Program, tuple[type[Exception], ...]]:
    from noetlvm.cli.app import PROGRAM
    from noetlvm.cli.refused import Refused
    from noetlvm.store.interface import StoreError

    return PROGRAM, (Refused, StoreError)


if __name__ == "__main__":
    command()
