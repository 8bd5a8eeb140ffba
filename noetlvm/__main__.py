"""The command `noetlvm`: answers `--version` at once, because scripts ask for it often, and hands on the rest."""

from __future__ import annotations

import sys

from noetlvm import __version__


def main() -> None:
    """Run the command line."""
    if sys.argv[1:] == ["--version"]:
        print(f"noetlvm {__version__}")
        return
    from noetlvm.cli.app import app

    app(prog_name="noetlvm")


if __name__ == "__main__":
    main()
