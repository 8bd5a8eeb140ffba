"""A frame restored from the log continues as the first one would have; checked mode does what the fast one does."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noetlvm.bytecode.isa import BACKOFFS
from noetlvm.bytecode.program import InvalidBundleError, LoopHeader, Pipeline
from noetlvm.bytecode.verify.verifier import verify
from noetlvm.data.encoding import decode, encode
from noetlvm.data.event import Event
from noetlvm.expr.errors import InternalError
from noetlvm.limits import Limits
from noetlvm.machine.fold import apply
from noetlvm.machine.frame import Frame
from noetlvm.machine.instructions import CallTool, Ended, Wait
from noetlvm.machine.loaded import LoadedPipeline, prepare
from noetlvm.machine.payload import Offload
from noetlvm.machine.state import FrameState, Run, State, Thread
from tests.noetlvm.bytecode.programs import EMPTY, Row, constant, expression, guard, pipeline, playbook, program, step
from tests.noetlvm.bytecode.programs import retry as retry_row
from tests.noetlvm.machine.frame.pipelines import error, ok, pipeline_of, rules, scope

TASKS = (
    rules(
        '{ when: "{{ ctx.stop }}", then: { do: skip } }',
        '{ when: "{{ outcome.error.retryable }}", then: { do: retry, attempts: 3, backoff: linear, delay: 1, '
        'set_ctx: { tries: "{{ ctx.tries|default(0) + 1 }}" } } }',
        '{ when: "{{ outcome.error }}", then: { do: fail } }',
        '{ when: "{{ outcome.result is string }}", then: { do: jump, to: fetch, '
        'set_ctx: { last: "{{ outcome.result }}" }, set_iter: { pages: "{{ iter.pages|default(0) + 1 }}" } } }',
        '{ when: "{{ outcome.result == 13 }}", then: { do: break } }',
        inputs="args: { prev: '{{ _prev|string|length }}', page: '{{ iter.pages|default(0) }}', "
        "last: '{{ ctx.last|default(none)|string|length }}', attempt: '{{ _attempt }}', item: '{{ iter.item }}' }",
    )
    + """
- while:
    when: "{{ ctx.n|default(0) < 2 }}"
    max: 3
    do:
      - choose:
          - when: "{{ _prev }}"
            then:
              - odd:
                  kind: python
                  code: ""
                  args: { task: "{{ _task }}", tries: "{{ ctx.tries|default(0) }}" }
          - else:
              then:
                - even: { kind: noop }
      - count:
          kind: noop
          spec:
            policy:
              rules:
                - when: "{{ outcome.result == 7 }}"
                  then: { do: skip }
                - else:
                    then: { do: continue, set_ctx: { n: "{{ ctx.n|default(0) + 1 }}" } }
