"""The engine performs the machine's effects in order, durably, and no more of them at once than it may."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from noetlvm.data.encoding import encode
from noetlvm.data.references import Reference
from noetlvm.limits import EVENT_BYTES_MAX, INLINE_BYTES
from noetlvm.record import changed
from noetlvm.results.files import FileResults
from noetlvm.rounds.active import Ending
from noetlvm.rounds.credentials import Credentials, UnresolvedError
from noetlvm.rounds.requests import BadRequestError
from noetlvm.tools.call import Outcome, ToolCall, error, ok
from tests.fake_clock import FakeClock
from tests.noetlvm.engine.runs import Session, bundle_of, labels
from tests.waiting import turns

CHAIN = """
- step: start
  tool:
    - one: { kind: shell, command: [one] }
    - two: { kind: shell, command: [two] }
  next: { arcs: [{ step: after }] }
- step: after
  tool:
    - three: { kind: shell, command: [three] }
"""

NOOPS = """
- step: start
  tool: { kind: noop }
  next: { arcs: [{ step: after }] }
- step: after
  tool: { kind: noop }
"""

LOOP = """
- step: start
  loop:
    in: "{{ workload.items }}"
    iterator: item
    spec: { mode: parallel, max_in_flight: 8, policy: { reducers: { total: sum } } }
  tool:
    - work:
        kind: shell
        command: ["{{ iter.item | string }}"]
        spec:
          policy:
            rules:
              - when: "{{ outcome.status == 'error' }}"
                then: { do: fail }
              - else:
                  then: { do: continue, set_ctx: { total: "{{ iter.item }}" } }
"""

RETRY = """
- step: start
  tool:
    - flaky:
        kind: shell
        command: [flaky]
        spec:
          policy:
            rules:
              - when: "{{ outcome.status == 'error' }}"
                then: { do: retry, attempts: 5, backoff: exponential, delay: 100 }
              - else:
                  then: { do: continue }
"""


def test_tasks_run_in_order_and_the_last_result_is_that_of_the_execution() -> None:
    session = Session()
    ending = session.run(CHAIN)
    assert ending.status == "success"
    assert labels(session.tools.calls) == ["one", "two", "three"]
    assert ending.result == "done"
    assert session.tools.is_closed


def test_a_no_op_step_of_one_task_makes_seven_events() -> None:
    session = Session()
    ending = session.run(NOOPS)
    names = session.names(ending.execution_id)
    of_step = ["step.scheduled", "step.started", "task.started", "task.done", "step.done", "next.evaluated"]
    assert names[4:11] == [*of_step, "token.enqueued"]
    assert len(names) == 4 + 7 + 6 + 2


def test_a_tool_begins_only_when_everything_before_it_is_durable() -> None:
    session = Session()
    known: list[list[str]] = []

    async def play(call: ToolCall) -> Outcome:
        execution_id = call.key.partition("/")[0]
        known.append([one.event.label for one in session.store.events(execution_id) if one.event.name == "task.done"])
        return ok()

    session.tools.play = play
    session.run(CHAIN)
    assert known == [[], ["one"], ["one", "two"]]


def test_every_event_is_received_once_it_is_durable() -> None:
    session = Session()
    ending = session.run(CHAIN)
    assert session.received == list(session.store.events(ending.execution_id))


def test_a_loop_runs_no_more_at_once_than_its_width() -> None:
    session = Session(lambda call: _later(ok(call.inputs["command"])))
    ending = session.run(LOOP, payload={"items": list(range(40))})
    assert ending.ctx == {"total": sum(range(40))}
    assert session.tools.most == 8


def test_an_engine_runs_no_more_at_once_than_it_may() -> None:
    session = Session(lambda call: _later(ok(call.inputs["command"])))
    session.run(LOOP, payload={"items": list(range(20))}, max_parallel=3)
    assert session.tools.most == 3


async def _later(outcome: Outcome) -> Outcome:
    await turns()
    return outcome


def test_waiting_before_a_retry_takes_no_slot_and_costs_no_real_time() -> None:
    failures = iter([error("net", "no"), error("net", "no"), error("net", "no")])

    async def play(_call: ToolCall) -> Outcome:
        return next(failures, ok("at last"))

    session = Session(play)
    before = session.clock.now()
    ending = session.run(RETRY, max_parallel=1)
    assert ending.result == "at last"
    assert session.clock.now() - before == 100 + 200 + 400


def test_a_retry_of_a_task_whose_inputs_cannot_be_rendered_waits_as_any_other() -> None:
    """The wait is counted from the failure, so another worker or a crash does not begin it again."""
    session = Session(clock=FakeClock(0))
    ending = session.run(
        """
