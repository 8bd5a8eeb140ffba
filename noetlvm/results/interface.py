"""What a result store promises, whichever it is.

A result is bytes under the SHA-256 of those bytes. It is put before the event that refers to it is committed, so an
event never refers to nothing; a crash in between leaves an orphan, which `collect_garbage` removes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple, Protocol


class ResultMissing(LookupError):  # noqa: N818 - it says what the result is
    """There is no result under this key."""


class ResultDamaged(ValueError):  # noqa: N818 - it says what the result is
    """What is stored under a key is not what was put there."""


class Collected(NamedTuple):
    """What a garbage collection removed."""

    results: int
    bytes: int


class ResultStore(Protocol):
    """Puts and gets results by key: the hexadecimal SHA-256 of their bytes."""

    def put(self, blobs: Iterable[tuple[str, bytes]]) -> None:
        """Store results; they are durable when it returns. What is there already is not written again."""

    def get(self, key: str) -> bytes:
        """Return a result's bytes. Raises ResultMissing, or ResultDamaged if their hash is another."""

    def keys(self) -> Iterator[str]:
        """Return the keys of all results, in no order."""

    def collect_garbage(self, referenced: Collection[str]) -> Collected:
        """Remove everything but these keys. Only the writer may ask, between `put` and `put`: it alone knows them."""
