"""What a pipeline reports, to the letter: each part of an event is there when it must be, and only then."""

from __future__ import annotations

from typing import Any

import pytest

from noetlvm.data.encoding import MASK
from noetlvm.data.event import Event
from noetlvm.data.references import Reference
from noetlvm.expr.values import Masked
from noetlvm.limits import MESSAGE_CHARS_MAX, WAIT_HELD_SECONDS
from noetlvm.machine.frame import Frame
from noetlvm.machine.instructions import DONE, FAILED, Ended, Wait, shortened
from noetlvm.machine.loaded import LoadedPipeline, prepare
from noetlvm.machine.payload import Offload
from noetlvm.machine.state import FrameState
from tests.noetlvm.bytecode.programs import EMPTY, Row, constant, pipeline, playbook, program, step
from tests.noetlvm.machine.frame.pipelines import Ran, drive, error, ok, pipeline_of, rules, run, scope

A = "- a: { kind: python, code: '' }\n"
B = "- b: { kind: python, code: '' }\n"
READS_A = "- c: { kind: python, code: '', args: { a: '{{ a }}' } }\n"
META = {"attempt": 1}
UNCALLED = {"attempt": 1, "duration_ms": 0, "ts": 7.0}
"""`meta` of a task whose tool was not called, at second 7."""
SECRET = "hunter2"


def redact(value: Any) -> Any:
    return MASK if value == SECRET else value


def code(*rows: Row, counters: int = 0) -> LoadedPipeline:
    """Return a pipeline of instructions that the compiler does not write so."""
    found = prepare(program(playbook(step("start", code=pipeline(*rows, counters=counters))))).main.steps["start"]
    assert found.pipeline is not None
    return found.pipeline


def done(ran: Ran) -> list[dict[str, Any]]:
    """Return the data of each end of a task, without where it continues."""
    of_tasks = (event.data for event in ran.events if event.name == "task.done")
    return [{key: value for key, value in data.items() if key not in ("pc", "at")} for data in of_tasks]


def went(do: str = "continue", result: Any = None, **more: Any) -> dict[str, Any]:
    return {"outcome": {"result": result, "status": "ok", "meta": META}, "do": do, **more}


def test_a_label_is_bound_where_a_later_task_reads_it_and_nowhere_else() -> None:
    assert done(run(pipeline_of(A + B + READS_A), ok(1))) == [went(result=1, bound=True), went(), went()]


def test_a_frame_that_is_restored_in_a_task_binds_no_label_by_itself() -> None:
    saved = FrameState()
    saved.pc, saved.task, saved.label, saved.attempt, saved.waiting = 1, 1, "a", 1, 0
    frame = Frame(pipeline_of(A), scope(), saved)
    frame.advance()
    frame.complete(ok())
    frame.advance()
    assert "bound" not in frame.take_events()[0].data


@pytest.mark.parametrize(("is_masked", "kind"), [(True, Masked), (False, str)])
def test_a_restored_result_is_masked_if_a_secret_was_removed_from_it(is_masked: bool, kind: type) -> None:
    saved = FrameState()
    saved.prev, saved.masked = MASK, is_masked
    assert type(Frame(pipeline_of(A), scope(), saved).names["_prev"]) is kind


def test_restored_labels_are_masked_if_a_secret_was_removed_from_them() -> None:
    saved = FrameState()
    saved.labels = {"a": [MASK, True], "b": [MASK, False]}
    steps = Frame(pipeline_of(A + B + READS_A), scope(), saved).names["steps"]
    assert type(steps("a")) is Masked
    assert steps("b") == MASK


@pytest.mark.parametrize(
    ("result", "given", "rule", "more"),
    [
        (SECRET, {"repeatable": True}, "do: continue", {"masked": True, "again": True}),
        (SECRET, {"repeatable": True}, "do: continue, set_ctx: { n: 1 }", {"ctx": {"n": 1}, "masked": True}),
        (SECRET, {}, "do: continue", {"masked": True}),
        (SECRET, {"repeatable": True}, "do: break", {}),
        ("plain", {"repeatable": True}, "do: continue", {}),
    ],
)
def test_a_result_with_a_secret_is_marked_where_a_later_task_might_read_it(
    result: str, given: dict[str, bool], rule: str, more: dict[str, Any]
) -> None:
    frame = Frame(
        pipeline_of(rules(f"else: {{ then: {{ {rule} }} }}")), scope(offload=Offload(redact=redact)), FrameState()
    )
    frame.advance()
    frame.complete(ok(result), **given)
    frame.advance()
    assert done(Ran(events=frame.take_events())) == [went(rule.split()[1].rstrip(","), redact(result), **more)]


