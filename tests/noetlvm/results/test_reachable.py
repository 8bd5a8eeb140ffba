"""Which results garbage collection must not remove."""

from __future__ import annotations

from noetlvm.machine.payload import Offload
from noetlvm.results.interface import MemoryResults, reachable
from noetlvm.store.memory import MemoryStore
from tests.noetlvm.store.records import append, event, execution


def test_results_of_events_and_of_those_results_are_reachable_and_others_are_garbage() -> None:
    offload = Offload(limit=100)
    inner = offload.shrink("inner" * 1_000)
    outer = offload.shrink({"rows": [inner, (inner, 1)], "more": "text" * 1_000})
    direct = offload.shrink(["direct"] * 1_000)
    orphan = offload.shrink("orphan" * 1_000)
    results, store = MemoryResults(), MemoryStore()
    results.put(offload.take_blobs())
    store.write([append(execution("x"), 0, [event(1, result=direct), event(2, ctx={"deep": [{"a": outer}]})])])
    store.write([append(execution("y"), 0, [event(1, result=1)])])
    assert orphan.key in set(results.keys())
    needed = reachable(store.references(), results)
    assert needed == {inner.key, outer.key, direct.key}
    assert results.collect_garbage(needed).results == 1


def test_a_missing_result_is_still_needed() -> None:
    offload = Offload(limit=100)
    lost = offload.shrink("lost" * 1_000)
    store = MemoryStore()
    store.write([append(execution("x"), 0, [event(1, result=lost)])])
    assert reachable(store.references(), MemoryResults()) == {lost.key}
