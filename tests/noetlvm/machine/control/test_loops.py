"""Loops: collections, order, width, scopes, failure, nesting (S21 to S29)."""

from __future__ import annotations

from typing import Any

import pytest

from noetlvm.data.event import Event
from noetlvm.machine.messages import Work
from tests.noetlvm.machine.control.drive import Drive, Play, bad, ok


def loop_step(collection: str, spec: str = "{}", failure: str = "fail_fast", more: str = "") -> str:
    return f"""
- step: start
  spec: {{ policy: {{ failure: {{ mode: {failure} }} }} }}
  loop: {{ in: {collection}, iterator: n, spec: {spec} }}
  tool: {{ kind: noop, reads: "{{{{ ctx }}}}" }}
{more}
"""


PARALLEL = "{ mode: parallel }"


def item(work: Work) -> Any:
    assert work.iter is not None
    return work.iter["n"]


def echo(work: Work) -> list[Event]:
    return ok(item(work))(work)


def writes(key: str) -> Play:
    """Return a worker that writes the element to `ctx`."""
    return lambda work: ok(None, ctx={key: item(work)})(work)


def fails_at(element: int) -> Play:
    return lambda work: (bad() if item(work) == element else echo)(work)


def test_results_stand_in_index_order() -> None:
    drive = Drive(loop_step("[3, 1, 2]", PARALLEL), echo).run(seed=4)
    assert drive.last("loop.done").data == {"result": [3, 1, 2], "loop": {"total": 3, "ok": 3, "failed": 0}}
    assert drive.state.results == {"start": [3, 1, 2]}


def test_a_loop_says_its_rate_when_it_starts_if_it_has_one() -> None:
    text = "- {{ step: start, loop: {{ in: [1, 2], iterator: n, spec: {{ {0} }} }}, tool: {{ kind: noop }} }}"
    plain = Drive(text.format("mode: parallel")).start().last("loop.started").data
    rated = Drive(text.format("mode: parallel, rate: { max: 1, per: 2 }")).start().last("loop.started").data
    assert rated.keys() - plain.keys() == {"rate"}
    assert plain.keys() <= rated.keys()


def test_a_mapping_is_iterated_as_keys_and_values() -> None:
    drive = Drive(loop_step("'{{ workload.cities }}'"), echo).run({"cities": {"a": 1, "b": 2}})
    assert drive.last("loop.done").data["result"] == [{"key": "a", "value": 1}, {"key": "b", "value": 2}]


@pytest.mark.parametrize("spec", ["{}", PARALLEL])
def test_an_empty_list_is_done_at_once(spec: str) -> None:
    drive = Drive(loop_step("'{{ workload.items }}'", spec)).start({"items": []})
    assert drive.last("loop.done").data == {"result": [], "loop": {"total": 0, "ok": 0, "failed": 0}}
    assert drive.state.status == "success"


def test_what_is_no_collection_fails_the_step() -> None:
    drive = Drive(loop_step("'{{ workload.items }}'")).start({"items": 5})
    error = drive.last("step.failed").data["error"]
    assert error["kind"] == "loop"
    assert "not a whole number" in error["message"]


def test_an_undefined_collection_is_a_template_error_with_its_place() -> None:
    drive = Drive(loop_step("'{{ workload.nothing }}'")).start()
    error = drive.last("step.failed").data["error"]
    assert error["kind"] == "template"
    assert "playbook.yaml:" in error["message"]


def test_exactly_one_boundary_event_and_one_routing() -> None:
    drive = Drive(loop_step("[1, 2]", PARALLEL), echo).run()
    names = drive.names()
    assert [names.count(name) for name in ("loop.done", "step.done", "step.failed", "next.evaluated")] == [1, 0, 0, 1]


