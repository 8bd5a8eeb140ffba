"""What a pipeline does when a template fails, a tool gives nonsense, or it would never end."""

from __future__ import annotations

import pytest

from noetlvm.bytecode.verify.verifier import verify
from noetlvm.limits import IDLE_INSTRUCTIONS_MAX, MESSAGE_CHARS_MAX, TASK_RUNS_MAX
from noetlvm.machine import frame
from noetlvm.machine.loaded import prepare
from noetlvm.machine.state import FrameState
from tests.noetlvm.bytecode.programs import pipeline, playbook, program, step
from tests.noetlvm.machine.frame.pipelines import drive, error, ok, pipeline_of, rules, run, scope

# ---- templates (S10)


def test_inputs_that_cannot_be_rendered_are_an_error_outcome_with_its_place() -> None:
    ran = run(pipeline_of("- fetch: { kind: python, code: '', args: { url: '{{ ctx.nowhere }}' } }"))
    assert ran.calls == []
    assert ran.error["kind"] == "template"
    assert ran.error["retryable"] is False
    assert "`nowhere` is undefined" in ran.error["message"]
    place = ran.error["details"]["place"]
    assert place.startswith("playbook.yaml:8:")
    assert ran.error["message"].startswith(place)


def test_rules_decide_about_inputs_that_cannot_be_rendered() -> None:
    rule = "{ when: \"{{ outcome.error.kind == 'template' }}\", then: { do: skip } }"
    ran = run(pipeline_of(rules(rule, inputs="args: { url: '{{ ctx.nowhere }}' }")))
    assert ran.directives == ["skip"]
    assert ran.ended == ("done", None, None)


def test_a_rendering_that_is_retried_ends_with_its_attempts() -> None:
    rule = "else: { then: { do: retry, attempts: 4 } }"
    ran = run(pipeline_of(rules(rule, inputs="args: { url: '{{ ctx.nowhere }}' }")))
    assert ran.directives == ["retry", "retry", "retry", "fail"]
    assert ran.calls == []


@pytest.mark.parametrize(
    "rule",
    [
        "{ when: \"{{ outcome.result > 'a' }}\", then: { do: continue } }",
        'else: { then: { do: continue, set_ctx: { a: "{{ outcome.nothing }}" } } }',
        'else: { then: { do: retry, delay: "{{ ctx.nothing }}" } }',
        'else: { then: { do: continue, set_ctx: { a: "{{ [outcome.nothing] }}" } } }',
    ],
)
def test_a_rule_that_fails_itself_fails_the_task(rule: str) -> None:
    ran = run(pipeline_of(rules(rule)), ok(1))
    assert ran.directives == ["fail"]
    assert ran.error["kind"] == "template"
    assert ran.error["retryable"] is False
    reported = ran.events[0].data["outcome"]
    assert (reported["status"], reported["result"]) == ("error", 1)


def test_a_failing_rule_before_the_call_fails_the_task_unrun() -> None:
    ran = run(pipeline_of(rules("{ when: \"{{ ctx.n > 'a' }}\", then: { do: skip } }")), within=scope(ctx={"n": 1}))
    assert ran.calls == []
    assert ran.directives == ["fail"]
    assert ran.error["kind"] == "template"


def test_a_failing_condition_between_tasks_fails_the_pipeline() -> None:
    tasks = "- choose:\n    - when: \"{{ ctx.n > 'a' }}\"\n      then: [ { kind: noop } ]\n"
    ran = run(pipeline_of(tasks), within=scope(ctx={"n": 1}))
    assert [event.name for event in ran.events] == ["step.failed"]
    assert ran.error["kind"] == "template"


def test_a_failed_patch_writes_nothing() -> None:
    rule = 'else: { then: { do: continue, set_iter: { a: 1 }, set_ctx: { b: "{{ ctx.nothing }}" } } }'
    ran = run(pipeline_of(rules(rule), loop=True), within=scope(loop=True))
    assert "iter" not in ran.events[0].data


# ---- what tools give (S19)


def test_a_result_that_cannot_be_recorded_is_an_error_outcome_that_rules_see() -> None:
    rule = "{ when: \"{{ outcome.error.kind == 'encoding' }}\", then: { do: break } }"
    ran = run(pipeline_of(rules(rule)), ok(object()))
    assert ran.directives == ["break"]
    assert ran.ended == ("done", None, None)


def test_a_long_message_is_cut() -> None:
    outcome = error()
    outcome["error"]["message"] = "x" * 10_000
    ran = run(pipeline_of("- fetch: { kind: python, code: '' }"), outcome)
    assert len(ran.error["message"]) == MESSAGE_CHARS_MAX + 1


# ---- fuel (S20, S39)


def test_an_endless_jump_ends_at_the_limit_of_task_runs() -> None:
    tasks = rules("else: { then: { do: jump, to: fetch } }")
    ran = run(pipeline_of(tasks, limits="{ max_transitions: 7 }"))
    assert len(ran.calls) == 7
    assert ran.error["kind"] == "fuel"
    assert ran.events[-1].name == "step.failed"


def test_as_many_task_runs_as_the_limit_are_fine() -> None:
    ran = run(pipeline_of("- { kind: noop }\n- { kind: noop }", limits="{ max_transitions: 2 }"))
    assert ran.ended is not None
    assert ran.ended.status == "done"


@pytest.mark.parametrize(("before", "calls", "status"), [(2, 2, "done"), (1, 1, "failed"), (0, 0, "failed")])
def test_without_a_limit_of_its_own_a_pipeline_runs_as_many_tasks_as_are_allowed(
    before: int, calls: int, status: str
) -> None:
    saved = FrameState()
    saved.task = TASK_RUNS_MAX - before
    ran = drive(frame.Frame(pipeline_of("- { kind: noop }\n- { kind: noop }"), scope(), saved), iter(()))
    assert (len(ran.calls), ran.ended and ran.ended.status) == (calls, status)
    assert status == "done" or ran.error["kind"] == "fuel"


def rounds(times: int) -> str:
    return (
        f'- while:\n    when: "{{{{ ctx.n|default(0) < {times} }}}}"\n    max: 3\n    do:\n'
        "      - step_on:\n          kind: noop\n          spec:\n            policy:\n              rules:\n"
        '                - else: { then: { do: continue, set_ctx: { n: "{{ ctx.n|default(0) + 1 }}" } } }\n'
    )


def test_a_while_may_go_round_as_often_as_its_max() -> None:
    ran = run(pipeline_of(rounds(3)))
    assert len(ran.calls) == 3
    assert ran.ended is not None
    assert ran.ended.status == "done"


def test_a_while_that_goes_round_more_often_fails_for_want_of_fuel() -> None:
    ran = run(pipeline_of(rounds(4)))
    assert len(ran.calls) == 3
    assert ran.error["kind"] == "fuel"


def test_a_jump_that_meets_no_task_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame, "IDLE_INSTRUCTIONS_MAX", 1_000)
    spinning = program(playbook(step("start", code=pipeline(("MARK", "again"), ("GOTO", 0)))))
    verify(spinning)
    code = prepare(spinning).main.steps["start"].pipeline
    assert code is not None
    ran = run(code)
    assert ran.error["kind"] == "fuel"
    assert "without a tool" in ran.error["message"]
    assert frame.IDLE_INSTRUCTIONS_MAX < IDLE_INSTRUCTIONS_MAX


def test_tasks_without_end_are_no_idling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame, "IDLE_INSTRUCTIONS_MAX", 10)
    ran = run(pipeline_of(rules("else: { then: { do: jump, to: fetch } }"), limits="{ max_transitions: 500 }"))
    assert len(ran.calls) == 500
