"""Files of the command line: bounded reads, atomic writes, `-` for the standard streams."""

# Paths stay text here: as the user wrote them, and cheap when there are thousands.
# ruff: noqa: PTH123
from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

from noetlvm.command_line.process import CommandError

STDIO = "-"
"""Standard input or output, where a command takes a file."""
STDIN_NAME = "<stdin>"
"""The path of standard input in reports."""


def read_bounded(path: str, limit: int) -> bytes:
    """Read a file, at most one byte beyond the limit: enough to see that it is too large."""
    if path == STDIO:
        return sys.stdin.buffer.read(limit + 1)
    with open(path, "rb") as file:
        return file.read(limit + 1)


def read_file(path: str, limit: int) -> bytes:
    """Read a file or standard input; a file that cannot be read stops the command."""
    try:
        return read_bounded(path, limit)
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror}") from None


def write_file(path: str | None, data: bytes) -> None:
    """Write a file, or to standard output for None and `-`; what cannot be written stops the command."""
    if path is None or path == STDIO:
        sys.stdout.buffer.write(data)
        return
    try:
        write_atomically(path, data)
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}") from None


def write_atomically(path: str, data: bytes) -> None:
    """Replace the content of a file or of a link's target and keep its permissions. A crash never leaves half of it."""
    import tempfile  # only commands that write pay for it

    target = Path(path).resolve()
    mode = _mode(target)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".noetlc-")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        temporary.chmod(mode)
        temporary.replace(target)
    except BaseException:  # an interrupt too must leave no temporary file
        temporary.unlink(missing_ok=True)
        raise


def _mode(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:  # a new file gets the mode that the umask allows
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