def test_sequential_iterations_see_the_patches_of_those_before() -> None:
    seen = []

    def play(work: Work) -> list[Event]:
        seen.append(work.ctx.get("total", 0))
        return ok(None, ctx={"total": work.ctx.get("total", 0) + item(work)})(work)

    drive = Drive(loop_step("[1, 2, 3]"), play).run()
    assert seen == [0, 1, 3]
    assert drive.state.ctx == {"total": 6}
    assert drive.names().count("ctx.patched") == 3


def test_parallel_iterations_see_the_ctx_of_the_loops_start_and_their_own_patches() -> None:
    drive = Drive(loop_step("[1, 2]", "{ mode: parallel, policy: { reducers: { k: append } } }")).start()
    first, second = drive.ready
    reported = ok(None, ctx={"k": 1})(drive.control.work(first))
    drive.take(drive.control.report(*first[:3], reported[:1]))
    assert drive.control.work(first).ctx == {"k": 1}
    assert drive.control.work(second).ctx == {}
    assert drive.state.ctx == {}
    for command in (second, first):
        drive.take(drive.control.report(*command[:3], reported[1:]))
    assert drive.state.ctx == {"k": [1]}
    assert drive.names().count("ctx.patched") == 1


def test_conflicting_writes_fail_the_step_even_with_best_effort() -> None:
    drive = Drive(loop_step("[1, 2]", PARALLEL, "best_effort"), writes("k")).run()
    failed = drive.last("step.failed").data
    assert failed["error"]["kind"] == "ctx_conflict"
    assert failed["loop"] == {"total": 2, "ok": 2, "failed": 0}
    assert "ctx.patched" not in drive.names()
    assert drive.state.status == "failed"


def test_fail_fast_opens_nothing_more_and_waits_for_what_runs() -> None:
    drive = Drive(loop_step("[1, 2, 3, 4]", "{ mode: parallel, max_in_flight: 2 }")).start()
    first, second = drive.ready
    drive.take(drive.control.report(*first[:3], ok()(drive.control.work(first))[:1]))
    drive.play = bad("boom")
    drive.perform(second)
    assert "step.failed" not in drive.names()
    drive.play = ok()
    drive.perform(first)
    assert drive.ready == [first, second]
    failed = drive.last("step.failed").data
    assert failed["error"]["kind"] == "boom"
    assert (failed["failed_iteration"], failed["loop"]) == ("1", {"total": 4, "ok": 1, "failed": 1})
    assert drive.state.failures[0]["iteration"] == "1"
    assert drive.state.status == "failed"


def test_fail_fast_cancels_what_has_not_started() -> None:
    drive = Drive(loop_step("[1, 2, 3, 4]", "{ mode: parallel, max_in_flight: 3 }"), bad("boom"))
    drive.start()
    reported = drive.perform(drive.ready[0])
    assert drive.control.take_stopped() == [(1, "1"), (1, "2")]
    assert [event.name for event in reported][4:8] == ["loop.iteration.failed"] * 2 + ["step.failed", "next.evaluated"]
    assert reported[4].data["cancelled"]
    assert drive.last("step.failed").data["loop"] == {"total": 4, "ok": 0, "failed": 1}


def test_fail_fast_cancels_what_has_not_started_and_waits_for_what_has() -> None:
    drive = Drive(loop_step("[1, 2, 3]", "{ mode: parallel, max_in_flight: 3 }")).start()
    running, failing, _waiting = drive.ready
    drive.take(drive.control.report(*running[:3], ok()(drive.control.work(running))[:1]))
    drive.play = bad("boom")
    drive.perform(failing)
    assert drive.control.take_stopped() == [(1, "2")]
    assert "step.failed" not in drive.names()
    drive.play = ok()
    drive.perform(running)
    assert drive.last("step.failed").data["loop"] == {"total": 3, "ok": 1, "failed": 1}


