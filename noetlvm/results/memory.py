"""Results in memory: for tests, and for runs that need not be resumed."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator
from math import inf
from threading import Lock

from noetlvm.results.interface import Collected, ResultMissingError, checked, require_key


class MemoryResults:
    """Results in a dictionary, for the threads of one process."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self._put_at: dict[str, float] = {}
        self._lock = Lock()

    def put(self, blobs: Iterable[tuple[str, bytes]]) -> None:
        now = time.time()
        for key, data in blobs:
            with self._lock:
                self.blobs[require_key(key)] = data
                self._put_at[key] = now

    def get(self, key: str) -> bytes:
        data = self.blobs.get(key)
        if data is None:
            raise ResultMissingError(f"there is no result {key}")
        return checked(key, data, f"the result {key}")

    def keys(self) -> Iterator[str]:
        return iter(list(self.blobs))

    def collect_garbage(self, referenced: Collection[str], before: float = inf) -> Collected:
        with self._lock:
            orphans = [key for key in self.blobs if key not in referenced and self._put_at[key] < before]
            for key in orphans:
                del self._put_at[key]
            return Collected(len(orphans), sum(len(self.blobs.pop(key)) for key in orphans))
