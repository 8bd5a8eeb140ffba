"""Results in a table of the PostgreSQL database that also holds the log."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from math import inf

from noetlvm.results.interface import Collected, ResultMissingError, checked, require_key
from noetlvm.store.postgres_database import PostgresDatabase

# In the order of their keys, so that two writers of the same results cannot deadlock.
_PUT = b"""INSERT INTO results (key, put_at, data)
    SELECT key, extract(epoch FROM clock_timestamp()), data FROM unnest(%b::text[], %b::bytea[]) AS r(key, data)
    ORDER BY key ON CONFLICT (key) DO UPDATE SET put_at = excluded.put_at RETURNING key"""
_COLLECT = b"""DELETE FROM results WHERE put_at < %s AND NOT (key = ANY(%s)) RETURNING length(data)"""


class PostgresResults:
    """Results in a database that is opened and closed by the caller."""

    def __init__(self, database: PostgresDatabase) -> None:
        self.database = database

    def put(self, blobs: Iterable[tuple[str, bytes]]) -> None:
        wanted = {require_key(key): data for key, data in blobs}
        if wanted:
            self.database.run(_PUT, (list(wanted), list(wanted.values())))

    def get(self, key: str) -> bytes:
        found = self.database.select(b"SELECT data FROM results WHERE key = %s", require_key(key))
        if not found:
            raise ResultMissingError(f"{self.database.name} has no result {key}")
        return checked(key, found[0][0], f"the result {key} in {self.database.name}")

    def keys(self) -> Iterator[str]:
        return (key for (key,) in self.database.select(b"SELECT key FROM results"))

    def collect_garbage(self, referenced: Collection[str], before: float = inf) -> Collected:
        sizes = [size for (size,) in self.database.run(_COLLECT, (before, list(referenced)))]
        return Collected(len(sizes), sum(sizes))
