"""Results of a running loop: moved to the store once they are large together, and all there at the end (S29)."""

from __future__ import annotations

from typing import Any

import pytest

from noetlvm.data.encoding import encode
from noetlvm.data.event import Event
from noetlvm.limits import EVENT_BYTES_MAX, LOOP_RESULTS_BYTES, LOOP_RESULTS_STORED
from noetlvm.machine.messages import Work
from noetlvm.machine.state import LoopRun, State
from tests.noetlvm.machine.control.drive import Drive, Hand, ending, ok

LOOP = """
- step: start
  loop: { in: "{{ range(workload.n) }}", iterator: n, spec: { mode: parallel, max_in_flight: 7 } }
  tool: { kind: noop, reads: "{{ ctx.seen }}" }
"""
NESTED = """
- step: start
  loop:
    in: "{{ range(workload.n) }}"
    iterator: n
    spec: { mode: parallel, max_in_flight: 7 }
    loop: { in: [1, 2], iterator: m }
  tool: { kind: noop }
"""
SIZE = 30_000


def text(work: Work) -> str:
    """Return a large result that says of which iteration it is."""
    return work.iteration.ljust(SIZE, "x")


def play(work: Work) -> list[Event]:
    return ok(text(work))(work)


def loops(state: State) -> list[LoopRun]:
    return [loop for run in state.runs.values() for loop in run.loops.values()]


def held(state: State) -> int:
    return sum(len(value) for loop in loops(state) for value in loop.results if isinstance(value, str))


def results(drive: Drive) -> Any:
    return drive.control.offload.readable(drive.state.result)


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_state_holds_so_much_and_the_result_is_whole(seed: int | None) -> None:
    drive, most = Drive(LOOP, play), 0
    drive.start({"n": 120})
    at = 0
    while drive.ready:
        at = (at * 31 + (seed or 0)) % len(drive.ready)
        drive.perform(drive.ready.pop(at))
        most = max(most, held(drive.state))
    assert most <= LOOP_RESULTS_BYTES < 120 * SIZE
    assert [value.strip("x") for value in results(drive)] == [str(index) for index in range(120)]


def test_a_restored_state_goes_on_with_what_was_put_aside() -> None:
    drive = Drive(LOOP, play).start({"n": 120})
    for _ in range(70):
        drive.perform(drive.ready.pop(0))
    assert any(loop.stored for loop in loops(drive.state))
    other = drive.restart()
    while other.ready:
        other.perform(other.ready.pop(0))
    assert [value.strip("x") for value in results(other)] == [str(index) for index in range(120)]


def test_loops_inside_loops_put_theirs_aside_too() -> None:
    drive = Drive(NESTED, play).start({"n": 60})
    most = 0
    while drive.ready:
        drive.perform(drive.ready.pop(0))
        outer = [loop for loop in loops(drive.state) if not loop.leaf]
        most = max(most, sum(len(encode(value)) for loop in outer for value in loop.results if value))
    assert most <= LOOP_RESULTS_BYTES < 60 * 2 * SIZE
    assert [[value.strip("x") for value in pair] for pair in results(drive)] == [
        [f"{n}.0", f"{n}.1"] for n in range(60)
    ]


def test_iterations_that_failed_have_no_result() -> None:
    def mostly(work: Work) -> list[Event]:
        if work.iteration.endswith("3"):
            return [ending(work, error={"kind": "boom", "retryable": False, "message": "no", "details": {}})]
        return play(work)

    text = LOOP.replace("- step: start", "- step: start\n  spec: { policy: { failure: { mode: best_effort } } }")
    found = results(Drive(text, mostly).run({"n": 80}))
    assert [index for index, value in enumerate(found) if value is None] == list(range(3, 80, 10))


@pytest.mark.parametrize("over", [0, 1])
def test_they_are_put_aside_when_they_are_over_the_limit_and_not_before(over: int) -> None:
    pieces = 32
    size = LOOP_RESULTS_BYTES // pieces - 18  # and two numbers: its head, and that nothing was written
    drive = Drive(LOOP, lambda work: ok("x" * (size + (over if work.iteration == "0" else 0)))(work))
    drive.start({"n": pieces + 1})
    for _ in range(pieces):
        drive.perform(drive.ready.pop(0))
    assert any("stored" in event.data for event in drive.events) == bool(over)


def test_one_event_puts_only_so_many_aside() -> None:
    count = LOOP_RESULTS_STORED + 3_000
    size = LOOP_RESULTS_BYTES // count + 1
    drive = Drive(LOOP, ok("x" * size), control=Hand)
    drive.run({"n": count + 1})
    reported = [event.data for event in drive.events if "stored" in event.data]
    assert max(len(data["stored"]["at"]) for data in reported) == LOOP_RESULTS_STORED
    assert all(len(encode(data)) <= EVENT_BYTES_MAX for data in reported)
    assert len(results(drive)) == count + 1


REDUCED = LOOP.replace("max_in_flight: 7", "max_in_flight: 7, policy: { reducers: { seen: append } }")
AROUND = """
- step: start
  loop:
    in: [1, 2]
    iterator: m
    spec: { mode: parallel, policy: { reducers: { seen: extend } } }
    loop:
      in: "{{ range(workload.n) }}"
      iterator: n
      spec: { mode: parallel, max_in_flight: 7, policy: { reducers: { seen: append } } }
  tool: { kind: noop }
"""


@pytest.mark.parametrize(("loop", "names"), [(REDUCED, [""]), (AROUND, ["0.", "1."])], ids=["one", "nested"])
@pytest.mark.parametrize("seed", [None, 1])
def test_what_they_wrote_is_put_aside_too_and_merged_in_order(loop: str, names: list[str], seed: int | None) -> None:
    drive = Drive(loop, lambda work: ok(1, ctx={"seen": text(work)})(work)).run({"n": 100}, seed)
    assert any("patches" in event.data.get("stored", ()) for event in drive.events)
    seen = drive.control.offload.readable(drive.state.ctx)["seen"]
    assert [value.strip("x") for value in seen] == [f"{name}{index}" for name in names for index in range(100)]


def test_what_an_open_iteration_wrote_stays_where_it_sees_it() -> None:
    drive = Drive(REDUCED, lambda work: ok(1, ctx={"seen": text(work)})(work)).start({"n": 100})
    first = drive.ready.pop(0)
    wrote = ok(1, ctx={"seen": "mine"})(drive.control.work(first))
    drive.take(drive.control.report(*first[:3], wrote[:1]))
    while drive.ready:
        drive.perform(drive.ready.pop(0))
    assert any(loop.stored for loop in loops(drive.state))
    assert drive.control.work(first).ctx == {"seen": "mine"}
    drive.take(drive.control.report(*first[:3], wrote[1:]))
    assert drive.control.offload.readable(drive.state.ctx)["seen"][0] == "mine"


def test_small_results_are_not_put_aside() -> None:
    drive = Drive(LOOP, ok("small")).run({"n": 20})
    assert not any("stored" in event.data for event in drive.events)


def test_writes_of_some_iterations_are_put_aside_with_the_results_of_all() -> None:
    def writes_at_times(work: Work) -> list[Event]:
        index = int(work.iteration)
        return ok(text(work), ctx={f"k{index}": index})(work) if index % 2 else ok(text(work))(work)

    drive = Drive(LOOP, writes_at_times).run({"n": 120})
    assert any("patches" in event.data.get("stored", {}) for event in drive.events)
    assert drive.state.ctx == {f"k{index}": index for index in range(1, 120, 2)}
