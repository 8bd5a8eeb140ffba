"""What has begun and is stopped from outside, by a time limit or a cancellation, ends with events of its own (S61)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from noetlvm.data.encoding import decode, encode
from noetlvm.data.event import Event, Recorded
from noetlvm.machine.decide import TAKE_OVER_SECONDS, decide
from noetlvm.machine.fold import apply
from noetlvm.machine.messages import (
    Cancel,
    ChildFinished,
    Continue,
    Input,
    LeaseLost,
    Resume,
    TimerDue,
    WakeAt,
    WorkerReport,
)
from noetlvm.machine.payload import Offload
from noetlvm.machine.replay import replay
from noetlvm.machine.settling import MOVES_MAX, MOVES_UNCUT
from noetlvm.machine.state import State
from tests.noetlvm.machine.control.drive import Drive, Hand, ok, task_done
from tests.noetlvm.machine.control.test_children import DONE, asking

LIMITED = "spec: { policy: { lifecycle: { timeout_s: 10 } } }"
STEP = f"- {{ step: start, {LIMITED}, tool: {{ kind: noop }} }}"
PARENT = f"- {{ step: start, {LIMITED}, tool: {{ kind: playbook, path: other/one }} }}"
NESTED = f"""
- step: start
  {LIMITED}
  loop:
    in: [[1, 2, 3], [4], [5]]
    iterator: row
    spec: {{ mode: parallel, max_in_flight: 2 }}
    loop: {{ in: "{{{{ iter.row }}}}", iterator: cell, spec: {{ mode: parallel }} }}
  tool: {{ kind: noop }}