- step: start
  tool:
    - a:
        kind: noop
        value: "{{ workload.absent if _attempt < 3 else 1 }}"
        spec:
          policy:
            rules:
              - { when: "{{ outcome.status == 'error' }}", then: { do: retry, attempts: 3, delay: 100 } }
              - else: { then: { do: continue } }
"""
    )
    assert ending.status == "success"
    assert session.clock.now() == 200


def test_a_failure_that_nobody_handles_fails_the_execution() -> None:
    async def play(_call: ToolCall) -> Outcome:
        return error("boom", "it broke")

    ending = Session(play).run(CHAIN)
    assert ending.status == "failed"
    assert ending.failures[0]["error"]["message"] == "it broke"


def test_a_pipeline_of_instant_tasks_lets_others_have_their_turn() -> None:
    text = """
    - step: start
      tool:
        - while:
            when: "{{ (ctx.n | default(0)) < 2000 }}"
            max: 3000
            do:
              - count:
                  kind: noop
                  spec:
                    policy:
                      rules:
                        - else:
                            then: { do: continue, set_ctx: { n: "{{ (ctx.n | default(0)) + 1 }}" } }
    """
    session = Session()
    ending = session.run(text)
    assert ending.ctx == {"n": 2000}
    started = [one.event for one in session.received if one.event.name == "step.started"]
    assert len(started) == 1


def test_a_large_result_goes_by_reference_and_is_read_back_in_a_later_step() -> None:
    large = "x" * (INLINE_BYTES + 1)
    text = """
    - step: start
      tool:
        - make: { kind: shell, command: [make] }
      next: { arcs: [{ step: after }] }
    - step: after
      tool:
        - read:
            kind: shell
            command: ["{{ start | length | string }}"]
    """
    session = Session(lambda call: _later(ok(large if call.label == "make" else call.inputs["command"])))
    ending = session.run(text)
    assert ending.result == [str(len(large))]
    done = next(one for one in session.store.events(ending.execution_id) if one.event.name == "step.done")
    assert type(done.event.data["result"]) is Reference


def test_many_executions_share_an_engine() -> None:
    session = Session()

    async def go() -> list[Ending]:
        engine = session.engine()
        bundle = bundle_of(NOOPS)
        begun = [engine.start(bundle, {}) for _ in range(50)]
        await engine.run()
        return [engine.ending(one) for one in begun]

    endings = asyncio.run(go())
    assert {ending.status for ending in endings} == {"success"}
    assert len({ending.execution_id for ending in endings}) == 50


def test_a_tool_that_breaks_the_engine_takes_it_down_loudly() -> None:
    async def play(_call: ToolCall) -> Outcome:
        raise ZeroDivisionError("a defect of the tool runner")

    with pytest.raises(ZeroDivisionError):
        Session(play).run(CHAIN)


# ---- keychain


KEYED = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: keyed, path: keyed }
keychain:
  - { name: pg, kind: postgres_credential }
workflow:
  - step: start
    tool:
      - ask: { kind: postgres, auth: pg, command: select 1 }
"""


def test_a_credential_that_is_missing_fails_the_request_before_anything_runs() -> None:
    def resolve(_declared: Any) -> Credentials:
        raise UnresolvedError("there is no entry `pg`")

    session = Session()
    ending = session.run(KEYED, resolve=resolve)
    assert ending.status == "failed"
    assert ending.failures[0]["error"]["message"] == "there is no entry `pg`"
    assert session.tools.calls == []


