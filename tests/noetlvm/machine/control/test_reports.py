"""Reports: accepted once, from the current lease only, and enough to continue from (S15, S35)."""

from __future__ import annotations

from typing import Any

import pytest

from noetlvm.data.encoding import encode
from noetlvm.data.event import Event
from noetlvm.limits import EVENT_BYTES_MAX
from tests.noetlvm.machine.control.drive import Drive, ending, ok, task_done

ONE = "- { step: start, tool: [{ kind: noop }, { kind: noop }] }"
LOOP = "- { step: start, loop: { in: [1, 2, 3], iterator: n, spec: { mode: parallel } }, tool: { kind: noop } }"
OK = {"outcome": {"status": "ok", "result": 1, "meta": {}}, "do": "continue", "pc": 4}


def test_a_repeated_report_changes_nothing() -> None:
    drive = Drive(ONE).start()
    (command,) = drive.ready
    events = ok(1)(drive.control.work(command))
    drive.take(drive.control.report(*command[:3], events))
    before = drive.state.to_data()
    assert drive.take(drive.control.report(*command[:3], events)) == []
    assert drive.state.to_data() == before


def test_a_repeated_part_of_a_report_is_left_out() -> None:
    drive = Drive(ONE).start()
    (command,) = drive.ready
    first, second = task_done(OK), task_done(OK | {"pc": 8}, task=2)
    assert [event.name for event in drive.control.report(*command[:3], [first])] == ["step.started", "task.done"]
    assert drive.control.report(*command[:3], [first]) == []
    assert [event.task for event in drive.control.report(*command[:3], [first, second])] == [2]


@pytest.mark.parametrize("text", [ONE, LOOP])
def test_a_report_under_an_old_lease_changes_nothing(text: str) -> None:
    drive = Drive(text).start()
    old = drive.ready[0]
    drive.ready.clear()
    drive.take(drive.control.expire(*old[:3]))
    assert drive.ready == [old._replace(lease=2)]
    before = drive.state.to_data()
    assert drive.take(drive.control.report(*old[:3], ok(1)(drive.control.work(old)))) == []
    assert drive.control.expire(*old[:3]) == []
    assert drive.state.to_data() == before
    assert drive.perform(drive.ready[0])[-1].name == ("playbook.processed" if text == ONE else "loop.iteration.done")


def test_a_lost_lease_of_a_local_loop_offers_its_open_iteration_again() -> None:
    drive = Drive("- { step: start, loop: { in: [1, 2], iterator: n }, tool: { kind: noop } }").start()
    first = drive.ready.pop()
    drive.perform(first)
    second = drive.ready.pop()
    assert (second.iteration, second.unit, second.lease) == ("1", "", 1)
    drive.take(drive.control.expire(*second[:3]))
    assert drive.ready == [second._replace(lease=2)]


@pytest.mark.parametrize("key", [(9, "", 1), (1, "7", 1), (1, "", 0), (1, "", 2)])
def test_a_report_of_no_open_thread_changes_nothing(key: tuple[int, str, int]) -> None:
    drive = Drive(ONE).start()
    assert drive.control.report(*key, [task_done(OK)]) == []


@pytest.mark.parametrize("name", ["loop.done", "next.evaluated", "playbook.processed", "ctx.patched", "no.such"])
def test_a_worker_cannot_report_what_is_the_servers(name: str) -> None:
    drive = Drive(ONE).start()
    (command,) = drive.ready
    assert drive.control.report(*command[:3], [Event(name, {"patch": {"a": 1}})]) == []


def test_a_worker_cannot_end_a_step_from_within_an_iteration() -> None:
    drive = Drive(LOOP).start()
    assert drive.control.report(*drive.ready[0][:3], [Event("step.done", {"result": 1})]) == []


def test_what_a_report_says_of_other_threads_counts_for_its_own() -> None:
    drive = Drive(LOOP).start()
    reported = drive.control.report(*drive.ready[0][:3], [task_done(OK)._replace(run=7, iteration="2")])
    assert {(event.run, event.iteration) for event in reported} == {(1, ""), (1, "0")}


def test_an_iteration_that_goes_on_after_its_first_report_has_begun() -> None:
    drive = Drive(LOOP).start()
    reported = drive.control.report(*drive.ready[0][:3], [task_done(OK)])
    assert [event.name for event in reported] == ["step.started", "loop.iteration.started", "task.done"]


def test_a_frame_is_restored_from_its_tasks() -> None:
    drive = Drive(LOOP).start()
    command = drive.ready[0]
    drive.control.report(*command[:3], [task_done(OK | {"iter": {"page": 1}, "rounds": [2]})])
    retry = {"outcome": {"status": "error", "error": {}, "meta": {"ts": 5}}, "do": "retry", "pc": 6, "wait_s": 2.5}
    drive.control.report(*command[:3], [task_done(retry | {"iter": {"hot": True}}, task=2)])
    saved = drive.control.work(command).frame
    assert (saved.pc, saved.prev, saved.iter, saved.rounds) == (6, 1, {"page": 1, "hot": True}, [2])
    assert (saved.task, saved.attempt, saved.waiting) == (2, 1, 2.5)
    drive.control.report(
        *command[:3], [task_done(OK | {"do": "skip", "outcome": {"status": "ok", "result": 9}}, task=2, attempt=2)]
    )
    saved = drive.control.work(command).frame
    assert (saved.prev, saved.waiting) == (1, None)


