"""The state of an execution: what it is before the first event, and that its data is a copy which has everything."""

from __future__ import annotations

from typing import Any

from noetlvm.data.encoding import decode, encode
from noetlvm.data.event import Event
from noetlvm.machine.fold import apply
from noetlvm.machine.state import LAYOUT, Attempt, FrameState, LoopRun, State, Thread, View
from tests.noetlvm.machine.control.drive import Drive, Hand

TWO = """
- step: start
  next: { spec: { mode: inclusive }, arcs: [{ step: a }, { step: b }] }
- { step: a, tool: { kind: noop } }
- { step: b, tool: { kind: noop }, loop: { in: [1], iterator: i } }
"""


def test_nothing_has_happened_before_the_first_event() -> None:
    empty = ("execution_id", "bundle", "path", "parent", "trace", "returns", "retried_from")
    zero = ("depth", "seq", "now", "since", "result_place", "failure_count", "last_token", "last_run")
    assert State().to_data() == {
        "layout": LAYOUT,
        "status": "new",
        **dict.fromkeys(empty, ""),
        **dict.fromkeys(zero, 0),
        **dict.fromkeys(("paused", "final_given"), False),
        **dict.fromkeys(("result", "last_boundary"), None),
        **{name: [] for name in ("failures", "tokens", "runs", "unstarted", "complete", "ended")},
        **{name: {} for name in ("workload", "writers")},
        "counts": [0, 0, 0],
        "view": [0, 1],
        "mappings": [{}, {}],
    }
    assert FrameState().to_data() == [0, None, {}, [], 0, "", 0, None, False, {}, 0, None]


def test_a_thread_and_a_loop_begin_with_nothing() -> None:
    thread = Thread(View({}, {}), 1, 0.0)
    assert (thread.started, thread.reported, thread.child, thread.answer) == (False, Attempt(0, 0, True), None, None)
    header: dict[str, Any] = {"items": [1], "total": 1, "width": 1, "parallel": True, "leaf": True, "best_effort": True}
    loop = LoopRun(header)
    assert (loop.next, loop.ended, loop.ok, loop.failed, loop.bytes, loop.results) == (0, 0, 0, 0, 0, [None])


def test_later_events_do_not_change_data_that_was_made_before() -> None:
    state = State()
    for event in Drive(TWO, control=Hand).start().events:
        apply(state, event, 0.0)
    data = state.to_data()
    restored = State.from_data(data)
    before = encode(data)
    error = {"kind": "boom", "message": "no"}
    for changed in (state, restored):
        apply(changed, Event("step.failed", {"error": error}, 2), 0.0)
        apply(changed, Event("next.evaluated", {"arcs": []}, 2), 0.0)
        assert (changed.failure_count, changed.counts[1]) == (1, 1)
        assert encode(data) == before


def test_a_state_that_is_read_back_has_everything_that_is_pending() -> None:
    state = State()
    events = Drive(TWO, control=Hand).start().events
    seen: set[str] = set()
    for event in events:
        apply(state, event, 0.0)
        restored = State.from_data(decode(encode(state.to_data())))
        assert restored.untested == dict.fromkeys(state.tokens)
        for name in ("unstarted", "complete", "ended", "tokens"):
            assert getattr(restored, name) == getattr(state, name)
            seen |= {name} if getattr(state, name) else set()
    assert seen == {"unstarted", "ended", "tokens"}
