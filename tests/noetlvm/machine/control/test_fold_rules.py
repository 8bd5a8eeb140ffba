"""What single events change in the state, one rule of the fold at a time."""

from __future__ import annotations

from typing import Any

import pytest

from noetlvm.data.event import Event
from noetlvm.machine import fold
from noetlvm.machine.fold import apply, held_bytes
from noetlvm.machine.payload import rough_bytes
from noetlvm.machine.state import LoopRun, State
from tests.noetlvm.machine.control.drive import Drive, Hand, bad, ok, task_done
from tests.noetlvm.machine.control.test_children import DONE, PARENT, asking
from tests.noetlvm.machine.control.test_retry import retried

STEP = "- { step: start, tool: { kind: noop } }"
BESIDE = """
- step: start
  next: { spec: { mode: inclusive }, arcs: [{ step: a }, { step: b }] }
- { step: a, tool: { kind: noop } }
- { step: b, tool: { kind: noop } }
"""
ERROR = {"kind": "boom", "message": "no"}


def header(total: int = 3, **more: Any) -> dict[str, Any]:
    usual = {"items": [*range(total)], "total": total, "width": total, "parallel": True, "leaf": True}
    return usual | {"best_effort": False} | more


def folded(*events: Event, state: State | None = None) -> State:
    """Return the state of a running execution with a run of a loop, after some events."""
    if state is None:
        state = folded(
            Event("playbook.execution.requested", {"execution": "x", "bundle": "b", "path": "p"}),
            Event("workflow.started", {"workload": {}}),
            Event("token.enqueued", {"token": 1, "step": "start", "args": {}}),
            Event("step.scheduled", {"token": 1, "step": "start", "form": "loop"}, 1),
            state=State(),
        )
    for event in events:
        apply(state, event, 5.0)
    return state


def loop_started(path: str = "", **more: Any) -> Event:
    return Event("loop.started", header(**more), 1, path)


# ---- executions


def test_the_result_is_that_of_the_step_that_the_request_names() -> None:
    drive = Drive(BESIDE, {"a": ok("of a"), "b": ok("of b")}, control=Hand).start(returns="a")
    while drive.ready:
        drive.perform(drive.ready.pop(0))
    assert (drive.state.returns, drive.state.result) == ("a", "of a")


def test_a_retry_of_a_child_is_a_root_of_its_own() -> None:
    drive = Drive(STEP, bad(), control=Hand).start(parent="p", depth=2, trace="t")
    drive.perform(drive.ready.pop())
    state = retried(drive, "y")[0].state
    found = (state.execution_id, state.trace, state.bundle, state.retried_from, state.parent, state.depth)
    assert found == ("y", "y", "bundle", "x", "", 0)


def test_failures_are_listed_by_run_and_iteration() -> None:
    first: list[dict[str, Any]] = [{}, {"run": 1}, {"run": 1, "iteration": "2"}]
    last = {"run": 1, "iteration": "10"}
    assert sorted([last, *first], key=fold._failure_position) == [*first, last]
    assert sorted([first[1], first[0]], key=fold._failure_position) == first[:2]
    assert sorted([first[2], first[1]], key=fold._failure_position) == first[1:]


# ---- threads


def test_a_thread_sees_its_own_writes_and_no_later_ones_of_others() -> None:
    drive = Drive(BESIDE, control=Hand).start()
    a, b = drive.ready
    for command, name in ((b, "b"), (a, "a")):
        done = {"outcome": {"status": "ok"}, "do": "continue", "pc": 1, "ctx": {name: 1}}
        drive.take(drive.control.report(*command[:3], [task_done(done)]))
    assert [drive.state.runs[one.run].threads[""].view.ctx for one in (a, b)] == [{"a": 1}, {"b": 1}]
    assert drive.state.ctx == {"a": 1, "b": 1}


def test_a_lost_lease_does_not_hold_for_other_units() -> None:
    state = folded(loop_started(width=1), Event("step.scheduled", {"lease": 2}, 1, "0"))
    folded(Event("loop.iteration.done", {"result": 1}, 1, "0"), state=state)
    assert {path: thread.lease for path, thread in state.runs[1].threads.items()} == {"1": 1}


def test_an_iteration_has_started_with_the_first_report() -> None:
    state = folded(loop_started(), Event("loop.iteration.started", {}, 1, "1"))
    assert [thread.started for thread in state.runs[1].threads.values()] == [False, True, False]


