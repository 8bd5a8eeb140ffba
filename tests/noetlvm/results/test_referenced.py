"""Which results events need."""

from __future__ import annotations

from noetlvm.machine.payload import Offload
from noetlvm.results.memory import MemoryResults
from noetlvm.results.referenced import referenced_keys
from noetlvm.store.memory import MemoryStore
from tests.noetlvm.store.records import event, execution


def test_results_are_needed_by_events_and_by_needed_results_and_others_are_garbage() -> None:
    offload = Offload(limit=100)
    inner = offload.shrink("inner" * 1_000)
    outer = offload.shrink({"rows": [inner, 1], "more": "text" * 1_000})
    direct = offload.shrink(["direct"] * 1_000)
    orphan = offload.shrink("orphan" * 1_000)
    results, store = MemoryResults(), MemoryStore()
    results.put(offload.take_blobs())
    store.append("x", 0, [event(1, result=direct), event(2, ctx={"deep": [{"a": outer}]})], execution("x"))
    store.append("y", 0, [event(1, result=1)], execution("y"))
    store.commit()
    assert orphan.key in set(results.keys())
    needed = referenced_keys(store, results)
    assert needed == {inner.key, outer.key, direct.key}
    assert results.collect_garbage(needed).results == 1


def test_a_missing_result_is_still_needed() -> None:
    offload = Offload(limit=100)
    lost = offload.shrink("lost" * 1_000)
    store = MemoryStore()
    store.append("x", 0, [event(1, result=lost)], execution("x"))
    store.commit()
    assert referenced_keys(store, MemoryResults()) == {lost.key}
