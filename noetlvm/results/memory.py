"""Results in memory: for tests, and for runs that need not be resumed."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator
from math import inf

from noetlvm.results.interface import Collected, ResultMissingError, checked


class MemoryResults:
    """Results in a dictionary."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self._put_at: dict[str, float] = {}

    def put(self, blobs: Iterable[tuple[str, bytes]]) -> None:
        for key, data in blobs:
            self.blobs[key] = data
            self._put_at[key] = time.time()

    def get(self, key: str) -> bytes:
        if key not in self.blobs:
            raise ResultMissingError(f"there is no result {key}")
        return checked(key, self.blobs[key], f"the result {key}")

    def keys(self) -> Iterator[str]:
        return iter(list(self.blobs))

    def collect_garbage(self, referenced: Collection[str], before: float = inf) -> Collected:
        orphans = [key for key in self.blobs if key not in referenced and self._put_at[key] < before]
        return Collected(len(orphans), sum(len(self.blobs.pop(key)) for key in orphans))