def test_auth_gives_the_tool_its_keychain_entry() -> None:
    session = Session()
    session.run(KEYED, resolve=lambda _declared: Credentials({"pg": {"password": "hunter2-secret"}}))
    assert session.tools.calls[0].keychain == {"pg": {"password": "hunter2-secret"}}


def test_what_a_tool_says_is_recorded_without_secrets() -> None:
    session = Session(lambda call: _later(ok("it is hunter2-secret")))
    ending = session.run(KEYED, resolve=lambda _declared: Credentials({"pg": "x"}, ["hunter2-secret"]))
    assert "hunter2" not in str(list(session.store.events(ending.execution_id)))
    assert ending.result == "it is ***"


def test_a_secret_that_is_read_while_it_runs_can_be_used_and_is_not_recorded() -> None:
    text = """
    - step: start
      tool:
        - read: { kind: secrets, secret: token }
        - use: { kind: http, url: "https://example.com", headers: { Authorization: "{{ _prev }}" } }
    """
    answers = {"read": "hunter2-secret", "use": "you said hunter2-secret"}
    session = Session(lambda call: _later(ok(answers[call.label])))
    ending = session.run(text)
    assert session.tools.calls[1].inputs["headers"] == {"Authorization": "hunter2-secret"}
    assert "hunter2" not in str(list(session.store.events(ending.execution_id)))
    assert ending.result == "you said ***"


def test_fifty_megabytes_go_by_reference(tmp_path: Path) -> None:
    large = "0123456789" * 5_000_000
    text = """
    - step: start
      tool:
        - make: { kind: shell, command: [make] }
      next: { arcs: [{ step: after }] }
    - step: after
      tool:
        - read: { kind: shell, command: ["{{ start }}"] }
    """
    session = Session(lambda call: _later(ok(large if call.label == "make" else len(call.inputs["command"][0]))))
    session.results = FileResults(tmp_path)
    ending = session.run(text)
    assert ending.result == len(large)
    largest = max(len(encode(one.event.data)) for one in session.store.events(ending.execution_id))
    assert largest < EVENT_BYTES_MAX


def assert_refused(session: Session, why: str) -> None:
    (row,) = session.store.executions()
    assert row.status == "failed"
    names = ["playbook.execution.requested", "playbook.request.evaluated", "playbook.processed"]
    assert session.names(row.execution_id) == names
    assert why in list(session.store.events(row.execution_id))[1].event.data["error"]["message"]
    assert session.tools.calls == []


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        ({f"key_{number}": "x" * 40 for number in range(20_000)}, "cannot be recorded"),
        ({"a": {1: 2}}, "cannot be recorded: `payload` has a mapping with the key 1, and keys are text"),
        ({1: 2}, "cannot be recorded: `payload` has a mapping with the key 1, and keys are text"),
        ({"a": [10**5000]}, "cannot be recorded: a number of more than 14,000 bits is not data"),
    ],
)
def test_a_request_that_cannot_be_recorded_leaves_a_log_that_says_why(payload: dict[str, Any], why: str) -> None:
    session = Session()
    with pytest.raises(BadRequestError, match=why):
        session.run(NOOPS, payload=payload)
    assert_refused(session, why)


@pytest.mark.parametrize(
    ("ctx", "why"),
    [
        ({"not a name": 1}, "the keys of `ctx` are plain names, and `not a name` is none"),
        ({f"key_{number}": "x" * 40 for number in range(20_000)}, "cannot be recorded"),
        ({"it": object()}, "cannot be recorded"),
        ({"it": [{2: 3}]}, "cannot be recorded: `ctx` has a mapping with the key 2, and keys are text"),
        ({"\ud800": 1}, r"the keys of `ctx` are plain names, and `\\ud800` is none"),
    ],
)
def test_a_first_ctx_that_cannot_be_leaves_a_log_that_says_why(ctx: dict[str, Any], why: str) -> None:
    session = Session()
    with pytest.raises(BadRequestError, match=why):
        session.engine().start(bundle_of(NOOPS), {}, ctx=ctx)
    assert_refused(session, why.replace("\\\\", "\\"))


