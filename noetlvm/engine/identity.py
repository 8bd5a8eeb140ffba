"""Identifiers: UUIDs that sort by time (version 7) for what is new, and ones that follow from a key for children."""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import sha256

NewIds = Callable[[float, int], list[str]]
"""Makes so many identifiers for things of that time."""

_RANDOM_BYTES = 10


def new_ids(now: float, count: int) -> list[str]:
    """Return identifiers whose order within a millisecond is by chance."""
    time = f"{int(now * 1000):012x}"
    head = f"{time[:8]}-{time[8:]}-7"
    noise = os.urandom(_RANDOM_BYTES * count).hex()
    width = 2 * _RANDOM_BYTES
    return [_uuid(head, noise[at : at + width]) for at in range(0, width * count, width)]


def child_id(key: str) -> str:
    """Return the identifier of the child execution that a task run asks for: the same whenever it is asked for."""
    digest = sha256(key.encode()).hexdigest()
    return _uuid(f"{digest[:8]}-{digest[8:12]}-8", digest[12:])


def _uuid(head: str, noise: str) -> str:
    """Put together a UUID of its first digits, version included, and random ones; two bits tell the variant."""
    return f"{head}{noise[:3]}-{_VARIANT[noise[3]]}{noise[4:7]}-{noise[7:19]}"


_VARIANT = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}
