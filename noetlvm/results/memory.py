"""Results in memory: for tests, and for runs that nobody needs to resume."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from hashlib import sha256

from noetlvm.results.interface import Collected, ResultDamaged, ResultMissing


class MemoryResults:
    """Results in a dictionary."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}

    def put(self, blobs: Iterable[tuple[str, bytes]]) -> None:
        self.blobs.update(blobs)

    def get(self, key: str) -> bytes:
        if key not in self.blobs:
            raise ResultMissing(f"there is no result {key}")
        if sha256(self.blobs[key]).hexdigest() != key:
            raise ResultDamaged(f"the result {key} is not what was put there: its checksum differs")
        return self.blobs[key]

    def keys(self) -> Iterator[str]:
        return iter(list(self.blobs))

    def collect_garbage(self, referenced: Collection[str]) -> Collected:
        orphans = [key for key in self.blobs if key not in referenced]
        return Collected(len(orphans), sum(len(self.blobs.pop(key)) for key in orphans))