def test_the_failure_of_the_lowest_index_counts() -> None:
    drive = Drive(loop_step("[1, 2]", PARALLEL), lambda work: bad(f"at_{item(work)}")(work)).start()
    first, second = drive.ready
    drive.take(drive.control.report(*first[:3], drive.play(drive.control.work(first))[:1]))
    for command in (second, first):
        drive.perform(command)
    assert drive.last("step.failed").data["failed_iteration"] == "0"


def test_best_effort_counts_failures_and_goes_on() -> None:
    drive = Drive(loop_step("[1, 2, 3]", "{}", "best_effort"), fails_at(2)).run()
    done = drive.last("loop.done").data
    assert done["result"] == [1, None, 3]
    assert [failed["index"] for failed in done["loop"].pop("failures")] == [1]
    assert done["loop"] == {"total": 3, "ok": 2, "failed": 1}
    assert drive.state.status == "success"


NESTED = """
- step: start
  spec: { policy: { failure: { mode: FAILURE } } }
  loop:
    in: "{{ workload.cities }}"
    iterator: city
    spec: { mode: OUTER, max_in_flight: 2, policy: { reducers: { rooms: extend } } }
    loop:
      in: "{{ iter.city.hotels }}"
      iterator: n
      spec: { mode: INNER, policy: { reducers: { rooms: append } } }
  tool: { kind: noop, reads: "{{ ctx }}" }
"""
CITIES = {"cities": [{"name": "a", "hotels": [1, 2]}, {"name": "b", "hotels": []}, {"name": "c", "hotels": [3]}]}


def nested(outer: str, inner: str, failure: str = "fail_fast") -> str:
    text = NESTED.replace("OUTER", outer).replace("INNER", inner).replace("FAILURE", failure)
    return text.replace("mode: sequential, max_in_flight: 2,", "mode: sequential,")


@pytest.mark.parametrize("inner", ["sequential", "parallel"])
@pytest.mark.parametrize("outer", ["sequential", "parallel"])
@pytest.mark.parametrize("seed", range(5))
def test_nested_loops_give_nested_results(outer: str, inner: str, seed: int) -> None:
    drive = Drive(nested(outer, inner), echo).run(CITIES, seed)
    assert drive.last("loop.done").data["result"] == [[1, 2], [], [3]]
    assert drive.last("loop.done").data["loop"] == {"total": 3, "ok": 3, "failed": 0}


def test_iter_of_a_nested_loop_has_its_parent() -> None:
    drive = Drive(nested("sequential", "sequential")).start(CITIES)
    (command,) = drive.ready
    parent = {"city": CITIES["cities"][0], "index": 0}
    assert drive.control.work(command).iter == {"n": 1, "index": 0, "parent": parent}
    assert command.iteration == "0.0"


def test_patches_of_nested_parallel_loops_merge_level_by_level() -> None:
    drive = Drive(nested("parallel", "parallel"), writes("rooms")).run(CITIES, 3)
    assert drive.state.ctx == {"rooms": [1, 2, 3]}


def test_patches_of_a_sequential_loop_inside_a_parallel_one_stay_with_its_iteration() -> None:
    seen: dict[str, Any] = {}

    def play(work: Work) -> list[Event]:
        seen[work.iteration] = work.ctx.get("rooms")
        return ok(None, ctx={"rooms": [*work.ctx.get("rooms", []), item(work)]})(work)

    drive = Drive(nested("parallel", "sequential"), play).run(CITIES, 1)
    assert seen == {"0.0": None, "0.1": [1], "2.0": None}
    assert drive.state.ctx == {"rooms": [1, 2, 3]}


def test_a_parallel_loop_inside_a_sequential_one_writes_ctx_at_its_end() -> None:
    drive = Drive(nested("sequential", "parallel"), writes("rooms")).run(CITIES)
    patches = [event.data["patch"] for event in drive.events if event.name == "ctx.patched"]
    assert patches == [{"rooms": [1, 2]}, {"rooms": [1, 2, 3]}]


