"""The port of result stores: bytes under the SHA-256 of those bytes.

A result is put before the event that refers to it is written, so an event never refers to nothing; a crash in between
leaves an orphan. Garbage collection removes orphans that are old enough: a younger one may be about to be referred to.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Iterator
from hashlib import sha256
from math import inf
from threading import Lock
from typing import NamedTuple, Protocol, TypeAlias

from noetlvm.data.encoding import references_in


class ResultMissingError(LookupError):
    """There is no result under this key."""


class ResultDamagedError(ValueError):
    """The bytes stored under a key are not those that were put there."""


class Collected(NamedTuple):
    """What a garbage collection removed."""

    results: int
    bytes: int


class ResultStore(Protocol):
    """Puts and gets results by key: the hexadecimal SHA-256 of their bytes.

    Any thread may call it. A store that cannot be reached raises StoreError.
    """

    def put(self, blobs: Iterable[tuple[str, bytes]]) -> None:
        """Store results, durably. An existing one is not written again, but counts as new for garbage collection."""

    def get(self, key: str) -> bytes:
        """Return a result's bytes. Raises ResultMissingError, or ResultDamagedError if their hash differs."""

    def keys(self) -> Iterator[str]:
        """Return the keys of all results, in no order."""

    def collect_garbage(self, referenced: Collection[str], before: float = inf) -> Collected:
        """Remove results that were last put before a time, except the referenced ones.

        Without a time the caller must be the only writer.
        """


_KEY = re.compile(r"[0-9a-f]{64}")


def is_key(text: str) -> bool:
    """Return whether a text can be the key of a result."""
    return bool(_KEY.fullmatch(text))


def require_key(key: str) -> str:
    """Return a key. Raises ResultMissingError for a text that cannot be one."""
    if not is_key(key):
        raise ResultMissingError(f"{key!r} is not the key of a result: a key has 64 hexadecimal digits")
    return key


def checked(key: str, data: bytes, where: str) -> bytes:
    """Return the bytes of a result. Raises ResultDamagedError if their hash is not the key."""
    if sha256(data).hexdigest() != key:
        raise ResultDamagedError(f"{where} is damaged: its checksum differs")
    return data


Problem: TypeAlias = ResultMissingError | ResultDamagedError


def walk(direct: Iterable[str], results: ResultStore) -> Iterator[tuple[str, Problem | None]]:
    """Yield keys and those that their results refer to, at any depth, each once, and why a result cannot be read."""
    seen: set[str] = set()
    waiting = list(direct)
    while waiting:
        key = waiting.pop()
        if key in seen:
            continue
        seen.add(key)
        try:
            waiting += references_in(results.get(key))
        except (ResultMissingError, ResultDamagedError) as problem:
            yield key, problem
        else:
            yield key, None


def reachable(direct: Iterable[str], results: ResultStore) -> set[str]:
    """Return the keys that garbage collection must not remove.

    A missing result refers to nothing. A damaged one stops the search, because what it refers to is unknown.
    """
    found: set[str] = set()
    for key, problem in walk(direct, results):
        if isinstance(problem, ResultDamagedError):
            raise problem
        found.add(key)
    return found


class MemoryResults:
    """Results in a dictionary, for the threads of one process: for tests, and runs that need not be resumed."""

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
