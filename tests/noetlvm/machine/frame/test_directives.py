"""Each directive and each default of a pipeline."""

from __future__ import annotations

import pytest

from noetlvm.bytecode.isa import PIPELINE
from noetlvm.machine.frame import Frame
from noetlvm.machine.instructions import BINDERS, DONE, FAILED, Ended
from noetlvm.machine.state import FrameState
from tests.noetlvm.machine.frame.pipelines import drive, error, ok, pipeline_of, program_of, rules, run, scope

SAVE = "- save: { kind: noop }\n"
ON_ERROR = "when: \"{{ outcome.status == 'error' }}\""


def test_every_instruction_has_a_binder_and_every_binder_an_instruction() -> None:
    assert set(BINDERS) == set(PIPELINE)


# ---- without a policy (S13)


def test_without_a_policy_success_goes_on() -> None:
    ran = run(pipeline_of("- fetch: { kind: noop }\n" + SAVE), ok(1), ok(2))
    assert ran.labels == ["fetch", "save"]
    assert ran.ended == ("done", 2, None)
    assert [event.name for event in ran.events] == ["task.done", "task.done", "step.done"]


def test_without_a_policy_an_error_fails() -> None:
    ran = run(pipeline_of("- fetch: { kind: python, code: '' }\n" + SAVE), error("timeout"))
    assert ran.labels == ["fetch"]
    assert ran.directives == ["fail"]
    assert ran.error["kind"] == "timeout"
    assert ran.events[-1].name == "step.failed"
    assert ran.events[-1].data["task"] == "fetch"


def test_a_policy_without_a_match_goes_on_even_after_an_error() -> None:
    ran = run(pipeline_of(rules('{ when: "{{ outcome.result }}", then: { do: fail } }')), error())
    assert ran.directives == ["continue"]
    assert ran.ended == ("done", None, None)


def test_rules_are_tried_in_order() -> None:
    first = '{ when: "{{ outcome.result > 1 }}", then: { do: break } }'
    pipeline = pipeline_of(rules(first, "else: { then: { do: fail } }"))
    assert run(pipeline, ok(2)).directives == ["break"]
    assert run(pipeline, ok(1)).directives == ["fail"]


# ---- ends


def test_break_ends_as_done_with_the_result() -> None:
    ran = run(pipeline_of(rules("else: { then: { do: break } }") + SAVE), ok("page"))
    assert ran.labels == ["fetch"]
    assert ran.ended == ("done", "page", None)


def test_a_rule_may_fail_a_success() -> None:
    ran = run(pipeline_of(rules("else: { then: { do: fail } }")), ok())
    assert ran.error["kind"] == "policy"
    assert "`fetch`" in ran.error["message"]
    assert ran.events[-1].data["at"].startswith("playbook.yaml:")


def test_a_failed_task_shows_its_rendered_inputs() -> None:
    pipeline = pipeline_of("- fetch: { kind: python, code: 'result = id', args: { id: '{{ ctx.id }}' } }")
    ran = run(pipeline, error(), within=scope(ctx={"id": 7}))
    assert ran.events[0].data["inputs"] == {"code": "result = id", "args": {"id": 7}}


def test_inputs_that_may_hold_secrets_are_shown_only_where_secrets_are_redacted() -> None:
    pipeline = pipeline_of("- fetch: { kind: python, code: 'result = 1' }")
    ran = run(pipeline, error(), within=scope(keychain={"token": "hunter2"}))
    assert "inputs" not in ran.events[0].data


# ---- _prev (S16)


def prev(name: str) -> str:
    return f"- {name}: {{ kind: python, code: '', args: {{ seen: '{{{{ _prev }}}}' }} }}\n"


def seen(call_inputs: dict[str, dict[str, object]]) -> object:
    return call_inputs["args"]["seen"]


def test_prev_is_null_first_and_then_the_result_of_the_task_before() -> None:
    ran = run(pipeline_of(prev("a") + prev("b")), ok([1]))
    assert [seen(call.inputs) for call in ran.calls] == [None, [1]]


def test_prev_changes_on_jump_and_stays_on_skip() -> None:
    tasks = (
        rules("else: { then: { do: jump, to: c } }", label="a")
        + SAVE
        + rules('{ when: "{{ outcome.status }}", then: { do: skip } }', label="c")
        + prev("d")
    )
    ran = run(pipeline_of(tasks), ok("from a"), ok("from c"), ok("from d"))
    assert ran.labels == ["a", "c", "d"]
    assert ran.directives == ["jump", "skip", "continue"]
    assert seen(ran.calls[-1].inputs) == "from a"
    assert ran.ended == ("done", "from d", None)


# ---- skip (S17)


def test_a_leading_skip_keeps_the_tool_from_running() -> None:
    ran = run(
        pipeline_of(rules('{ when: "{{ ctx.have_it }}", then: { do: skip } }') + SAVE),
        within=scope(ctx={"have_it": True}),
    )
    assert ran.labels == ["save"]
    assert ran.directives == ["skip", "continue"]
    assert [event.name for event in ran.events[:2]] == ["task.started", "task.done"]
    assert (ran.events[0].data, ran.events[1].data["outcome"]["status"]) == ({}, "ok")


