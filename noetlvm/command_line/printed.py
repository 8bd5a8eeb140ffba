"""Text that a command prints: counts, times, and what others wrote, made safe for a terminal."""

from __future__ import annotations

import os
import re
from typing import TextIO

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Control characters, line separators, and characters that turn the direction of writing."""


def visible_line(text: str) -> str:
    r"""Escape control characters as `\u001b`, so that untrusted text cannot send escape sequences or begin a line."""
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def visible(text: str) -> str:
    """Do the same with a text of several lines, whose tabs and line feeds stay."""
    return _CONTROL.sub(lambda match: match[0] if match[0] in "\t\n" else visible_line(match[0]), text)


def counted(number: int, noun: str) -> str:
    """Return `1 file`, `2,000 files`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def cut(text: str, width: int) -> str:
    """Return a text of at most `width` characters."""
    return text if len(text) <= width else f"{text[: width - 1]}…"


def duration(seconds: float) -> str:
    """Return a time span: `0.42 s`, `3 min 20 s`, `2 h 5 min`."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def terminal_width(stream: TextIO) -> int | None:
    """Return the columns of the terminal that a stream leads to; None if it leads to none."""
    if not stream.isatty():
        return None
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except OSError:
        return None
