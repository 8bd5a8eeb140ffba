"""Data of executions as text: JSON for programs, and one short line for people."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

from noetlvm.data.references import Reference


def as_json(value: Any, *, indent: int | None = None) -> str:
    """Return JSON; a stored result is shown as what refers to it (S46), a number that JSON has no word for as null."""
    try:
        return json.dumps(value, default=_described, ensure_ascii=False, indent=indent, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), default=_described, ensure_ascii=False, indent=indent)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        # As it is stored: looking must not load results that are references.
        return {key: _finite(item) for key, item in dict.items(value)}
    if isinstance(value, list | tuple):
        items = list.__iter__(value) if isinstance(value, list) else iter(value)
        return [_finite(item) for item in items]
    return value


def _described(value: Any) -> Any:
    return value.to_data() if isinstance(value, Reference) else str(value)


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
