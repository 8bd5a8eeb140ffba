"""Placement of a playbook's work: worker pools, and stores of large results.

`executor.spec.pool`, and `pool` in the `spec` of a step or a loop, name the workers that run a step; the innermost
wins. `executor.spec.result.store` names the store of a playbook's large results, among those that its server offers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

POOL_CHARS_MAX = 100
"""Characters in the name of a worker pool."""

DEFAULT_POOL = "default"
"""Pool of steps that name none."""

RESULT_STORES: Mapping[str, tuple[str, ...]] = {"files": (), "postgres": (), "nats_object": ("bucket",)}
"""Kinds of stores for large results, and the settings of each."""


class StoreName(NamedTuple):
    """What a playbook names a store of results by; empty where it leaves the choice to the server."""

    kind: str
    bucket: str = ""

    def __str__(self) -> str:
        return f"{self.kind} (bucket {self.bucket})" if self.bucket else self.kind


def executor_pool(executor: Mapping[str, Any]) -> str:
    """Return the pool of a playbook's steps that name none."""
    pool = _setting(executor, "spec", "pool")
    return pool if isinstance(pool, str) and pool else DEFAULT_POOL


def wanted_store(executor: Mapping[str, Any]) -> StoreName:
    """Return the store that a playbook names for its large results."""
    kind, bucket = (_setting(executor, "spec", "result", "store", key) for key in ("kind", "bucket"))
    return StoreName(str(kind or ""), str(bucket or ""))


def _setting(settings: Any, *keys: str) -> Any:
    for key in keys:
        settings = settings.get(key) if isinstance(settings, Mapping) else None
    return settings
