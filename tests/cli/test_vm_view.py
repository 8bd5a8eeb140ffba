"""What a run shows while it goes on: lines for each thing worth one, or a table that says the same."""

from __future__ import annotations

import io

import pytest

from noetlvm.cli.progress import Progress
from noetlvm.cli.view import Lines, Live, Quiet, view_for
from noetlvm.events.event import Event, Recorded
from noetlvm.limits import EVENTS_WARNING
from noetlvm.store.interface import Execution

ROW = Execution("e", "bundle", "sync", "sync", "running", 0.0)
ERROR = {"kind": "http", "retryable": True, "message": "too\nbusy", "details": {}}
RETRIED = {"outcome": {"status": "error", "error": ERROR}, "do": "retry", "pc": 0, "wait_s": 2}

LOG = [
    Event("step.scheduled", {"token": 1, "step": "fetch", "form": "loop"}, 1),
    Event("loop.started", {"total": 2, "width": 8, "parallel": True}, 1),
    Event("step.started", {}, 1),
    Event("loop.started", {"total": 3, "width": 1, "parallel": False}, 1, "0"),
    Event("task.started", {}, 1, "0.0", 1, "get", 1),
    Event("task.done", RETRIED, 1, "0.0", 1, "get", 1),
    Event("loop.iteration.done", {"result": None}, 1, "0.0"),
    Event("loop.iteration.failed", {"error": ERROR}, 1, "1"),
]


def recorded(events: list[Event], start: int = 1) -> list[Recorded]:
    return [Recorded(seq, "id", float(seq) / 100, event) for seq, event in enumerate(events, start)]


def lines(events: list[Event]) -> list[str]:
    progress = Progress("sync")
    return [line for one in recorded(events) for line in progress.hear(one)]


def test_a_loop_is_told_line_by_line() -> None:
    assert lines(LOG) == [
        "fetch: loop over 2 items, 8 at once",
        "fetch: started",
        "fetch[0.0]: get is tried again in 2.00 s (attempt 1): too busy",
        "fetch[1]: failed: too busy",
    ]


def test_an_iteration_that_holds_a_loop_is_counted_by_what_is_in_it() -> None:
    progress = Progress("sync")
    for one in recorded([*LOG, Event("loop.iteration.done", {"result": []}, 1, "0")]):
        list(progress.hear(one))
    run = progress.runs[1]
    assert (run.total, run.done, run.failed, run.retries) == (4, 2, 1, 1)


def test_the_end_of_a_step_says_how_it_went() -> None:
    done = Event("loop.done", {"result": [], "loop": {}}, 1)
    assert lines([*LOG, done])[-1] == "fetch: done in 0.08 s, 1 of 4 ok"
    failed = Event("step.failed", {"error": ERROR}, 1)
    assert lines([*LOG, failed])[-1] == "fetch: failed after 0.08 s: too busy"


def test_a_view_that_joins_late_knows_no_names_and_goes_on() -> None:
    assert lines(LOG[2:3]) == ["step run 1: started"]


def test_a_very_long_log_is_warned_of_once() -> None:
    progress = Progress("sync")
    told = [line for one in recorded(LOG[:1] * 3, EVENTS_WARNING - 1) for line in progress.hear(one)]
    assert len(told) == 1
    assert f"{EVENTS_WARNING:,} events" in told[0]


def test_the_table_shows_iterations_retries_and_rates() -> None:
    from rich.console import Console

    view = Live()
    view.hear(ROW, recorded(LOG))
    shown = io.StringIO()
    Console(file=shown, width=120).print(view._table())
    (row,) = [line for line in shown.getvalue().splitlines() if "fetch" in line]
    assert row.split() == ["fetch", "running:", "get", "2/4", "(1", "failed)", "1", "1", "29/s", "0.07", "s"]


def test_a_child_is_told_with_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    Lines().hear(ROW._replace(parent="p"), recorded(LOG[:3]))
    assert capsys.readouterr().err == "sync: fetch: loop over 2 items, 8 at once\nsync: fetch: started\n"


def test_who_wants_to_see_nothing_sees_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    view = view_for(shows=False)
    view.hear(ROW, recorded(LOG))
    assert type(view) is Quiet
    assert capsys.readouterr().err == ""
