"""Identifiers: UUIDs that sort by time (version 7) for what is new, and ones that follow from a key for children."""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import sha256
from itertools import count, islice

NewIds = Callable[[float, int], list[str]]
"""Makes this many identifiers for things of that time."""

_RANDOM_BYTES = 10


def new_ids(now: float, wanted: int) -> list[str]:
    """Return identifiers that this process has not made before, in their order.

    The random part is drawn once and counted up (RFC 9562, 6.2): drawing it with each write costs more than
    making the identifiers.
    """
    time = f"{int(now * 1000):012x}"
    head = f"{time[:8]}-{time[8:]}-7{_OURS}"
    return [f"{head}{number:012x}" for number in islice(_NUMBERS, wanted)]


def child_id(key: str) -> str:
    """Return the identifier of the child execution of a key: always the same."""
    digest = sha256(key.encode()).hexdigest()
    return _uuid(f"{digest[:8]}-{digest[8:12]}-8", digest[12:])


def _uuid(head: str, noise: str) -> str:
    """Make a UUID of its first digits, version included, and random ones; two bits are the variant."""
    return f"{head}{noise[:3]}-{_VARIANT[noise[3]]}{noise[4:7]}-{noise[7:19]}"


_VARIANT = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}

_FIRST = _uuid("", os.urandom(_RANDOM_BYTES).hex())
_OURS = _FIRST[:-12]
_NUMBERS = count(int(_FIRST[-12:], 16) >> 1)
"""The last twelve digits. They begin in the lower half, so that no process counts to their end."""
