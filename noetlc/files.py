"""Files of the command line: bounded reads, atomic writes, `-` for the standard streams, patterns of names."""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from itertools import groupby

from noetlvm.atomic_file import write_atomically
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


_TOKEN = re.compile(r"(?P<star>\*+)|(?P<one>\?)|(?P<set>\[[!^]?\]?[^\]]*\])|(?P<other>.)", re.DOTALL)
_ANY_DEPTH = "**"
_END = r"(?=/|\Z)"
"""The end of a name: a pattern matches what is below it too."""


def matches(pattern: str, path: str) -> bool:
    """Match `path`, which is relative to the pattern's folder and has forward slashes, as git does with `.gitignore`.

    No pattern takes exponential time: between two wildcards the first occurrence of a text is the only one tried.
    """
    return _compiled(pattern).match(path) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    names = pattern.strip("/").split("/")
    if "/" not in pattern.rstrip("/"):
        names.insert(0, _ANY_DEPTH)
    try:
        return re.compile(_translated(names), re.DOTALL)
    except re.error:  # brackets that are not a set, such as `[z-a]`: then they are part of a name
        return re.compile(rf"(?:.*/)?{re.escape(pattern)}\Z")


def _translated(names: list[str]) -> str:
    """Return an expression of names and `**`."""
    found, at_any_depth = "", False
    for is_depth, group in groupby(names, _ANY_DEPTH.__eq__):
        at_any_depth = is_depth
        if not is_depth:
            text = "/".join(map(_name, group))
            found += ("/" if found else "") + (rf"(?>(?:[^/]+/)*?{text})" if _ANY_DEPTH in names[:1] or found else text)
    return found + (("/." if found else ".") if at_any_depth else "")


def _name(pattern: str) -> str:
    """Return an expression of a name without slashes."""
    tokens = list(_TOKEN.finditer(pattern))
    parts = ["".join(map(_character, part)) for is_star, part in groupby(tokens, _is_star) if not is_star]
    if not any(map(_is_star, tokens)):
        return "".join(parts) + _END
    first = "" if _is_star(tokens[0]) else parts.pop(0)
    last = "" if _is_star(tokens[-1]) else parts.pop()
    return first + "".join(rf"(?>[^/]*?{part})" for part in parts) + rf"[^/]*{last}" + _END


def _is_star(token: re.Match[str]) -> bool:
    return token.lastgroup == "star"


def _character(token: re.Match[str]) -> str:
    text = token[0]
    if token.lastgroup == "one":
        return "[^/]"
    if token.lastgroup == "set":
        inner = text[1:-1].replace("\\", r"\\").replace("[", r"\[")
        return f"(?!/)[^{inner[1:]}]" if inner[:1] in ("!", "^") else f"(?!/)[{inner}]"
    return re.escape(text)
