"""A loop of a hundred thousand items stays small in memory, while it runs and in its state."""

from __future__ import annotations

import tracemalloc

from noetlvm.data.encoding import decode, encode
from noetlvm.machine.state import State
from tests.noetlvm.machine.control.drive import Drive, Hand, loaded, ok

LOOP = """
- step: start
  loop: { in: "{{ workload.items }}", iterator: n, spec: { mode: parallel } }
  tool: { kind: noop }
"""
ITEMS = 100_000
WATCHED = 10_000
MB = 1024 * 1024


def test_a_hundred_thousand_items_take_less_than_64_mb() -> None:
    net = loaded(LOOP)
    payload = {"items": list(range(ITEMS))}
    tracemalloc.start()
    try:
        drive = Drive(net, ok(), control=Hand).start(payload)
        items(drive, 1_000)
        before = tracemalloc.get_traced_memory()[0]
        items(drive, WATCHED)
        growth = tracemalloc.get_traced_memory()[0] - before
        restored = State.from_data(decode(encode(drive.state.to_data())))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert restored.runs[1].loops[""].ok == WATCHED + 1_000
    assert growth < MB
    assert peak < 64 * MB


def items(drive: Drive, count: int) -> None:
    for _ in range(count):
        drive.perform(drive.ready.pop())
        drive.events.clear()  # they are the store's
        assert len(drive.state.runs[1].threads) == 32


def test_a_loop_leaves_nothing_behind() -> None:
    drive = Drive(loaded(LOOP), ok(), control=Hand).run({"items": list(range(2_000))})
    assert drive.state.status == "success"
    assert not any((drive.state.runs, drive.state.untested, drive.state.complete, drive.state.unstarted))
    assert not any((drive.state.touched, drive.state.children))