- last: { kind: python, code: "", args: { prev: "{{ _prev|string|length }}", n: "{{ ctx.n }}" } }
"""
)

LONG = "x" * 300
"""Longer than a payload may be here."""

OUTCOMES = st.one_of(
    st.sampled_from([ok(), ok(0), ok(1), ok(7), ok(13), ok("page"), ok(LONG), ok({"a": [1]}), ok((1, 2))]),
    st.builds(error, st.sampled_from(["http", "timeout"]), st.booleans()),
)

Trace = list[Any]


@cache
def compiled(checked: bool = False) -> LoadedPipeline:
    return pipeline_of(TASKS, loop=True, limits="{ max_transitions: 25 }", checked=checked)


def trace(frame: Frame, script: list[dict[str, Any]], done: int = 0) -> Trace:
    """Return everything that happens; `done` outcomes of the script are used up already, and at its end it repeats."""
    made: Trace = []
    while True:
        effect = frame.advance()
        made += frame.take_events()
        made.append(effect if not isinstance(effect, Wait) else effect.seconds)
        if isinstance(effect, Ended):
            return made
        if isinstance(effect, CallTool):
            frame.complete(script[done % len(script)])
            done += 1


def begun(code: LoadedPipeline, offload: Offload, ctx: dict[str, Any], saved: FrameState) -> Frame:
    return Frame(code, scope(loop=True, offload=offload, ctx=ctx), saved)


def folded(log: list[Event]) -> tuple[FrameState, dict[str, Any]]:
    """Return the frame's state and ctx after these events, which go through the log's encoding first."""
    state = State()
    run = state.runs[1] = Run("start", {}, False, state.view)
    thread = run.threads["0"] = Thread(state.view, 1, 0.0)
    ctx: dict[str, Any] = {}
    for event in log:
        data = decode(encode(event.data))
        ctx |= data.pop("ctx", {})
        apply(state, event._replace(data=data), 0.0)
    return thread.frame, ctx


def assert_goes_on_the_same(code: LoadedPipeline, script: list[dict[str, Any]]) -> Trace:
    """Run a pipeline, then from after each of its task runs again; return what happened."""
    offload = Offload(limit=200)
    whole = trace(begun(code, offload, {}, FrameState()), script)
    log: list[Event] = []
    for at, happened in enumerate(whole):
        if isinstance(happened, Event) and happened.name == "task.done" and happened.data["pc"] >= 0:
            log.append(happened)
            if happened.data.get("suspended"):  # after its wait it goes on under another command
                assert whole[at + 1 :] == [Ended("suspended")]
                continue
            saved, ctx = folded(log)
            calls = sum(isinstance(one, CallTool) for one in whole[:at])
            assert trace(begun(code, offload, ctx, saved), script, calls) == whole[at + 1 :]
    return whole


@settings(max_examples=40, deadline=None)
@given(st.lists(OUTCOMES, min_size=1, max_size=12))
def test_restored_at_any_point_it_goes_on_the_same(script: list[dict[str, Any]]) -> None:
    whole = assert_goes_on_the_same(compiled(), script)
    assert isinstance(whole[-1], Ended)


@settings(max_examples=40, deadline=None)
@given(st.lists(OUTCOMES, min_size=1, max_size=12))
def test_checked_mode_does_the_same(script: list[dict[str, Any]]) -> None:
    fast = trace(begun(compiled(), Offload(limit=200), {}, FrameState()), script)
    assert trace(begun(compiled(checked=True), Offload(limit=200), {}, FrameState()), script) == fast


def test_a_frame_leaves_its_saved_state_alone() -> None:
    saved = FrameState()
    before = saved.to_data()
    trace(begun(compiled(), Offload(), {}, saved), [ok("page"), ok(1)])
    assert saved.to_data() == before


def test_an_interrupted_wait_begins_again() -> None:
    saved = FrameState()
    saved.pc, saved.task, saved.label, saved.attempt, saved.waiting = 3, 1, "fetch", 1, 30
    frame = begun(compiled(), Offload(), {}, saved)
    assert frame.advance() == Wait(30)
    call = frame.advance()
    assert isinstance(call, CallTool)
    assert (call.task, call.label, call.attempt) == (1, "fetch", 2)


def test_a_call_without_an_outcome_is_requested_again() -> None:
    frame = begun(compiled(), Offload(), {}, FrameState())
    assert frame.advance() == frame.advance()


def test_the_beginning_of_an_attempt_can_be_reported() -> None:
    frame = begun(compiled(), Offload(), {}, FrameState())
    frame.advance()
    assert frame.started(ts=5) == Event("task.started", {"ts": 5}, 1, "0", 1, "fetch", 1)


# ---- any pipeline

STATUS = (("NAME", "outcome"), ("ATTR", "status"))
GUARDS = st.sampled_from(
    [
        guard(("CONST", True)),
        guard(*STATUS, ("CONST", "error"), ("COMPARE", "==")),
        guard(("NAME", "ctx"), ("ATTR", "n")),
        guard(("NAME", "_attempt"), ("CONST", 2), ("COMPARE", "<")),
        guard(("NAME", "_prev"), ("CONST", 1), ("COMPARE", ">")),
    ]
)
PATCHES = st.sampled_from(
    [
        (),
        (("PATCH", None, constant({"n": 1})),),
        (("PATCH", constant({"n": 0}), constant({"n": 0})),),
        (("PATCH", expression(("NAME", "_prev"), ("RECORD", ["n"]), "RETURN"), None),),
        (("PATCH", None, expression(("NAME", "ctx"), ("REQUIRE", "n"), ("RECORD", ["n"]), "RETURN")),),
    ]
)
DELAYS = st.sampled_from([None, constant(2), constant("soon"), expression(("NAME", "_prev"), "RETURN")])


@st.composite
def codes(draw: st.DrawFn) -> Pipeline:
    """Make a pipeline of tasks with any rules."""
    count = draw(st.integers(1, 4))
    made: list[Row] = []
    for task in range(count):
        made += [("LABEL", f"t{task}"), ("ENTER", f"task_{task}"), ("LABEL", f"call{task}")]
        made.append(("CALL", "noop", expression(("NAME", "_prev"), ("RECORD", ["p"]), "RETURN"), EMPTY))
        for rule in range(draw(st.integers(0, 3))):
            made += [("UNLESS", draw(GUARDS), f"t{task}_{rule}"), *draw(PATCHES)]
            made += draw(st.sampled_from(DIRECTIVES))(draw, task, count)
            made.append(("LABEL", f"t{task}_{rule}"))
        made.append(("CONTINUE", f"t{task + 1}"))
    return pipeline(*made, ("LABEL", f"t{count}"), "END")


def retry(draw: st.DrawFn, task: int, _count: int) -> list[Row]:
    backoff = draw(st.sampled_from(BACKOFFS))
    return [retry_row(f"call{task}", draw(st.integers(1, 3)), backoff, draw(DELAYS)), "FAIL"]


DIRECTIVES: list[Callable[[st.DrawFn, int, int], list[Row]]] = [
    lambda draw, task, count: [("CONTINUE", f"t{task + 1}")],
    lambda draw, task, count: [("SKIP", f"t{task + 1}")],
    lambda draw, task, count: [("JUMP_TO", f"t{draw(st.integers(0, count))}")],
    lambda draw, task, count: ["BREAK"],
    lambda draw, task, count: ["FAIL"],
    retry,
]


def loaded(code: Pipeline, *, checked: bool = False) -> LoadedPipeline:
    items = LoopHeader(constant([1]), "item", parallel=False, width=1, distributed=False, reducers=())
    made = program(playbook(step("start", code=code, loops=(items,))))
    verify(made)
    found = prepare(made, checked=checked).main.steps["start"].pipeline
    assert found is not None
    found.limits = Limits(max_transitions=20)
    return found


@settings(max_examples=80, deadline=None)
@given(codes(), st.lists(OUTCOMES, min_size=1, max_size=5))
def test_any_pipeline_goes_on_the_same_and_is_the_same_in_checked_mode(
    code: Pipeline, script: list[dict[str, Any]]
) -> None:
    whole = assert_goes_on_the_same(loaded(code), script)
    assert trace(begun(loaded(code, checked=True), Offload(limit=200), {}, FrameState()), script) == whole


def test_checked_mode_catches_an_instruction_that_is_not_due() -> None:
    code = pipeline_of("- a: { kind: noop }", checked=True)
    frame = begun(code, Offload(), {}, FrameState())
    with pytest.raises(InternalError, match="another instruction is due"):
        code.performs[1](frame)


@pytest.mark.parametrize(
    "code",
    [
        pipeline("FAIL"),
        pipeline(("CALL", "noop", EMPTY, EMPTY), "END"),
        pipeline(("ENTER", "a"), "END"),
        pipeline(("ENTER", "a"), ("CONTINUE", 2), "END"),
        pipeline(("GOTO", 9), "END"),
        pipeline(("GOTO", 1)),
        pipeline(("ENTER", "a"), ("CALL", "noop", constant(5), EMPTY), ("CONTINUE", 3), "END"),
        pipeline(("ENTER", "a"), ("CALL", "noop", EMPTY, constant(5)), ("CONTINUE", 3), "END"),
    ],
)
def test_checked_mode_catches_what_the_verifier_must_refuse(code: Pipeline) -> None:
    wrong = program(playbook(step("start", code=code)))
    with pytest.raises(InvalidBundleError):
        verify(wrong)
    careful = prepare(wrong, checked=True).main.steps["start"].pipeline
    assert careful is not None
    with pytest.raises(InternalError):
        trace(begun(careful, Offload(), {}, FrameState()), [ok()])
