"""The result stores that a server offers, of which a playbook may choose one (`executor.spec.result.store`).

Together they are a result store too: whatever refers to a result names only its key, so reading tries each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from math import inf
from typing import Any

from noetlvm.language.placement import StoreName, wanted_store
from noetlvm.results.interface import Collected, ResultMissingError, ResultStore


class UnofferedStoreError(LookupError):
    """A playbook names a result store that the server does not offer. The message lists those that it does."""


class OfferedResults:
    """Result stores by name; the first is for playbooks that name none."""

    def __init__(self, stores: Mapping[StoreName, ResultStore]) -> None:
        self._stores = dict(stores)

    def of(self, executor: Mapping[str, Any]) -> ResultStore:
        """Return the store that a playbook's `executor` names. Raises UnofferedStoreError."""
        wanted = wanted_store(executor)
        for name, store in self._stores.items():
            if wanted.kind in ("", name.kind) and wanted.bucket in ("", name.bucket):
                return store
        offered = ", ".join(map(str, self._stores))
        raise UnofferedStoreError(
            f"`executor.spec.result.store` names {wanted}, and this server offers: {offered}; "
            "choose one of these, or start the server with --results"
        )

    def put(self, blobs: Iterable[tuple[str, bytes]]) -> None:
        next(iter(self._stores.values())).put(blobs)

    def get(self, key: str) -> bytes:
        missing = ResultMissingError(f"no store has the result {key}")
        for store in self._stores.values():
            try:
                return store.get(key)
            except ResultMissingError as error:
                missing = error
        raise missing

    def keys(self) -> Iterator[str]:
        return iter(set(chain.from_iterable(store.keys() for store in self._stores.values())))

    def collect_garbage(self, referenced: Collection[str], before: float = inf) -> Collected:
        removed = [store.collect_garbage(referenced, before) for store in self._stores.values()]
        return Collected(sum(one.results for one in removed), sum(one.bytes for one in removed))


def store_for(results: ResultStore, executor: Mapping[str, Any]) -> ResultStore:
    """Return where the results of a playbook go. Raises UnofferedStoreError.

    A process with a single store, such as `noetlvm run`, puts all of them there.
    """
    return results.of(executor) if isinstance(results, OfferedResults) else results