def test_inputs_that_cannot_be_rendered_took_no_time() -> None:
    text = "- a: { kind: python, code: '', args: { x: '{{ ctx.nowhere }}' } }"
    (found,) = done(run(pipeline_of(text), within=scope(now=lambda: 7.0)))
    assert found["outcome"]["meta"] == {"duration_ms": 0, "attempt": 1, "ts": 7.0}


def test_a_task_reports_nothing_of_the_one_before() -> None:
    skips = rules('{ when: "{{ ctx.have_it }}", then: { do: skip } }', label="b")
    fails = rules("{ when: \"{{ ctx.have_it > 'a' }}\", then: { do: skip } }", label="b")
    around = scope(ctx={"have_it": 1}, now=lambda: 7.0)
    skipped = done(run(pipeline_of(A + skips), within=around))[1]
    assert skipped == {"outcome": {"status": "ok", "meta": UNCALLED}, "do": "skip"}
    failed = done(run(pipeline_of(A + fails), within=around))[1]
    assert set(failed) == {"outcome", "do"}
    assert set(failed["outcome"]) == {"status", "error", "meta"}
    assert failed["outcome"]["meta"] == UNCALLED


def test_what_a_skipped_tool_returned_is_reported_for_a_replay() -> None:
    rule = '{ when: "{{ outcome.status }}", then: { do: skip } }'
    skipped = {"outcome": {"status": "ok", "meta": META}, "do": "skip", "answered": {"result": 5, "status": "ok"}}
    assert done(run(pipeline_of(rules(rule)), ok(5))) == [skipped]


def test_what_a_tool_returned_is_reported_for_a_replay_where_a_rule_cannot_decide() -> None:
    (found,) = done(run(pipeline_of(rules("{ when: \"{{ outcome.result > 'a' }}\", then: { do: skip } }")), ok(5)))
    assert found["answered"] == {"result": 5, "status": "ok"}


def test_several_writes_of_one_task_are_one_write() -> None:
    written = [("PATCH", None, constant({name: 1})) for name in "ab"]
    ran = run(code(("ENTER", "a"), ("CALL", "noop", EMPTY, EMPTY), *written, ("CONTINUE", 5), "END"))
    assert done(ran) == [went(ctx={"a": 1, "b": 1})]


ROUNDS = (
    *(("LABEL", "again"), ("ROUND", 0, 2), ("ENTER", "a"), ("CALL", "noop", EMPTY, EMPTY)),
    *(("CONTINUE", "next"), ("LABEL", "next"), ("ENTER", "b"), ("CALL", "noop", EMPTY, EMPTY), ("CONTINUE", "again")),
)


def test_rounds_count_from_none_and_are_reported_when_they_have_changed() -> None:
    ran = run(code(*ROUNDS, counters=2))
    assert done(ran) == [went(rounds=[1, 0]), went(), went(rounds=[2, 0]), went()]


def test_a_restored_frame_goes_on_counting_rounds() -> None:
    saved = FrameState()
    saved.rounds = [1, 7]
    assert done(drive(Frame(code(*ROUNDS, counters=2), scope(), saved), iter(()))) == [went(rounds=[2, 7]), went()]


@pytest.mark.parametrize(("more", "is_held"), [(0, True), (0.5, False)])
def test_a_worker_holds_a_wait_that_is_not_too_long(more: float, is_held: bool) -> None:
    rule = f"else: {{ then: {{ do: retry, attempts: 2, delay: {WAIT_HELD_SECONDS + more} }} }}"
    frame = Frame(pipeline_of(rules(rule)), scope(), FrameState())
    frame.advance()
    frame.complete(ok())
    assert type(frame.advance()) is (Wait if is_held else Ended)


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (error(), "gave up after 2 attempts: it failed"),
        (ok(), "gave up after 2 attempts: the last outcome is `ok`, and its rule says `retry`"),
    ],
)
def test_an_error_after_the_last_attempt_names_the_last_outcome(outcome: dict[str, Any], message: str) -> None:
    ran = run(pipeline_of(rules("else: { then: { do: retry, attempts: 2 } }")), outcome, outcome)
    assert ran.error["message"] == message


def test_a_message_that_is_stored_elsewhere_stays_as_it_is() -> None:
    outcome = error()
    outcome["error"]["message"] = "x" * 300
    code = pipeline_of(rules("else: { then: { do: retry, attempts: 2 } }"))
    assert type(run(code, outcome, outcome, within=scope(offload=Offload(200))).error["message"]) is Reference


@pytest.mark.parametrize("outcome", [ok("x" * 300), error(result="x" * 400, http={"body": "y" * 300})])
def test_what_is_large_in_an_outcome_is_stored_elsewhere_but_never_its_meta(outcome: dict[str, Any]) -> None:
    meta = {"note": "m" * 300}
    ran = run(pipeline_of(A), outcome | {"meta": meta}, within=scope(offload=Offload(500)))
    found = done(ran)[0]["outcome"]
    assert type(found["result"]) is str if "error" not in found else type(found["result"]) is Reference
    assert found["meta"] == meta | META
    assert found["status"] == outcome["status"]