def test_a_failure_in_a_nested_loop_stops_every_level() -> None:
    drive = Drive(nested("parallel", "sequential"), fails_at(1)).run(CITIES)
    assert drive.last("step.failed").data["failed_iteration"] == "0.0"
    assert "0.1" not in {event.iteration for event in drive.events}


@pytest.mark.parametrize("failure", ["fail_fast", "best_effort"])
def test_every_iteration_that_started_ends_once_also_when_its_loop_fails(failure: str) -> None:
    """Also those that contain a loop (S61), and one whose writes could not be merged."""
    text = nested("parallel", "parallel", failure).replace("{ rooms: append }", "{ other: append }")
    cities = {"cities": [{"hotels": [1]}, {"hotels": [2, 3]}, {"hotels": [4, 5]}, {"hotels": [6, 7]}]}
    for seed in range(20):
        names = [(event.name, event.iteration) for event in Drive(text, writes("rooms")).run(cities, seed).events]
        started = [path for name, path in names if name == "loop.iteration.started"]
        ended = [path for name, path in names if name in ("loop.iteration.done", "loop.iteration.failed")]
        assert sorted(started) == sorted(path for path in ended if path in started)
        assert "0" in started


@pytest.mark.parametrize("outer", [PARALLEL, "{ mode: parallel, max_in_flight: 2 }", "{ mode: sequential }"])
@pytest.mark.parametrize("inner", [PARALLEL, "{ mode: parallel, max_in_flight: 2 }", "{ mode: sequential }"])
def test_no_schedule_changes_which_failure_fails_a_loop(outer: str, inner: str) -> None:
    """It is the one that a loop in order would come to: also of inner loops whose writes conflict."""
    text = f"""
- step: start
  loop:
    {{ in: [0, 1, 2, 3], iterator: m, spec: {outer}, loop: {{ in: "{{{{ range(3) }}}}", iterator: n, spec: {inner} }} }}
  tool: {{ kind: noop, reads: "{{{{ ctx }}}}" }}
"""

    def play(work: Work) -> list[Event]:
        first, second = map(int, work.iteration.split("."))
        fails = (first, second) in ((2, 0), (1, 2), (3, 0))
        return (bad(f"at_{work.iteration}") if fails else ok(None, ctx={"k": second if first in (1, 3) else 0}))(work)

    failures = [Drive(text, play).run(seed=seed).last("step.failed").data for seed in range(20)]
    found = {(data["failed_iteration"], data["error"]["kind"]) for data in failures}
    assert found == {("1.2", "at_1.2")}


@pytest.mark.parametrize("failure", ["fail_fast", "best_effort"])
def test_of_several_inner_loops_whose_writes_conflict_the_first_is_named(failure: str) -> None:
    text = nested("parallel", "parallel", failure).replace("{ rooms: append }", "{ other: append }")
    cities = {"cities": [{"hotels": [1]}, {"hotels": [2, 3]}, {"hotels": [4, 5]}, {"hotels": [6, 7]}]}
    failures = [Drive(text, writes("rooms")).run(cities, seed).last("step.failed").data for seed in range(20)]
    assert {data["failed_iteration"] for data in failures} == {"1"}


def test_an_inner_collection_that_is_none_fails_its_iteration() -> None:
    cities = {"cities": [{"hotels": 1}, {"hotels": [5]}]}
    drive = Drive(nested("parallel", "sequential"), echo).run(cities)
    assert drive.last("step.failed").data["error"]["kind"] == "loop"
    drive = Drive(nested("parallel", "sequential", "best_effort"), echo).run(cities)
    done = drive.last("loop.done").data
    assert done["result"] == [None, [5]]
    assert [failed["error"]["kind"] for failed in done["loop"].pop("failures")] == ["loop"]
    assert done["loop"] == {"total": 2, "ok": 1, "failed": 1}


