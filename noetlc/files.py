"""Files of the command line: bounded reads, atomic writes, `-` for the standard streams, patterns of names."""

from __future__ import annotations

import os
import re
import stat
import sys
from functools import lru_cache
from pathlib import Path

from noetlvm.command_line.process import CommandError

# Paths stay text here: as the user wrote them, and cheap when there are thousands.
# ruff: noqa: PTH123


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


_TOKEN = re.compile(r"(?P<deep>\*\*/?)|(?P<star>\*)|(?P<one>\?)|(?P<set>\[!?\]?[^\]]*\])|(?P<other>.)", re.DOTALL)


def matches(pattern: str, path: str) -> bool:
    """Match `path`, which is relative to the pattern's folder and has forward slashes."""
    return _compiled(pattern).match(path) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    anchored = "/" in pattern.rstrip("/")
    body = "".join(_translate(token) for token in _TOKEN.finditer(pattern.strip("/")))
    lead = "" if anchored else "(?:.*/)?"
    try:
        return re.compile(rf"{lead}{body}(?:/.*)?\Z", re.DOTALL)
    except re.error:  # brackets that are not a set, such as `[z-a]`: then they are part of a name
        return re.compile(rf"{lead}{re.escape(pattern)}\Z")


def _translate(token: re.Match[str]) -> str:
    text = token[0]
    match token.lastgroup:
        case "deep":
            return "(?:.*/)?" if text.endswith("/") else ".*"
        case "star":
            return "[^/]*"
        case "one":
            return "[^/]"
        case "set":
            inner = text[1:-1].replace("\\", r"\\").replace("[", r"\[")
            return f"[^{inner[1:]}]" if inner.startswith("!") else f"[{inner}]"
        case _:
            return re.escape(text)
