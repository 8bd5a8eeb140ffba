"""Every limit that the front end enforces while it reads, in one place. Each has a test at it and one past it."""

from __future__ import annotations

from noetlvm.record import Record

EXPRESSION_CHARS_MAX = 65_536
"""Characters in one scalar that has template marks; longer ones are refused unread."""

EXPRESSION_TOKENS_MAX = 4_096
"""Names, numbers, operators and brackets between one pair of template marks."""

EXPRESSION_DEPTH_MAX = 64
"""Nesting of brackets, operators and blocks inside one template."""


class ReadLimits(Record, cached=True):
    """What one YAML document may cost; checked while reading, before memory is spent."""

    document_bytes_max: int = 8 * 1024 * 1024
    depth_max: int = 64
    nodes_max: int = 1_000_000
    alias_nodes_max: int = 100_000
    """Nodes that aliases and merge keys may add by repeating what an anchor holds."""


DEFAULT_LIMITS = ReadLimits()
