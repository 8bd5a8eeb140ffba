"""`timeout_s` and `deadline_s`: an overdue run fails, later reports are nothing, and a crash changes neither."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from noetlvm.machine.time_limits import NO_LIMITS, TimeLimits, overdue
from tests.noetlvm.machine.control.drive import Command, Drive, Hand, ok, task_done

STEP = """
- step: start
  spec: { policy: { lifecycle: %s } }
  tool: { kind: noop }
"""
LOOP = """
- step: start
  spec: { policy: { lifecycle: { timeout_s: 10 } } }
  loop: { in: [1, 2, 3], iterator: n, spec: { mode: parallel, max_in_flight: 2 } }
  tool: { kind: noop }
"""


def at(drive: Drive, now: float) -> Hand:
    drive.control.set_time(now)
    return drive.control


def begun(text: str, now: float = 100.0) -> tuple[Drive, Command]:
    """Return an execution whose first pipeline has reported a task."""
    drive = Drive(text)
    at(drive, now)
    command = drive.start().ready[0]
    done = {"outcome": {"status": "ok", "result": 1, "meta": {"attempt": 1}}, "do": "continue", "pc": 5}
    drive.take(drive.control.report(*command[:3], [task_done(done)]))
    return drive, command


@pytest.mark.parametrize(
    ("settings", "limits"),
    [
        ({}, NO_LIMITS),
        ({"lifecycle": {"timeout_s": 5}}, TimeLimits(timeout_s=5)),
        ({"lifecycle": {"timeout_s": 5, "deadline_s": 0.5}}, TimeLimits(5, 0.5)),
        ({"lifecycle": {"timeout_s": "5", "deadline_s": True}}, NO_LIMITS),
        ({"lifecycle": {"timeout_s": 0, "deadline_s": -1}}, NO_LIMITS),
        ({"lifecycle": {"timeout_s": inf, "deadline_s": nan}}, NO_LIMITS),
        ({"lifecycle": {"timeout_s": 10**400, "deadline_s": 10**300}}, TimeLimits(deadline_s=10**300)),
        ({"lifecycle": [5]}, NO_LIMITS),
    ],
)
def test_a_limit_is_a_positive_number_and_anything_else_is_none(settings: dict[str, Any], limits: TimeLimits) -> None:
    assert TimeLimits.of(settings) == limits


def test_a_timeout_counts_from_the_first_sign_of_life() -> None:
    drive = Drive(STEP % "{ timeout_s: 10 }")
    at(drive, 100.0)
    command = drive.start().ready[0]
    assert drive.control.next_timer() is None
    at(drive, 150.0)
    drive.take(drive.control.report(*command[:3], [task_done({"outcome": {}, "do": "continue", "pc": 5})]))
    assert drive.control.next_timer() == 160.0


def test_a_deadline_counts_from_the_start_of_the_workflow() -> None:
    drive = Drive(STEP % "{ deadline_s: 10 }")
    at(drive, 100.0)
    drive.start()
    assert drive.control.next_timer() == 110.0


def test_a_step_whose_turn_comes_at_its_deadline_is_too_late() -> None:
    text = """
    - { step: start, tool: { kind: noop }, next: { arcs: [{ step: late }] } }
    - { step: late, spec: { policy: { lifecycle: { deadline_s: 10 } } }, tool: { kind: noop } }
    """
    drive = Drive(text)
    at(drive, 100.0)
    drive.start()
    at(drive, 110.0)
    drive.perform(drive.ready.pop())
    assert drive.ready == []
    assert drive.last("step.failed").run == 2


def test_nothing_happens_before_it_is_due() -> None:
    drive, _ = begun(STEP % "{ timeout_s: 10 }")
    assert at(drive, 109.9).timer() == []
    assert [event.name for event in at(drive, 110.0).timer()][:2] == ["step.failed", "next.evaluated"]


def test_the_limit_that_comes_first_is_named() -> None:
    for limits, name in (
        ("{ timeout_s: 3, deadline_s: 9 }", "timeout_s"),
        ("{ timeout_s: 9, deadline_s: 3 }", "deadline_s"),
    ):
        drive, _ = begun(STEP % limits)
        failed = at(drive, 103.0).timer()[0]
        assert failed.data["error"]["details"] == {"limit": name, "seconds": 3}


def test_work_on_an_overdue_run_is_to_be_left_off() -> None:
    drive, _ = begun(LOOP)
    drive.take(at(drive, 110.0).timer())
    assert drive.control.take_stopped() == [(1, "0"), (1, "1")]
    assert drive.control.take_stopped() == []
    assert drive.control.take_ready() == []


def test_a_report_that_comes_too_late_changes_nothing() -> None:
    drive, command = begun(LOOP)
    work = drive.control.work(command)
    drive.take(at(drive, 110.0).timer())
    before = drive.state.to_data()
    assert drive.control.report(*command[:3], ok(2)(work)) == []
    assert drive.state.to_data() == before
    assert drive.state.status == "failed"


def test_a_run_that_has_ended_is_not_due() -> None:
    drive = Drive(STEP % "{ timeout_s: 10, deadline_s: 20 }")
    at(drive, 100.0)
    drive.run()
    assert drive.control.next_timer() is None
    assert at(drive, 1000.0).timer() == []
    assert drive.state.status == "success"


def test_limits_wait_while_paused_and_count_on() -> None:
    drive, _ = begun(STEP % "{ timeout_s: 10 }")
    drive.take(drive.control.pause())
    assert drive.control.next_timer() is None
    assert at(drive, 200.0).timer() == []
    drive.take(drive.control.resume())
    assert drive.control.next_timer() == 110.0
    assert [event.name for event in drive.control.timer()][:2] == ["step.failed", "next.evaluated"]


def test_a_crash_forgets_no_limit() -> None:
    drive, _ = begun(STEP % "{ timeout_s: 10, deadline_s: 40 }")
    again = drive.restart().control
    assert again.next_timer() == drive.control.next_timer() == 110.0


NESTED = """
- step: start
  spec: { policy: { lifecycle: { timeout_s: 10 } } }
  loop:
    in: [1, 2, 3]
    iterator: n
    spec: { mode: parallel }
    loop: { in: [1, 2], iterator: m, spec: { mode: parallel } }
  tool: { kind: noop }
"""


@pytest.mark.parametrize(("text", "total"), [(LOOP, 3), (NESTED, 0)])
def test_an_overdue_loop_counts_what_it_would_have_run_only_where_that_is_known(text: str, total: int) -> None:
    drive, _ = begun(text)
    drive.take(at(drive, 110.0).timer())
    assert drive.last("step.failed").data["loop"] == {"total": total, "ok": 0, "failed": 0}


TWO = """
- step: start
  next: { spec: { mode: inclusive }, arcs: [{ step: soon }, { step: late }] }
- { step: soon, spec: { policy: { lifecycle: { deadline_s: 10 } } }, tool: { kind: noop } }
- { step: late, spec: { policy: { lifecycle: { deadline_s: 20 } } }, tool: { kind: noop } }
"""


def test_the_timer_rings_for_the_limit_that_comes_first() -> None:
    drive = Drive(TWO)
    at(drive, 100.0)
    drive.start()
    assert drive.control.next_timer() == 110.0


def test_a_run_that_has_ended_is_not_overdue_while_a_pause_holds_its_routing_back() -> None:
    drive = Drive(STEP % "{ deadline_s: 10 }")
    command = drive.start().ready[0]
    drive.take(drive.control.pause())
    drive.perform(command)
    assert drive.state.runs
    assert overdue(drive.net, drive.state, 1000.0) == []
