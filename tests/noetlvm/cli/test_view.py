"""What a run shows while it runs: lines for notable events, or a table with the same content."""

from __future__ import annotations

import io

import pytest

from noetlvm.cli.terminal import Live
from noetlvm.cli.view import Lines, Progress, Quiet, view_for
from noetlvm.data.event import Event, Recorded
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
    return [line for one in recorded(events) for line in progress.observe(one)]


def test_a_loop_is_reported_line_by_line() -> None:
    assert lines(LOG) == [
        "fetch: loop over 2 items, 8 at once",
        "fetch: started",
        "fetch[0.0]: get is tried again in 2.00 s (attempt 1): too busy",
        "fetch[1]: failed: too busy",
    ]


def test_an_iteration_that_holds_a_loop_is_counted_by_what_is_in_it() -> None:
    progress = Progress("sync")
    for one in recorded([*LOG, Event("loop.iteration.done", {"result": []}, 1, "0")]):
        list(progress.observe(one))
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
    reported = [line for one in recorded(LOG[:1] * 3, EVENTS_WARNING - 1) for line in progress.observe(one)]
    assert len(reported) == 1
    assert f"{EVENTS_WARNING:,} events" in reported[0]


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> Live:
    """A view for which no time passes but that of the log."""
    monkeypatch.setattr("noetlvm.cli.terminal.time", lambda: 0.0)
    return Live()


def drawn(view: Live, width: int, height: int = 40) -> list[str]:
    from rich.console import Console

    shown = io.StringIO()
    view.console = Console(file=shown, width=width, height=height)
    view.console.print(view._table())
    return [line for line in shown.getvalue().splitlines() if line.strip()]


def test_the_table_shows_iterations_retries_and_rates(live: Live) -> None:
    live.observe(ROW, recorded(LOG))
    row = drawn(live, 120)[-1]
    assert row.split() == ["fetch", "running:", "get", "2/4", "(1", "failed)", "1", "1", "29/s", "0.07", "s"]


def test_a_narrow_terminal_is_shown_fewer_columns_and_no_broken_rows(live: Live) -> None:
    named = Event("step.scheduled", {"token": 1, "step": "fetch_what_has_a_long_name", "form": "loop"}, 1)
    live.observe(ROW, recorded([named, *LOG[1:]]))
    head, _line, row = drawn(live, 60)
    assert head.split() == ["step", "iterations", "time"]
    assert "fetch_what" in row
    assert "2/4 (1 failed)" in row
    assert "0.07 s" in row


def test_a_low_terminal_is_shown_what_runs_and_the_latest_that_ended(live: Live) -> None:
    for run in range(1, 41):
        name = ROW._replace(execution_id=f"e{run}")
        ended = [Event("step.done", {"result": None}, run)] if run not in (2, 40) else []
        scheduled = Event("step.scheduled", {"token": 1, "step": f"s{run}"}, run)
        live.observe(name, recorded([scheduled, Event("step.started", {}, run), *ended]))
    rows = [line.split()[0] for line in drawn(live, 100, height=12)[2:]]
    assert rows == ["s2", "s35", "s36", "s37", "s38", "s39", "s40"]


def test_time_passes_while_no_event_arrives(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    live.observe(ROW, recorded(LOG))
    monkeypatch.setattr("noetlvm.cli.terminal.time", lambda: 125.01)
    assert "2 min 5 s" in drawn(live, 100)[-1]


def test_a_terminal_that_cannot_draw_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "dumb")
    assert type(view_for(shows=True)) is Lines
    monkeypatch.setenv("TERM", "xterm")
    assert type(view_for(shows=True)) is Live


def test_what_others_wrote_cannot_command_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    error = ERROR | {"message": "\x1b]0;gotcha\x07 \x9b31m \u202e bad"}
    Lines().observe(ROW, recorded([*LOG, Event("step.failed", {"error": error}, 1)]))
    assert capsys.readouterr().err.endswith("\\u001b]0;gotcha\\u0007 \\u009b31m \\u202e bad\n")


def test_a_child_is_reported_with_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    Lines().observe(ROW._replace(parent="p"), recorded(LOG[:3]))
    assert capsys.readouterr().err == "sync: fetch: loop over 2 items, 8 at once\nsync: fetch: started\n"


def test_who_wants_to_see_nothing_sees_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    view = view_for(shows=False)
    view.observe(ROW, recorded(LOG))
    assert type(view) is Quiet
    assert capsys.readouterr().err == ""
