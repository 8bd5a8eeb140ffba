"""Identifiers: UUIDs that sort by time (version 7) for what is new, and ones that follow from a key for children."""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import sha256

NewIds = Callable[[float, int], list[str]]
"""Makes so many identifiers for things of that time."""

_RANDOM_BYTES = 10
_NODE_DIGITS = 12


def new_ids(now: float, count: int) -> list[str]:
    """Return identifiers in their order, all of one random number and those after it.

    Only the last group of digits is counted up. It begins below half of what it holds, so there is room.
    """
    time = f"{int(now * 1000):012x}"
    noise = os.urandom(_RANDOM_BYTES).hex()
    first = _uuid(f"{time[:8]}-{time[8:]}-7", noise)
    head, node = first[:-_NODE_DIGITS], int(first[-_NODE_DIGITS:], 16) >> 1
    return [f"{head}{number:012x}" for number in range(node, node + count)]


def child_id(key: str) -> str:
    """Return the identifier of the child execution that a task run asks for: the same whenever it is asked for."""
    digest = sha256(key.encode()).hexdigest()
    return _uuid(f"{digest[:8]}-{digest[8:12]}-8", digest[12:])


def _uuid(head: str, noise: str) -> str:
    """Put together a UUID of its first digits, version included, and random ones; two bits tell the variant."""
    return f"{head}{noise[:3]}-{_VARIANT[noise[3]]}{noise[4:7]}-{noise[7:19]}"


_VARIANT = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}
