"""The runner for tests of playbooks."""

from __future__ import annotations

from typing import Any

import pytest

from noetlc.rules.catalogue import whole_playbook
from noetlvm.bridge import CompilationError, compile_texts
from noetlvm.limits import MESSAGE_CHARS_MAX
from noetlvm.machine.loaded import load_program
from noetlvm.machine.messages import Decision
from noetlvm.machine.state import State
from noetlvm.testing import ScriptError, run_playbook
from noetlvm.testing.simulation import EndlessError, NotTheFoldError

FETCH = whole_playbook("""
- step: start
  tool:
    - fetch:
        kind: http
        url: https://api.example.org/items
        spec:
          policy:
            rules: [{ when: "{{ outcome.error.retryable }}", then: { do: retry, attempts: 3, delay: 100 } }]
    - save: { kind: python, code: "result = input_data", args: { items: "{{ _prev.data }}" } }
""")
LOOP = whole_playbook("""
- step: start
  loop: { in: [0, 1, 2, 3], iterator: n, spec: { mode: parallel } }
  tool:
    - fetch: { kind: http, url: https://api.example.org/items }
""")


def test_answers_come_from_the_script_and_waiting_costs_nothing() -> None:
    run = run_playbook(FETCH, {"fetch": ["http 500", "http 503", "http 200 [1, 2]"], "save": "echo"})
    assert run.status == "success"
    assert [(call.at, call.task, call.attempt) for call in run.calls] == [
        (0, "fetch", 1),
        (100, "fetch", 2),
        (200, "fetch", 3),
        (200, "save", 1),
    ]
    assert run.result["args"] == {"items": [1, 2]}
    assert run.seconds == 200


def test_a_bundle_and_a_program_run_as_the_text_does() -> None:
    data = compile_texts([FETCH])
    script = {"fetch": "http 200", "save": "ok 7"}
    assert {run_playbook(each, script).result for each in (FETCH, data, load_program(data))} == {7}


def test_a_text_that_does_not_compile_is_reported_with_its_errors() -> None:
    with pytest.raises(CompilationError, match="nowhere"):
        run_playbook(whole_playbook("- { step: start, tool: { kind: noop }, next: { arcs: [{ step: nowhere }] } }"))


def test_a_tool_that_the_script_forgot_is_no_success() -> None:
    with pytest.raises(ScriptError, match="`save` of the step `start`"):
        run_playbook(FETCH, {"fetch": "http 200"})


def test_a_list_must_be_long_enough() -> None:
    with pytest.raises(ScriptError, match="`fetch` has 1 answers, and there is one more call"):
        run_playbook(FETCH, {"fetch": ["http 500"]})


@pytest.mark.parametrize(
    "answer", ["okay", 7, {"takes": 3}, "http", "http many", "http 200 {", "ok {bad", "bulk x", ""]
)
def test_an_answer_that_cannot_be_read_is_reported(answer: object) -> None:
    with pytest.raises(ScriptError, match="`fetch` is to answer"):
        run_playbook(FETCH, {"fetch": answer})


def test_a_control_that_there_is_not_is_reported() -> None:
    with pytest.raises(ScriptError, match="`stop` is not a control; there are pause, resume, cancel"):
        run_playbook(FETCH, {"fetch": "http 200", "save": "ok"}, controls=[(1, "stop")])


def test_the_most_exact_key_answers() -> None:
    script = {"fetch": "ok 0", "start/fetch": "ok 1", "fetch[2]": "ok 2", "start/fetch[3]": "ok 3"}
    assert run_playbook(LOOP, script).result == [1, 1, 2, 3]


def test_an_outcome_may_be_written_out() -> None:
    outcome = {"status": "error", "error": {"kind": "odd", "retryable": False, "message": "no", "details": {}}}
    assert run_playbook(LOOP, {"fetch": outcome}).failures[0]["error"]["kind"] == "odd"


def test_a_seed_gives_a_schedule_and_gives_it_again() -> None:
    script = {"fetch": "ok"}
    orders = [tuple(call.iteration for call in run_playbook(LOOP, script, schedule=seed).calls) for seed in range(20)]
    assert len(set(orders)) > 5
    again = [tuple(call.iteration for call in run_playbook(LOOP, script, schedule=seed).calls) for seed in range(20)]
    assert orders == again


def test_calls_at_once_are_counted() -> None:
    script = {"fetch": {"answer": "ok", "takes": 1}, "fetch[3]": "ok"}
    assert run_playbook(LOOP, script).in_flight == 4


def test_a_state_that_is_not_the_fold_of_its_log_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def decide_beside_the_log(_net: Any, state: State, *_more: Any) -> Decision:
        state.last_run = 7
        return Decision([], [])

    monkeypatch.setattr("noetlvm.rounds.rounds.decide", decide_beside_the_log)
    with pytest.raises(NotTheFoldError):
        run_playbook(FETCH)


def test_a_simulation_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noetlvm.testing.simulation.RESTS_MAX", 3)
    with pytest.raises(EndlessError):
        run_playbook(LOOP, {"fetch": {"answer": "ok", "takes": 1}})


def test_a_message_that_is_cut_leaves_no_piece_of_a_secret() -> None:
    secret = "cAnary7f3e9d2b41aa86c5"
    playbook = """
        apiVersion: noetl.io/v2
        kind: Playbook
        metadata: { name: long, path: tests/long }
        keychain: [{ name: token, kind: secret_manager }]
        workflow:
          - step: start
            tool:
              - call: { kind: http, url: "https://example.com", auth: token }
    """
    message = f"{'x' * (MESSAGE_CHARS_MAX - 5)}{secret} and more"
    ran = run_playbook(playbook, {"call": f"error http {message}"}, keychain={"token": secret})
    reported = ran.failures[0]["error"]["message"]
    assert reported == f"{'x' * (MESSAGE_CHARS_MAX - 5)}*** a…"