def test_an_attempt_that_only_began_is_run_again() -> None:
    drive = Drive(ONE).start()
    (command,) = drive.ready
    drive.take(drive.control.report(*command[:3], [Event("task.started", {}, task=1, label="task_1", attempt=1)]))
    assert drive.restart().ready == [command]
    assert drive.control.work(command).frame.task == 0
    assert drive.take(drive.control.report(*command[:3], [task_done(OK)]))[-1].name == "task.done"


def test_a_restored_execution_goes_on_where_it_was() -> None:
    drive = Drive(LOOP, ok(1)).start()
    drive.perform(drive.ready[1])
    again = drive.restart()
    assert [command.iteration for command in again.ready] == ["0", "2"]
    while again.ready:
        again.perform(again.ready.pop())
    assert again.state.result == [1, 1, 1]
    assert again.state.status == "success"


def test_an_empty_pipeline_can_end_without_a_task() -> None:
    drive = Drive(ONE).start()
    (command,) = drive.ready
    reported = drive.take(drive.control.report(*command[:3], [ending(drive.control.work(command), result=None)]))
    assert [event.name for event in reported][:2] == ["step.started", "step.done"]


def test_a_ctx_that_grows_too_large_fails_the_step() -> None:
    drive = Drive(ONE).start()
    (command,) = drive.ready
    text = "x" * 60_000
    for task in range(1, 30):
        patch = {f"k{task}": text, f"i{task}": 0}
        reported = drive.control.report(*command[:3], [task_done(OK | {"ctx": patch}, task=task)])
        drive.events += reported
        if drive.state.is_over:
            break
    error = drive.last("step.failed").data["error"]
    assert error["kind"] == "limit"
    assert "too large" in error["message"]
    assert error["details"]["keys"] == ["i18", "k18"]
    assert len(drive.state.ctx) == 2 * 17


def test_writing_more_keys_to_ctx_than_an_event_holds_fails_the_step() -> None:
    drive = Drive(ONE).start()
    (command,) = drive.ready
    patch = {f"a_rather_long_key_{number}": number for number in range(4_000)}
    reported = drive.control.report(*command[:3], [task_done(OK | {"ctx": patch}), task_done(OK, task=2)])
    assert [event.name for event in reported][:4] == ["step.started", "task.done", "step.failed", "next.evaluated"]
    assert reported[2].data["error"]["kind"] == "limit"


def _filled(data: dict[str, Any], over: int) -> dict[str, Any]:
    """Return data with a text in it that makes it so much larger than an event may be."""
    text = "x" * (EVENT_BYTES_MAX + over - len(encode(data | {"text": "x" * EVENT_BYTES_MAX})) + EVENT_BYTES_MAX)
    return data | {"text": text}


@pytest.mark.parametrize("text", [ONE, LOOP])
@pytest.mark.parametrize("over", [0, 1])
def test_what_no_event_can_hold_fails_its_task_and_its_thread(text: str, over: int) -> None:
    drive = Drive(text).start()
    reported = drive.take(drive.control.report(*drive.ready[0][:3], [task_done(_filled(OK, over))]))
    (done,) = [event for event in reported if event.name == "task.done"]
    assert (done.data["do"], "error" in done.data["outcome"]) == (("fail", True) if over else ("continue", False))
    assert any(event.name in ("step.failed", "loop.iteration.failed") for event in reported) == bool(over)


@pytest.mark.parametrize("name", ["task.started", "step.done", "step.failed"])
@pytest.mark.parametrize("over", [0, 1])
def test_whatever_a_worker_reports_is_no_larger_than_an_event(name: str, over: int) -> None:
    drive = Drive(ONE).start()
    task = 1 if name == "task.started" else 0
    reported = Event(name, _filled({"error": {"kind": "boom"}}, over), task=task, attempt=task)
    drive.take(drive.control.report(*drive.ready[0][:3], [reported]))
    assert all(len(encode(event.data)) <= EVENT_BYTES_MAX for event in drive.events)
    assert ("limit" in [failure["error"]["kind"] for failure in drive.state.failures]) == bool(over)


def test_what_is_no_data_fails_its_thread() -> None:
    drive = Drive(ONE).start()
    drive.take(drive.control.report(*drive.ready[0][:3], [task_done(OK | {"iter": {"a": object()}})]))
    assert drive.state.failures[0]["error"]["kind"] == "limit"


def test_what_a_worker_reports_is_about_its_own_iteration_whatever_it_says() -> None:
    drive = Drive(
        "- { step: start, loop: { in: [1, 2], iterator: n, spec: { mode: parallel } }, tool: { kind: noop } }"
    ).start()
    first = drive.ready[0]
    reported = [event._replace(run=1, iteration="1") for event in ok()(drive.control.work(first))]
    drive.take(drive.control.report(*first[:3], reported))
    assert {event.iteration for event in drive.events if event.task or event.name == "loop.iteration.done"} == {"0"}


def test_nothing_is_offered_of_an_execution_that_is_paused_or_over() -> None:
    drive = Drive("- { step: start, tool: { kind: noop } }").start()
    drive.take(drive.control.pause())
    drive.control.offer_all()
    assert drive.control.take_ready() == []
    drive.take(drive.control.cancel())
    drive.control.offer_all()
    assert drive.control.take_ready() == []