@pytest.mark.parametrize("condition", ['when: "{{ ctx.have_it }}", then', "else"])
def test_a_leading_skip_that_writes_keeps_the_tool_from_running_too(condition: str) -> None:
    then = '{ do: skip, set_ctx: { why: "{{ ctx.have_it }}" } }'
    rule = f"{{ {condition}: {then} }}" if "when" in condition else f"{{ else: {{ then: {then} }} }}"
    ran = run(pipeline_of(rules(rule) + SAVE), within=scope(ctx={"have_it": "cached"}))
    assert ran.labels == ["save"]
    assert ran.directives == ["skip", "continue"]
    assert ran.events[1].data["ctx"] == {"why": "cached"}


def test_a_skip_that_writes_something_of_the_outcome_comes_after_the_tool() -> None:
    ran = run(pipeline_of(rules('{ else: { then: { do: skip, set_ctx: { kept: "{{ outcome.result }}" } } } }')), ok(7))
    assert ran.directives == ["skip"]
    assert ran.events[0].data["ctx"] == {"kept": 7}


def test_a_later_skip_takes_an_error_for_a_success() -> None:
    ran = run(pipeline_of(rules('{ when: "{{ outcome.error.retryable }}", then: { do: skip } }')), error())
    assert ran.directives == ["skip"]
    assert ran.events[0].data["outcome"]["status"] == "ok"


# ---- retry (S14, S15)


def retry(more: str = "") -> str:
    return f"{{ {ON_ERROR}, then: {{ do: retry{more} }} }}"


def test_a_retry_runs_three_times_in_all_unless_it_says_otherwise() -> None:
    ran = run(pipeline_of(rules(retry())), error(), error(), error("last"))
    assert [call.attempt for call in ran.calls] == [1, 2, 3]
    assert ran.directives == ["retry", "retry", "fail"]
    assert ran.error["kind"] == "last"


def test_a_retry_keeps_the_task_run_and_a_jump_begins_a_new_one() -> None:
    again = '{ when: "{{ outcome.result }}", then: { do: jump, to: fetch } }'
    ran = run(pipeline_of(rules(retry(", attempts: 2"), again)), error(), ok(True), error(), ok(False))
    assert [(call.task, call.attempt) for call in ran.calls] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert [call.key for call in ran.calls] == ["e1/1#1", "e1/1#1", "e1/1#2", "e1/1#2"]
    assert ran.ended is not None
    assert ran.ended.status == "done"


@pytest.mark.parametrize(
    ("backoff", "waits"),
    [
        ("none", [2, 2, 2, 2]),
        ("linear", [2, 4, 6, 8]),
        ("exponential", [2, 4, 8, 16]),
    ],
)
def test_waits_grow_as_the_backoff_says(backoff: str, waits: list[float]) -> None:
    rule = retry(f", attempts: 5, backoff: {backoff}, delay: 0.25")
    found = run(pipeline_of(rules(rule)), *[error()] * 5).waits
    assert found == [wait / 8 for wait in waits]


def test_no_wait_is_over_an_hour() -> None:
    rule = retry(", attempts: 80, backoff: exponential, delay: 1000")
    waits = []
    saved = FrameState()
    for attempt in range(1, 6):
        frame = Frame(pipeline_of(rules(rule)), scope(), saved)
        ran = drive(frame, iter([error()] * 2))
        assert ran.ended is not None
        assert ran.ended.status == "suspended"
        (done,) = [event for event in ran.events if event.name == "task.done"]
        assert done.data["suspended"]
        assert done.attempt == attempt
        waits.append(done.data["wait_s"])
        saved.pc, saved.task, saved.label, saved.attempt = done.data["pc"], done.task, done.label, done.attempt
        saved.waiting = 0
    assert waits == [1000, 2000, 3600, 3600, 3600]


def test_without_a_delay_there_is_no_wait() -> None:
    ran = run(pipeline_of(rules(retry())), error(), ok())
    assert ran.waits == []
    assert "wait_s" not in ran.events[0].data


@pytest.mark.parametrize("delay", ["soon", True, [1], float("nan"), float("inf"), "1e999"])
def test_a_delay_that_is_no_number_fails_the_task(delay: object) -> None:
    rule = retry(", attempts: 5, delay: '{{ ctx.delay }}'")
    ran = run(pipeline_of(rules(rule)), error(), within=scope(ctx={"delay": delay}))
    assert ran.error["kind"] == "template"
    assert "`delay` must be a number of seconds" in ran.error["message"]


@pytest.mark.parametrize(("delay", "seconds"), [("3", 3), ("0.5", 0.5), (" 2 ", 2)])
def test_a_delay_that_is_the_text_of_a_number_is_that_number(delay: str, seconds: float) -> None:
    rule = retry(", attempts: 2, delay: '{{ ctx.delay }}'")
    ran = run(pipeline_of(rules(rule)), error(), error(), within=scope(ctx={"delay": delay}))
    assert ran.waits == [seconds]


