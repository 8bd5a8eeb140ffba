"""The fold knows every event, and a state survives being written down."""

from __future__ import annotations

from noetlvm.data.encoding import decode, encode
from noetlvm.data.event import Event, Recorded, envelope
from noetlvm.language.events import EVENTS
from noetlvm.language.scopes import given_fields
from noetlvm.limits import CTX_BYTES_MAX
from noetlvm.machine.fold import HANDLERS, apply
from noetlvm.machine.state import State
from tests.noetlvm.machine.control.drive import Drive, Hand, bad, ok, task_done

WRITTEN = 60_000


def test_there_is_one_handler_for_each_event_that_is_recorded() -> None:
    assert set(HANDLERS) == {name for name, kind in EVENTS.items() if not kind.folded_into}


def test_what_an_event_is_folded_into_exists() -> None:
    assert {kind.folded_into for kind in EVENTS.values() if kind.folded_into} <= set(HANDLERS)


LOOP = """
- step: start
  tool: { kind: noop }
  next: { arcs: [{ step: all, args: { n: 1 } }] }
- step: all
  loop: { in: [1, 2, 3], iterator: n, spec: { mode: parallel, max_in_flight: 2 } }
  tool: { kind: noop }
"""


def test_every_prefix_of_a_log_folds_to_a_state_that_can_be_stored() -> None:
    drive = Drive(LOOP, {"start": ok(1, ctx={"a": 1}), "all": ok(2, ctx={"b": 1})}).run(seed=3)
    state = State()
    for event in drive.events:
        apply(state, event, 0.0)
        data = state.to_data()
        assert State.from_data(decode(encode(data))).to_data() == data
    assert state.to_data() == drive.state.to_data()


def test_events_carry_what_the_catalogue_says() -> None:
    reported = Drive(LOOP, {"start": ok(1, ctx={"a": 1}), "all": bad()}).run().events
    reported += Drive(LOOP).run().events
    for event in reported:
        payload = EVENTS[event.name].payload
        assert set(event.data) <= {field.name for field in payload}, event
        assert {field.name for field in payload if not field.optional} <= set(event.data), event


def test_an_envelope_has_every_identifier() -> None:
    event = Event("task.done", {"outcome": {"status": "error", "meta": {"attempt": 2}}}, 3, "2.1", 4, "fetch", 2)
    made = envelope("x", "root", Recorded(9, "id", 0.5, event))
    assert made == {
        "event_id": "id",
        "execution_id": "x",
        "trace_id": "root",
        "seq": 9,
        "timestamp": "1970-01-01T00:00:00.500+00:00",
        "source": "worker",
        "name": "task.done",
        "entity": "task",
        "entity_id": "x/3/2.1#4",
        "status": "error",
        "data": {"outcome": {"status": "error", "meta": {"attempt": 2, "trace_id": "root"}}},
        "step_run_id": "x/3",
        "iteration_id": "x/3/2.1",
        "task_run_id": "x/3/2.1#4",
        "task_label": "fetch",
        "attempt": 2,
    }


def test_every_event_of_a_run_has_an_envelope() -> None:
    drive = Drive(LOOP, {"start": ok(1, ctx={"a": 1}), "all": bad()}).run()
    made = [envelope("x", "x", Recorded(seq, "id", 1.0, event)) for seq, event in enumerate(drive.events, 1)]
    by_name = {row["name"]: row for row in made}
    assert [row["entity_id"] for row in made if row["name"] == "token.enqueued"] == ["x/token/1", "x/token/2"]
    assert by_name["workflow.started"]["entity_id"] == "x"
    assert by_name["loop.started"]["entity_id"] == "x/2"
    assert by_name["loop.iteration.failed"]["entity_id"] == "x/2/1"
    assert by_name["ctx.patched"]["entity_id"] == "x"
    assert by_name["ctx.patched"]["task_run_id"] == "x/1#1"
    assert (by_name["task.done"]["status"], by_name["step.done"]["status"]) == ("error", "success")
    assert (by_name["playbook.processed"]["status"], by_name["step.failed"]["status"]) == ("error", "error")


def test_a_boundary_event_has_the_fields_that_templates_are_promised() -> None:
    seen: set[str] = set()
    for play in (ok(), bad()):
        state = State()
        for event in Drive(LOOP, {"start": ok(), "all": play}).run().events:
            apply(state, event, 0.0)
            for run in state.runs.values():
                seen |= set(run.boundary or ())
    assert seen == given_fields("event")


def test_a_root_has_no_depth_and_is_requested_before_it_runs() -> None:
    drive = Drive(LOOP).start()
    state = State()
    apply(state, drive.events[0], 0.0)
    assert (state.status, state.depth, state.trace) == ("requested", 0, "x")


def test_tokens_of_an_older_log_are_made_by_the_event_that_routes() -> None:
    drive = Drive(LOOP).run()
    (at,) = [number for number, event in enumerate(drive.events) if event.name == "next.evaluated" and event.run == 1]
    routed, enqueued = drive.events[at : at + 2]
    token = {"id": enqueued.data["token"], "step": "all", "args": {"n": 1}}
    older = routed._replace(data=routed.data | {"tokens": [token]})
    state = State()
    for event in (*drive.events[:at], older):
        apply(state, event, 0.0)
    (made,) = state.tokens.values()
    assert (made.step, made.args, made.final) == ("all", {"n": 1}, False)
    assert made.event is not None
    assert made.event["name"] == "step.done"
    for event in drive.events[at + 2 :]:
        apply(state, event, 0.0)
    assert state.status == "success"


def test_ctx_is_measured_while_it_grows() -> None:
    drive = Drive(LOOP, control=Hand).start()
    (command,) = drive.ready
    for number in range(1, 2 * CTX_BYTES_MAX // WRITTEN):
        done = {"outcome": {"status": "ok"}, "do": "continue", "pc": 5, "ctx": {f"key_{number}": "x" * WRITTEN}}
        drive.take(drive.control.report(*command[:3], [task_done(done, number)]))
    assert drive.last("step.failed").data["error"]["kind"] == "limit"
    assert CTX_BYTES_MAX - 2 * WRITTEN < len(encode(drive.state.ctx)) <= CTX_BYTES_MAX


def test_a_thread_that_left_during_a_wait_is_not_given_out_before_its_end() -> None:
    """By the time of the log, 0, and not by that of the worker, 100; then its next worker does not wait again."""
    drive = Drive(LOOP).start()
    (command,) = drive.ready
    outcome = {"status": "error", "error": {}, "meta": {"ts": 100.0}}
    retry = {"outcome": outcome, "do": "retry", "pc": 1, "wait_s": 60, "suspended": True}
    drive.take(drive.control.report(*command[:3], [task_done(retry)]))
    thread = drive.state.thread(1, "")
    assert thread is not None
    assert (thread.lease, thread.opens, thread.frame.waiting) == (2, 60.0, 0)


SEQUENTIAL = """
- step: start
  loop: { in: [1, 2], iterator: n, spec: { mode: sequential } }
  tool: { kind: noop }
"""


def test_a_lost_lease_holds_for_iterations_of_its_unit_that_open_later() -> None:
    drive = Drive(SEQUENTIAL).start()
    (first,) = drive.ready
    drive.take(drive.control.expire(*first[:3]))
    drive.perform(drive.ready[-1])
    assert [(command.iteration, command.lease) for command in drive.ready] == [("0", 1), ("0", 2), ("1", 2)]
