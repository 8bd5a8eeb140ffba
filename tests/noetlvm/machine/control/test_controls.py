"""Pause, resume and cancel (S36)."""

from __future__ import annotations

from tests.noetlvm.machine.control.drive import Drive, ok

CHAIN = """
- { step: start, tool: { kind: noop }, next: { arcs: [{ step: b }] } }
- { step: b, tool: { kind: noop } }
"""


def test_while_paused_reports_are_taken_and_nothing_new_is_given_out() -> None:
    drive = Drive(CHAIN).start()
    drive.take(drive.control.pause())
    reported = drive.perform(drive.ready.pop())
    assert [event.name for event in reported] == ["step.started", "task.done", "step.done"]
    assert drive.ready == []
    assert drive.control.pause() == []
    reported = drive.take(drive.control.resume())
    assert [event.name for event in reported] == [
        "execution.resumed",
        "next.evaluated",
        "token.enqueued",
        "step.scheduled",
    ]
    assert len(drive.ready) == 1
    assert drive.control.resume() == []


def test_what_became_ready_before_a_pause_is_given_out_after_it() -> None:
    drive = Drive(CHAIN)
    drive.take(drive.control.pause())
    assert drive.names() == []  # there is nothing to pause yet
    drive.start()
    command = drive.ready.pop()
    drive.take(drive.control.pause())
    drive.take(drive.control.expire(*command[:3]))
    assert drive.ready == []
    drive.take(drive.control.resume())
    assert drive.ready == [command._replace(lease=2)]


def test_a_cancelled_execution_ends_at_once_and_takes_no_more_reports() -> None:
    drive = Drive(CHAIN).start()
    command = drive.ready.pop()
    work = drive.control.work(command)
    reported = drive.take(drive.control.cancel())
    assert [event.name for event in reported] == [
        "execution.cancelled",
        "step.failed",
        "workflow.finished",
        "playbook.processed",
    ]
    assert drive.state.status == "cancelled"
    assert drive.control.report(*command[:3], ok()(work)) == []
    for late in (drive.control.cancel, drive.control.pause, drive.control.resume, drive.control.settle):
        assert late() == []


def test_a_paused_execution_can_be_cancelled() -> None:
    drive = Drive(CHAIN).start()
    drive.take(drive.control.pause())
    drive.take(drive.control.cancel())
    assert drive.state.status == "cancelled"
    assert not drive.state.paused


def test_a_cancelled_execution_has_no_final_step() -> None:
    header = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: x, path: x }\n"
    drive = Drive(f"{header}executor: {{ spec: {{ final_step: b }} }}\nworkflow:{CHAIN}").start()
    drive.take(drive.control.cancel())
    assert drive.steps() == ["start"]