def test_an_error_counts_once_towards_the_limit() -> None:
    outcome = error()
    outcome["error"]["details"] = {"n": "x" * 100}
    ran = run(pipeline_of(A), outcome, within=scope(offload=Offload(200)))
    assert done(ran)[0]["outcome"]["error"] == outcome["error"]


def test_a_pipeline_that_failed_between_tasks_fails_again() -> None:
    tasks = "- choose:\n    - when: \"{{ ctx.n > 'a' }}\"\n      then: [ { kind: noop } ]\n"
    frame = Frame(pipeline_of(tasks), scope(ctx={"n": 1}), FrameState())
    for _ in range(2):
        ended = frame.advance()
        assert isinstance(ended, Ended)
        assert ended.status == "failed"
    assert frame.pc == FAILED


@pytest.mark.parametrize(
    ("pc", "event"),
    [
        (DONE, Event("step.done", {"result": 7}, 1)),
        (
            FAILED,
            Event(
                "step.failed",
                {
                    "error": {
                        "kind": "policy",
                        "retryable": False,
                        "message": "the task `a` failed",
                        "details": {},
                    },
                    "at": "",
                    "task": "a",
                },
                1,
            ),
        ),
    ],
)
def test_a_pipeline_whose_last_task_has_ended_reports_that(pc: int, event: Event) -> None:
    saved = FrameState()
    saved.pc, saved.prev, saved.label = pc, 7, "a"
    frame = Frame(pipeline_of(A), scope(), saved)
    frame.advance()
    assert frame.take_events() == [event]


def test_a_pipeline_lets_others_run_between_instructions() -> None:
    waits = 0
    frame = Frame(code(*(("MARK", "a"),) * 9, "END"), scope(), FrameState())
    while isinstance(frame.advance(lambda: True), Wait):
        waits += 1
    assert (waits, frame.pc) == (2, DONE)
    assert Frame(code(*(("MARK", "a"),) * 9, "END"), scope(), FrameState()).advance(lambda: False) == Ended("done")


@pytest.mark.parametrize("odd", [object(), {f"key_{number}": number for number in range(20_000)}])
def test_what_cannot_be_recorded_is_left_out(odd: object) -> None:
    frame = Frame(pipeline_of("- a: { kind: python, code: '' }"), scope(), FrameState())
    frame.advance()
    frame.inputs = {"odd": object()} if not isinstance(odd, dict) else odd
    frame.complete({"status": "ok", "result": object(), **(odd if isinstance(odd, dict) else {"odd": odd})})
    frame.advance()
    (found,) = done(Ran(events=frame.take_events()[:1]))
    assert set(found) == {"outcome", "do"}
    assert set(found["outcome"]) == {"status", "result", "error", "meta"}


def test_a_rule_may_fail_a_task_before_its_tool_runs() -> None:
    ran = run(code(("ENTER", "a"), "FAIL"), within=scope(now=lambda: 7.0))
    assert done(ran) == [{"outcome": {"status": "error", "error": ran.error, "meta": UNCALLED}, "do": "fail"}]


@pytest.mark.parametrize(("length", "is_cut"), [(MESSAGE_CHARS_MAX, False), (MESSAGE_CHARS_MAX + 1, True)])
def test_a_message_that_is_too_long_is_cut(length: int, is_cut: bool) -> None:
    assert shortened("x" * length) == "x" * MESSAGE_CHARS_MAX + ("…" if is_cut else "")


@pytest.mark.parametrize(("attempts", "message"), [(1, "it failed"), (0, "`attempts` must be")])
def test_one_attempt_may_be_all_and_fewer_cannot_be(attempts: int, message: str) -> None:
    rule = "else: { then: { do: retry, attempts: '{{ ctx.n }}' } }"
    ran = run(pipeline_of(rules(rule)), error(), within=scope(ctx={"n": attempts}))
    assert message in ran.error["message"]
    assert "gave up" not in ran.error["message"]


def test_a_reset_counts_rounds_from_none_again() -> None:
    saved = FrameState()
    saved.rounds = [1]
    rows: tuple[Row, ...] = (("ENTER", "a"), ("CALL", "noop", EMPTY, EMPTY), ("CONTINUE", 5), "END")
    ran = drive(Frame(code(("RESET", 0), ("ROUND", 0, 1), *rows, counters=1), scope(), saved), iter(()))
    assert done(ran) == [went(rounds=[1])]


def test_a_while_may_be_allowed_no_round() -> None:
    tasks = "- while:\n    when: '{{ true }}'\n    max: '{{ ctx.n }}'\n    do:\n      - a: { kind: noop }\n"
    ran = run(pipeline_of(tasks), within=scope(ctx={"n": 0}))
    assert (ran.calls, ran.error["kind"]) == ([], "fuel")