def test_a_negative_delay_is_no_wait() -> None:
    rule = retry(", attempts: 2, delay: '{{ ctx.delay }}'")
    assert run(pipeline_of(rules(rule)), error(), within=scope(ctx={"delay": -5})).waits == []


# ---- patches (S18)


def test_both_patches_are_computed_before_either_is_written() -> None:
    rule = (
        'else: { then: { do: continue, set_iter: { n: "{{ iter.n|default(0) + 1 }}" }, '
        'set_ctx: { n: "{{ iter.n|default(0) }}" } } }'
    )
    ran = run(pipeline_of(rules(rule), loop=True), ok(), within=scope(loop=True))
    assert ran.events[0].data["iter"] == {"n": 1}
    assert ran.events[0].data["ctx"] == {"n": 0}
    assert ran.events[-1].name == "loop.iteration.done"


def test_later_tasks_see_what_was_written() -> None:
    rule = 'else: { then: { do: continue, set_iter: { a: "{{ item }}" }, set_ctx: { b: 2 } } }'
    show = "- show: { kind: python, code: '', args: { a: '{{ iter.a }}', b: '{{ ctx.b }}', i: '{{ iter.index }}' } }"
    ran = run(pipeline_of(rules(rule) + show, loop=True), within=scope(loop=True))
    assert ran.calls[-1].inputs["args"] == {"a": 1, "b": 2, "i": 0}


def test_a_patch_with_a_retry_is_reported_with_it() -> None:
    rule = f'{{ {ON_ERROR}, then: {{ do: retry, set_ctx: {{ seen: "{{{{ outcome.error.kind }}}}" }} }} }}'
    ran = run(pipeline_of(rules(rule)), error("busy"), ok())
    assert [event.data.get("ctx") for event in ran.events[:2]] == [{"seen": "busy"}, None]


NESTED = """
workload: { cities: [{ hotels: [1] }] }
workflow:
  - step: start
    loop:
      in: "{{ workload.cities }}"
      iterator: city
      loop: { in: "{{ iter.city.hotels }}", iterator: hotel }
    tool:
      - show: { kind: python, code: '', args: { city: '{{ iter.parent.city }}' } }
"""


def test_the_parent_of_an_iteration_is_in_reach() -> None:
    around = scope(loop=True, iter={"hotel": 1, "index": 0, "parent": {"city": "Oslo", "index": 3}})
    code = program_of(NESTED).main.steps["start"].pipeline
    assert code is not None
    assert run(code, within=around).calls[0].inputs["args"] == {"city": "Oslo"}


# ---- names


def test_a_task_sees_its_label_and_attempt() -> None:
    inputs = "args: { label: '{{ _task }}', attempt: '{{ _attempt }}', id: '{{ execution_id }}' }"
    ran = run(pipeline_of(rules(retry(), inputs=inputs)), error(), ok())
    assert [call.inputs["args"] for call in ran.calls] == [
        {"label": "fetch", "attempt": 1, "id": "e1"},
        {"label": "fetch", "attempt": 2, "id": "e1"},
    ]


def test_the_outcome_has_its_attempt_and_what_the_tool_reported() -> None:
    rule = (
        'else: { then: { do: break, set_ctx: { meta: "{{ outcome.meta }}", status: "{{ outcome.http.status }}", '
        'error: "{{ outcome.error is undefined }}" } } }'
    )
    outcome = ok(meta={"duration_ms": 5}, http={"status": 200})
    ran = run(pipeline_of(rules(rule)), outcome, within=scope(trace_id="top"))
    meta = {"duration_ms": 5, "attempt": 1}
    assert ran.events[0].data["ctx"] == {"meta": meta | {"trace_id": "top"}, "status": 200, "error": True}
    assert ran.events[0].data["outcome"]["meta"] == meta


def test_a_bare_name_may_be_the_result_of_a_step() -> None:
    show = "- show: { kind: python, code: '', args: { n: '{{ start.n }}' } }"
    assert run(pipeline_of(show), within=scope(results={"start": {"n": 4}})).calls[0].inputs["args"] == {"n": 4}


def test_what_a_tool_sees_around_its_call_has_no_secret() -> None:
    around = scope(results={"start": {"n": 4}}, keychain={"api": {"token": "not-a-real-token"}}, ctx={"page": 2})
    frame = Frame(pipeline_of("- show: { kind: python, code: '' }"), around, FrameState())
    frame.advance()
    seen = frame.context()
    assert (seen["start"], seen["ctx"]) == ({"n": 4}, {"page": 2})
    assert not {"keychain", "steps"} & seen.keys()


@pytest.mark.parametrize(("pc", "kind"), [(DONE, "done"), (FAILED, "failed")])
def test_a_pipeline_whose_last_task_has_ended_ends_as_that_says(pc: int, kind: str) -> None:
    state = FrameState()
    state.pc, state.prev, state.label = pc, 7, "fetch"
    ended = Frame(pipeline_of("- fetch: { kind: python, code: '' }"), scope(), state).advance()
    assert isinstance(ended, Ended)
    assert (ended.status, ended.result) == (kind, 7 if kind == "done" else None)
