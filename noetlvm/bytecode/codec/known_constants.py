"""The constants that every bundle knows: words of the language, and what the tool kinds' settings usually are.

A bundle names one of them by its number, in two bytes, where it would spell it out otherwise. The table is a part of
the format and never changes within a major version. So it is a copy, and not a view, of what the language and the tools
say today: a default that changes is from then on spelled out, and a bundle keeps the settings it was compiled with.
"""

from __future__ import annotations

from typing import Final

MARK: Final = 0xC1
"""The byte before such a number. In msgpack it begins nothing."""

_Known = str | bool | int | dict[str, "_Known"]

# fmt: off
_WORDS: Final = (
    # Steps, labels and kinds of tasks
    "start", "end", "task_1", "task_2", "task_3",
    "noop", "http", "postgres", "duckdb", "python", "shell", "secrets", "playbook",
    # What outcomes and events have, and what they say
    "name", "status", "result", "error", "kind", "retryable", "message", "details", "meta", "attempt",
    "headers", "code",
    "step.done", "step.failed", "loop.done", "loop", "total", "ok", "failed", "index", "parent", "item", "key", "value",
    # Inputs of tools, and fields that answers often have
    "url", "method", "GET", "POST", "params", "json", "form", "body", "auth", "command", "args", "env", "path",
    "workload", "secret", "id", "data", "items", "rows", "count", "page",
    # Filters, tests and methods
    "default", "length", "list", "int", "float", "string", "join", "map", "select", "selectattr", "sum", "first",
    "last", "upper", "lower", "tojson", "defined", "none", "get", "range",
)
# fmt: on
_SETTINGS: Final[tuple[_Known, ...]] = (
    {"timeout": {"connect": 10, "read": 60}, "follow_redirects": False, "verify_tls": True},
    {"timeout": 60},
    {"timeout": 300, "read_only": False},
    {"timeout": 300, "memory_mb": 512},
    {"timeout": 300},
    {"timeout": 30},
)


def _written(value: _Known) -> bytes:
    """Write a value as `writer` does, as far as the table needs it; reading a bundle should not load the writer."""
    if isinstance(value, dict):
        pairs = (part for pair in value.items() for part in pair)
        return bytes((0x80 + len(value),)) + b"".join(map(_written, pairs))
    if isinstance(value, str):
        return bytes((0xA0 + len(value),)) + value.encode()
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    return bytes((value,)) if value < 0x80 else b"\xcd" + value.to_bytes(2, "big")


KNOWN: Final = tuple(map(_written, (*_WORDS, *_SETTINGS)))
"""By number, as they would be spelled out."""
NUMBERS: Final = {written: number for number, written in enumerate(KNOWN)}
LONGEST: Final = max(map(len, KNOWN))
