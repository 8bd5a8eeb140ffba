"""Child executions: requested by a task, started by the server, waited for without a worker (S43)."""

from __future__ import annotations

from typing import Any

from noetlvm.data.event import Event
from noetlvm.limits import CHILD_DEPTH_MAX
from noetlvm.machine.fold import apply
from noetlvm.machine.state import State
from tests.noetlvm.machine.control.drive import Drive, Hand

PARENT = "- { step: start, tool: { kind: playbook, path: other/one } }"
ASK = {"path": "other/one", "version": None, "workload": {"n": 1}}
DONE = {"status": "ok", "result": {"status": "success", "result": 5, "ctx": {}}}


def asking(**more: Any) -> list[Event]:
    return [Event("task.started", {"child": ASK | more, "ts": 100.0}, task=1, label="task_1", attempt=1)]


def waiting(**more: Any) -> Drive:
    drive = Drive(PARENT).start()
    command = drive.ready.pop()
    drive.take(drive.control.report(*command[:3], asking(**more)))
    return drive


def test_a_child_is_requested_once_under_a_stable_key() -> None:
    drive = waiting()
    ((run, iteration, child),) = drive.control.take_children()
    assert (run, iteration, child.key, child.path, child.workload) == (1, "", "x/1#1.1", "other/one", {"n": 1})
    assert drive.control.take_children() == []


def test_a_waiting_parent_holds_no_worker_and_is_not_over() -> None:
    drive = waiting()
    assert drive.ready == []
    assert drive.state.status == "running"


def test_the_childs_outcome_comes_back_as_an_answer() -> None:
    drive = waiting()
    drive.take(drive.control.child_finished(1, "", "x/1#1.1", DONE))
    (command,) = drive.ready
    assert drive.control.work(command).answer == DONE | {"meta": {"duration_ms": 0}}
    reported = drive.perform(command)
    assert reported[0].name == "task.done"
    assert drive.state.status == "success"


def test_an_outcome_that_nobody_waits_for_changes_nothing() -> None:
    drive = waiting()
    drive.take(drive.control.child_finished(1, "", "x/1#1.2", DONE))
    drive.take(drive.control.child_finished(2, "", "x/1#1.1", DONE))
    assert drive.ready == []


def test_after_a_restart_the_child_is_requested_again() -> None:
    drive = waiting()
    restored = drive.restart()
    assert restored.ready == []
    assert [child.key for _, _, child in restored.control.take_children()] == ["x/1#1.1"]
    restored.take(restored.control.child_finished(1, "", "x/1#1.1", DONE))
    assert len(restored.ready) == 1


def test_a_child_that_takes_too_long_is_given_up() -> None:
    drive = waiting(timeout=5)
    assert drive.control.next_timer() == 5.0  # by the time of the log; the worker's own is 100
    drive.control.set_time(4.9)
    drive.control.timer()
    drive.take([])
    assert drive.ready == []
    drive.control.set_time(5.0)
    drive.take(drive.control.timer())
    answer = drive.control.work(drive.ready[0]).answer
    assert answer is not None
    assert answer["error"]["kind"] == "timeout"
    assert drive.control.take_cancelled() == ["x/1#1.1"]


def test_cancelling_the_parent_cancels_the_child() -> None:
    drive = waiting()
    assert drive.take(drive.control.cancel())[0].data == {"children": ["x/1#1.1"]}
    assert drive.control.take_cancelled() == ["x/1#1.1"]
    assert drive.control.take_cancelled() == []
    assert drive.control.next_timer() is None


def test_a_cancelled_log_waits_for_no_child() -> None:
    """A server that reads it gets the end of the child too, and looks for the thread that waits."""
    drive = waiting()
    drive.take(drive.control.cancel())
    state = State()
    for event in drive.events:
        apply(state, event, 0.0)
    assert state.children == {}


def test_a_task_without_a_child_runs_at_any_depth() -> None:
    drive = Drive("- { step: start, tool: { kind: noop } }")
    drive.start(parent="y", depth=CHILD_DEPTH_MAX)
    begun = Event("task.started", {"ts": 100.0}, task=1, label="task_1", attempt=1)
    made = drive.take(drive.control.report(*drive.ready.pop()[:3], [begun]))
    assert [event.name for event in made] == ["step.started", "task.started"]