"""
DONE_STEP = Event("step.done", {"result": None})
STARTED = Event("task.started", {"ts": 3.0}, task=1, label="task_1", attempt=1)
RETRIED = {"outcome": {"status": "error", "error": {"kind": "boom", "message": "no"}}, "do": "retry", "pc": 1}

Stop = Callable[[Drive], list[Event]]


def timed_out(drive: Drive) -> list[Event]:
    drive.control.set_time(10.0)
    return drive.take(drive.control.timer())


def cancelled(drive: Drive) -> list[Event]:
    drive.control.set_time(10.0)
    return drive.take(drive.control.cancel())


STOPS = [pytest.param(timed_out, "timeout", id="timeout"), pytest.param(cancelled, "cancelled", id="cancel")]


def begun(text: str, *reports: tuple[str, list[Event]]) -> Drive:
    """Return an execution whose iterations have reported events."""
    drive = Drive(text).start()
    for iteration, events in reports:
        drive.take(drive.control.report(1, iteration, 1, events))
    return drive


def ends(events: list[Event]) -> list[tuple[str, str]]:
    """Return the events that end what was cancelled, and of which iteration each is."""
    return [(event.name, event.iteration) for event in events if event.data.get("cancelled")]


@pytest.mark.parametrize(("stop", "kind"), STOPS)
def test_every_iteration_that_has_begun_ends_and_inner_ones_end_first(stop: Stop, kind: str) -> None:
    drive = begun(NESTED, ("0.1", [STARTED]), ("1.0", [Event("loop.iteration.started", {})]))
    made = stop(drive)
    assert ends(made) == [
        ("task.done", "0.1"),
        ("loop.iteration.failed", "0.1"),
        ("loop.iteration.failed", "1.0"),
        ("loop.iteration.failed", "0"),
        ("loop.iteration.failed", "1"),
        ("step.failed", ""),
    ]
    errors = [event.data.get("error") or event.data["outcome"]["error"] for event in made if "cancelled" in event.data]
    assert {error["kind"] for error in errors} == {kind}
    assert drive.last("step.failed").data["loop"] == {"total": 0, "ok": 0, "failed": 0}


@pytest.mark.parametrize(("stop", "kind"), STOPS)
def test_what_has_ended_is_counted_and_ends_once(stop: Stop, kind: str) -> None:
    drive = begun(NESTED)
    work = drive.control.work(next(command for command in drive.ready if command.iteration == "1.0"))
    drive.take(drive.control.report(1, "1.0", 1, ok()(work)))
    made = stop(drive)
    assert ends(made) == [("loop.iteration.failed", "0"), ("loop.iteration.failed", "2"), ("step.failed", "")]
    assert drive.last("step.failed").data["loop"] == {"total": 1, "ok": 1, "failed": 0}


@pytest.mark.parametrize(("stop", "kind"), STOPS)
def test_a_tool_that_is_stopped_has_an_outcome(stop: Stop, kind: str) -> None:
    drive = Drive(STEP).start()
    drive.control.set_time(4.0)
    drive.take(drive.control.report(1, "", 1, [Event("step.started", {})]))
    drive.control.set_time(6.0)
    drive.take(drive.control.report(1, "", 1, [STARTED]))
    drive.control.set_time(14.0)
    made = drive.take(drive.control.timer() if kind == "timeout" else drive.control.cancel())
    (done,) = [event for event in made if event.name == "task.done"]
    assert done[2:] == (1, "", 1, "task_1", 1)
    outcome = done.data["outcome"]
    assert (outcome["status"], outcome["result"], outcome["error"]["kind"]) == ("error", None, kind)
    assert outcome["meta"] == {"attempt": 1, "duration_ms": 8000, "ts": 14.0}


@pytest.mark.parametrize(("stop", "kind"), STOPS)
def test_a_task_between_two_attempts_has_ended(stop: Stop, kind: str) -> None:
    drive = begun(STEP, ("", [STARTED, task_done(RETRIED | {"wait_s": 100})]))
    assert ends(stop(drive)) == [("step.failed", "")]


@pytest.mark.parametrize(("stop", "kind"), STOPS)
def test_a_task_that_waits_for_a_child_ends_and_the_child_is_cancelled(stop: Stop, kind: str) -> None:
    drive = begun(PARENT, ("", asking()))
    assert ends(stop(drive)) == [("task.done", ""), ("step.failed", "")]
    assert drive.control.take_cancelled() == ["x/1#1.1"]
    assert drive.state.children == {}


def test_a_cancelled_run_is_not_routed() -> None:
    drive = Drive("- { step: start, tool: { kind: noop }, next: { arcs: [{ step: b }] } }\n- { step: b }").start()
    assert [event.name for event in cancelled(drive)] == [
        "execution.cancelled",
        "step.failed",
        "workflow.finished",
        "playbook.processed",
    ]
    assert (drive.state.status, drive.state.failure_count, drive.state.runs) == ("cancelled", 0, {})


def test_a_run_that_has_ended_before_the_cancellation_does_not_end_again() -> None:
    drive = Drive(STEP).start()
    drive.take(drive.control.pause())
    drive.perform(drive.ready.pop())
    assert ends(cancelled(drive)) == []


# ---- decisions that are cut (S62)

WIDE = MOVES_MAX + 2 * MOVES_UNCUT
"""Runs that are open at once: more than one decision may stop."""
LINES = "".join(f"- {{ step: s{n}, {LIMITED}, tool: {{ kind: noop }} }}\n" for n in range(WIDE))
FAN = f"""
- step: start
  next: {{ spec: {{ mode: inclusive }}, arcs: [{", ".join(f"{{ step: s{n} }}" for n in range(WIDE))}] }}
{LINES}"""


def fanned_out() -> Drive:
    drive = Drive(FAN, control=Hand).start()
    for command in drive.ready:
        drive.take(drive.control.report(*command[:3], [STARTED]))
    return drive


def test_the_decision_to_cancel_much_is_cut_and_nothing_is_accepted_in_between() -> None:
    drive = fanned_out()
    made = decide(drive.net, drive.state, Cancel(), 10.0, Offload())
    assert (made.rest, made.effects[-1]) == ((Continue(),), WakeAt(10.0 + TAKE_OVER_SECONDS))
    assert len(made.events) < 2 * WIDE
    last = max(drive.state.runs)
    refused: list[Input] = [
        WorkerReport(last, "", 1, [task_done({"outcome": {}, "do": "continue", "pc": 5})]),
        LeaseLost(last, "", 1),
        ChildFinished(last, "", "x", DONE),
        Cancel(),
    ]
    for given in refused:
        assert decide(drive.net, drive.state, given, 10.0, Offload()).events == []
    rest = decide(drive.net, drive.state, Continue(), 10.0, Offload())
    names = [event.name for event in (*made.events, *rest.events)]
    assert (names.count("task.done"), names.count("step.failed")) == (WIDE, WIDE)
    assert drive.state.status == "cancelled"


@pytest.mark.parametrize("given", [Continue(), TimerDue()], ids=["continue", "timer"])
def test_another_process_continues_a_cancellation_that_was_cut(given: Input) -> None:
    drive = fanned_out()
    decide(drive.net, drive.state, Cancel(), 10.0, Offload())
    state = State.from_data(decode(encode(drive.state.to_data())))
    decide(drive.net, state, given, 11.0, Offload())
    assert state.status == "cancelled"


def test_a_cut_decision_moves_no_time_limit() -> None:
    drive = fanned_out()
    drive.take(drive.control.pause())
    for now, due in ((3.0, 3.0 + TAKE_OVER_SECONDS), (7.0, 10.0)):
        again = State.from_data(drive.state.to_data())
        for number in range(2, MOVES_UNCUT + 2):
            report = WorkerReport(number, "", 1, [task_done({"outcome": {}, "do": "continue", "pc": 5}), DONE_STEP])
            decide(drive.net, again, report, now, Offload())
        made = decide(drive.net, again, Resume(), now, Offload(), lambda _events: True)
        assert made.rest == (Continue(),)
        assert made.effects[-1] == WakeAt(due)


def test_the_decision_to_time_out_much_is_cut_and_continues_with_the_same_log() -> None:
    whole, cut = fanned_out(), fanned_out()
    first = decide(cut.net, cut.state, TimerDue(), 10.0, Offload(), lambda _events: True)
    assert first.rest == (TimerDue(),)
    assert [event.name for event in first.events] == ["task.done", "step.failed"] * MOVES_UNCUT
    whole.control.set_time(10.0)
    cut.control.set_time(10.0)
    assert [*first.events, *cut.control.timer()] == whole.control.timer()


@pytest.mark.parametrize("given", [Cancel(), TimerDue()], ids=["cancel", "timeout"])
def test_the_parts_of_a_cut_decision_are_replayed_with_their_own_times(given: Input) -> None:
    drive, now = fanned_out(), 10.0
    log = [Recorded(seq, "id", 0.0, event) for seq, event in enumerate(drive.events, 1)]
    rest: tuple[Input, ...] = (given,)
    while rest:
        made = decide(drive.net, drive.state, rest[0], now, Offload(), lambda _events: True)
        encoded = (event._replace(data=decode(encode(event.data))) for event in made.events)
        log += [Recorded(seq, "id", now, event) for seq, event in enumerate(encoded, len(log) + 1)]
        rest, now = made.rest, now + 0.1
    assert replay(drive.net, log, Offload()) is None


# ---- logs from before


@pytest.mark.parametrize(("stop", "kind"), STOPS)
def test_a_log_without_these_events_folds_to_the_same_end(stop: Stop, kind: str) -> None:
    drive = begun(NESTED, ("0.1", [STARTED]), ("1.0", [STARTED]))
    stop(drive)
    boundary = "step.failed" if kind == "timeout" else ""
    old = [event for event in drive.events if "cancelled" not in event.data or event.name == boundary]
    assert len(old) < len(drive.events)
    then, now = State(), drive.state
    for event in old:
        apply(then, event, 0.0)
    assert (then.status, then.runs, then.children, then.failure_count) == (now.status, {}, {}, now.failure_count)
    assert then.is_over