def test_a_child_that_has_answered_is_not_waited_for() -> None:
    drive = Drive(PARENT, control=Hand).start()
    drive.take(drive.control.report(*drive.ready.pop()[:3], asking(timeout=5)))
    assert drive.state.children == {(1, ""): None}
    drive.take(drive.control.child_finished(1, "", "x/1#1.1", DONE))
    assert drive.state.children == {}
    drive.control.set_time(6.0)
    assert drive.control.timer() == []


@pytest.mark.parametrize(("more", "is_masked"), [({}, False), ({"masked": True}, True)])
def test_a_result_is_masked_if_its_event_says_so(more: dict[str, bool], is_masked: bool) -> None:
    done = {"outcome": {"status": "ok", "result": 1}, "do": "continue", "pc": 1, **more}
    state = folded(loop_started(), Event("task.done", done, 1, "0", 1, "a", 1))
    assert state.runs[1].threads["0"].frame.masked is is_masked


# ---- loops


def test_a_parallel_loop_sees_what_its_run_did_or_what_was_there_when_it_started() -> None:
    patched = Event("ctx.patched", {"patch": {"a": 1}})
    state = folded(patched, loop_started())
    assert state.runs[1].loops[""].base is state.runs[1].view
    state = folded(loop_started(parallel=False, leaf=False), patched, loop_started("0"))
    assert state.runs[1].loops[""].base is None
    assert state.runs[1].loops["0"].base is state.view
    state = folded(loop_started(leaf=False), patched, loop_started("0"))
    assert state.runs[1].loops["0"].base is None
    assert state.runs[1].threads["0.1"].view.ctx == {}


def test_as_many_starts_are_known_as_a_rate_needs() -> None:
    assert folded(loop_started(total=9, rate=[2, 10.0])).runs[1].loops[""].starts == [35.0, 45.0]


def test_what_is_stored_elsewhere_is_not_in_the_state() -> None:
    def done(index: int, **more: Any) -> Event:
        return Event("loop.iteration.done", {"result": index, "ctx": {"n": index}, **more}, 1, str(index))

    state = folded(loop_started(), done(1), done(0, stored={"at": [1], "results": "r", "patches": "p"}))
    loop = state.runs[1].loops[""]
    assert (loop.results, loop.patches, loop.stored) == ([0, None, None], {0: {"n": 0}}, [[[1], "r", "p"]])
    assert loop.bytes == loop.sizes[0] == rough_bytes(0) + rough_bytes({"n": 0})


def test_the_size_of_an_iteration_is_that_of_its_result_and_of_what_it_wrote() -> None:
    loop = LoopRun(header())
    loop.patches[1] = {"long": "x" * 100}
    assert held_bytes(loop, 0, {"result": 5, "ctx": {"a": 1}}) == rough_bytes(5) + rough_bytes({"a": 1})
    assert held_bytes(loop, 1, {"result": 5}) == rough_bytes(5) + rough_bytes({"long": "x" * 100})
    assert held_bytes(loop, 2, {"result": 5}) == rough_bytes(5) + rough_bytes(None)


def test_failures_of_inner_loops_count_in_the_outer_one() -> None:
    tolerant = {"best_effort": True}
    state = folded(loop_started(total=1, leaf=False, **tolerant), loop_started("0", total=2, **tolerant))
    folded(Event("loop.iteration.failed", {"error": ERROR}, 1, "0.0"), state=state)
    folded(Event("loop.iteration.done", {"result": 1}, 1, "0.1"), state=state)
    folded(Event("loop.iteration.done", {"result": [1]}, 1, "0"), state=state)
    loop = state.runs[1].loops[""]
    assert (loop.ok, loop.failed) == (1, 1)


def test_a_failure_drops_what_is_pending_after_it_and_of_its_run() -> None:
    state = folded(loop_started(leaf=False))
    state.unstarted[2, "2"] = None
    state.complete = {(1, "2"): None, (2, ""): None}
    folded(Event("loop.iteration.failed", {"error": ERROR}, 1, "1"), state=state)
    assert list(state.unstarted) == [(1, "0"), (2, "2")]
    assert list(state.complete) == [(2, ""), (1, "")]


def test_a_run_that_has_ended_has_no_loop() -> None:
    state = folded(loop_started(), Event("loop.iteration.failed", {"error": ERROR}, 1, "1"))
    assert state.runs[1].failure is not None
    folded(Event("step.failed", {"error": ERROR}, 1), state=state)
    run = state.runs[1]
    assert (run.loops, run.threads, run.failure) == ({}, {}, None)