def test_depth_is_bounded() -> None:
    drive = Drive(PARENT)
    drive.start(parent="y", depth=CHILD_DEPTH_MAX)
    command = drive.ready.pop()
    drive.take(drive.control.report(*command[:3], asking()))
    assert drive.control.take_children() == []
    drive.take([])
    answer = drive.control.work(drive.ready[0]).answer
    assert answer is not None
    assert answer["error"]["kind"] == "depth"
    drive = Drive(PARENT)
    drive.start(parent="y", depth=CHILD_DEPTH_MAX - 1)
    drive.take(drive.control.report(*drive.ready.pop()[:3], asking()))
    assert len(drive.control.take_children()) == 1


def test_a_retry_requests_another_child() -> None:
    drive = waiting()
    retry = {"outcome": {"status": "error", "error": {}}, "do": "retry", "pc": 1}
    drive.take(drive.control.child_finished(1, "", "x/1#1.1", DONE))
    assert len(drive.control.take_children()) == 1
    drive.take(drive.control.report(1, "", 2, [Event("task.done", retry, task=1, label="task_1", attempt=1)]))
    again = asking()[0]._replace(attempt=2)
    drive.take(drive.control.report(1, "", 2, [again]))
    assert [child.key for _, _, child in drive.control.take_children()] == ["x/1#1.2"]


def test_no_child_is_started_while_the_parent_is_paused() -> None:
    drive = Drive(PARENT).start()
    drive.take(drive.control.pause())
    drive.take(drive.control.report(*drive.ready.pop()[:3], asking()))
    assert drive.control.take_children() == []
    drive.take(drive.control.resume())
    assert len(drive.control.take_children()) == 1


def test_a_child_that_has_ended_does_not_time_out_any_more() -> None:
    drive = waiting(timeout=5)
    drive.take(drive.control.child_finished(1, "", "x/1#1.1", DONE))
    drive.control.set_time(200.0)
    assert drive.control.timer() == []
    assert drive.control.take_cancelled() == []


def test_the_answer_of_a_child_is_for_its_own_task_only() -> None:
    drive = waiting()
    drive.take(drive.control.child_finished(1, "", "x/1#1.1", DONE))
    done = {"outcome": DONE, "do": "continue", "pc": 1}
    drive.take(drive.control.report(1, "", 2, [Event("task.done", done, task=1, label="task_1", attempt=1)]))
    assert drive.control.work(drive.ready[-1]).answer is None


MANY = """
- step: start
  loop: { in: [1, 2], iterator: n, spec: { mode: parallel } }
  tool: { kind: playbook, path: other/one }
"""


def waiting_in_reverse() -> Drive:
    drive = Drive(MANY, control=Hand).start()
    for command in reversed(drive.ready):
        drive.take(drive.control.report(*command[:3], asking(timeout=5)))
    return drive


def test_children_are_cancelled_in_the_order_of_their_iterations() -> None:
    drive = waiting_in_reverse()
    assert drive.take(drive.control.cancel())[0].data == {"children": ["x/1/0#1.1", "x/1/1#1.1"]}


def test_children_time_out_in_the_order_of_their_iterations() -> None:
    drive = waiting_in_reverse()
    drive.control.set_time(105.0)
    assert [event.iteration for event in drive.control.timer()] == ["0", "1"]


LOCAL = MANY.replace("mode: parallel", "mode: parallel, policy: { exec: local }")


def test_a_lost_lease_of_a_unit_takes_no_lease_back_that_a_waiting_thread_has_already() -> None:
    drive = Drive(LOCAL).start()
    requesting, other = drive.ready
    drive.take(drive.control.report(*requesting[:3], asking()))
    drive.take(drive.control.child_finished(1, requesting.iteration, "x/1/0#1.1", DONE))
    assert [command.lease for command in drive.ready] == [1, 1, 2]
    drive.take(drive.control.expire(*other[:3]))
    assert sorted((command.iteration, command.lease) for command in drive.ready[3:]) == [("0", 3), ("1", 3)]