FAILING = """
- step: start
  MODE
  loop: { in: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], iterator: n, spec: { mode: parallel } }
  tool:
    - prepare: { kind: noop, spec: { policy: { rules: [{ else: { then: { do: continue, set_iter: { a: 1 } } } }] } } }
    - work: { kind: shell, command: ["{{ (iter.n + iter.a) | string }}"] }
"""


@pytest.mark.parametrize("width", [1, 3])
def test_iterations_that_wait_for_their_first_tool_when_their_loop_fails_do_not_begin(width: int) -> None:
    async def play(call: ToolCall) -> Outcome:
        return error("boom", "no") if call.inputs["command"] == ["1"] else ok()

    session = Session(play)
    ending = session.run(FAILING.replace("MODE", "desc: fails fast"), max_parallel=width)
    assert ending.status == "failed"
    called = len(session.tools.calls)
    assert called <= 2 * width  # one that waits may have its turn before the failure is durable
    cancelled = [one.event for one in session.received if one.event.data.get("cancelled")]
    assert len(cancelled) == 10 - called


def test_iterations_that_wait_go_on_if_their_loop_does_its_best() -> None:
    async def play(call: ToolCall) -> Outcome:
        return error("boom", "no") if call.inputs["command"] == ["1"] else ok()

    session = Session(play)
    mode = "spec: { policy: { failure: { mode: best_effort } } }"
    assert session.run(FAILING.replace("MODE", mode), max_parallel=1).status == "success"
    assert len(session.tools.calls) == 10


@pytest.mark.parametrize("version", ["noetl-runtime/3", "noetl-runtime/12.1"])
def test_a_playbook_for_a_later_runtime_is_refused(version: str) -> None:
    session = Session()
    bundle = bundle_of("apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: a, path: a }\n" + PLAIN)
    main = changed(bundle.program.main, executor={"version": version})
    later = bundle._replace(program=changed(bundle.program, main=main))
    with pytest.raises(BadRequestError, match="the playbook needs"):
        session.engine().start(later, {})
    assert_refused(session, "update noetlvm, or change `executor.version`")


PLAIN = """
workflow:
  - step: start
    loop: { in: [1, 2], iterator: n, spec: { mode: parallel } }
    tool: { kind: noop }
"""


@pytest.mark.parametrize(
    ("profile", "more", "leased"),
    [
        ("local", "", 0),
        ("distributed", "", 1),
        ("local", ", policy: { exec: distributed }", 1),
    ],
)
def test_the_local_profile_keeps_iterations_on_one_worker(profile: str, more: str, leased: int) -> None:
    head = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: a, path: a }\n"
    text = head + f"executor: {{ profile: {profile} }}" + PLAIN.replace("mode: parallel", f"mode: parallel{more}")
    assert bundle_of(text).program.main.steps["start"].leased_levels == leased


SKIPPED = 'kind: shell, command: [x], spec: { policy: { rules: [{ when: "{{ GUARD }}", then: { do: skip } }] } }'
UNCALLED = {
    "inputs that cannot be rendered": 'kind: shell, command: ["{{ 1 / 0 }}"]',
    "settings that cannot be rendered": 'kind: shell, command: [x], spec: { timeout: "{{ 1 / 0 }}" }',
    "a rule that skips": SKIPPED.replace("GUARD", "true"),
    "a guard that cannot be tested": SKIPPED.replace("GUARD", "1 / 0"),
    "a child with too long a name": "kind: playbook, path: \"{{ 'x' * 9000 }}\"",
}


@pytest.mark.parametrize("task", UNCALLED.values(), ids=UNCALLED)
def test_a_task_starts_though_its_tool_is_not_called(task: str) -> None:
    session = Session()
    ending = session.run(f"- {{ step: start, tool: [{{ uncalled: {{ {task} }} }}] }}")
    of_task = [recorded.event for recorded in session.received if recorded.event.label == "uncalled"]
    assert [(event.name, event.task, event.attempt) for event in of_task] == [
        ("task.started", 1, 1),
        ("task.done", 1, 1),
    ]
    assert of_task[0].data == {}
    assert (ending.event_count, session.tools.calls) == (len(session.received), [])