def test_a_loop_without_a_tool_never_reaches_a_worker() -> None:
    drive = Drive(
        "- { step: start, loop: { in: [1, 2], iterator: n }, next: { arcs: [{ step: end }] } }\n- step: end"
    ).start()
    assert drive.ready == []
    assert drive.last("loop.done").data == {"result": [None, None], "loop": {"total": 2, "ok": 2, "failed": 0}}


@pytest.mark.parametrize(
    ("spec", "units"),
    [
        ("{ mode: parallel }", ["0", "1"]),
        ("{ mode: parallel, policy: { exec: local } }", ["", ""]),
        ("{ policy: { exec: distributed } }", ["0"]),
        ("{}", [""]),
    ],
)
def test_a_local_loop_is_covered_by_one_lease_and_a_distributed_one_by_one_each(spec: str, units: list[str]) -> None:
    assert [command.unit for command in Drive(loop_step("[1, 2]", spec)).start().ready] == units


def test_large_collections_and_results_go_by_reference_and_can_be_read_back() -> None:
    drive = Drive(loop_step("'{{ workload.items }}'"), echo).run({"items": ["x" * 40_000, "y" * 40_000]})
    result = drive.last("loop.done").data["result"]
    assert result.size > 80_000
    assert drive.control.offload.read(result) == ["x" * 40_000, "y" * 40_000]
    assert drive.last("loop.started").data["items"].size > 80_000


def test_elements_that_are_stored_elsewhere_are_read_one_by_one() -> None:
    big = ["x" * 70_000, "y" * 70_000]
    text = loop_step(
        "'{{ workload.items }}'",
        PARALLEL,
        more="""
  next: { arcs: [{ step: again }] }
- step: again
  loop: { in: "{{ start }}", iterator: n, spec: { mode: parallel } }
  tool: { kind: noop }
""",
    )
    drive = Drive(text)
    seen = []

    def play(work: Work) -> list[Event]:
        seen.append(item(work))
        return ok(drive.control.offload.shrink(item(work)))(work)

    drive.play = play
    drive.run({"items": big})
    assert seen == big * 2
    assert drive.control.offload.read(drive.state.result) == big


def test_too_many_items_fail_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noetlvm.machine.loops.LOOP_ITEMS_MAX", 3)
    assert Drive(loop_step("[1, 2, 3]")).run().state.status == "success"
    drive = Drive(loop_step("[1, 2, 3, 4]")).run()
    assert drive.last("step.failed").data["error"]["message"] == "a loop may have 3 items, not 4"


INNER = """
- step: start
  spec: { policy: { failure: { mode: MODE } } }
  loop:
    in: [1, 2]
    iterator: m
    loop: { in: [1, 2], iterator: n, spec: { mode: parallel } }
  tool: { kind: noop }
"""


def test_writes_of_an_inner_loop_that_do_not_agree_fail_the_step_even_if_failures_are_tolerated() -> None:
    drive = Drive(INNER.replace("MODE", "best_effort"), writes("key")).run()
    assert drive.last("step.failed").data["error"]["kind"] == "ctx_conflict"
    assert "loop.done" not in drive.names()


def test_a_nested_loop_that_fails_counts_the_iterations_that_ran() -> None:
    drive = Drive(INNER.replace("MODE", "fail_fast"), fails_at(2)).run()
    assert drive.last("step.failed").data["loop"] == {"total": 2, "ok": 1, "failed": 1}


def test_failures_are_listed_by_index_and_those_beyond_the_first_hundred_are_stored() -> None:
    drive = Drive(loop_step("'{{ range(103) }}'", PARALLEL, "best_effort"), bad()).run(seed=1)
    loop = drive.last("loop.done").data["loop"]
    assert (loop["total"], loop["failed"]) == (103, 103)
    listed, rest = (drive.control.offload.readable(loop[name]) for name in ("failures", "more_failures"))
    assert [failure["index"] for failure in listed] == list(range(100))
    assert [failure["index"] for failure in rest] == [100, 101, 102]
