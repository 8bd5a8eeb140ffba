"""Data of executions as text: JSON for programs, and one short line for people."""

from __future__ import annotations

from typing import Any

from noetlvm.data.json_text import as_json
from noetlvm.data.references import Reference


def shortened(value: Any, most: int = 100) -> str:
    """Return JSON on one line, cut where it becomes long."""
    if isinstance(value, Reference):
        return f"<{value.hint}, {value.size:,} bytes, stored as {value.key[:12]}>"
    text = visible(as_json(value))
    return text if len(text) <= most else f"{text[: most - 1]}…"


def duration(seconds: float) -> str:
    """Return a time span for people."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def counted(number: int, thing: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def visible(text: str) -> str:
    """Return a text that others wrote so that it cannot command a terminal: what nobody can see is escaped."""
    return text.translate(_INVISIBLE)


_INVISIBLE = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"} | {
    code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
}
"""Control characters, and those that turn the direction of writing."""
