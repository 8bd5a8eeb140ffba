"""Gates: who is let in, who waits, who is turned away (S30)."""

from __future__ import annotations

import pytest

from noetlvm.bytecode.codec.encoder import encode
from noetlvm.data.event import Event
from noetlvm.machine.loaded import load_program
from noetlvm.machine.messages import Work
from tests.noetlvm.machine.control.drive import Drive, Hand, Play, compiled, ok

GATED = """
- step: start
  next:
    spec: { mode: inclusive }
    arcs: [{ step: work, args: { n: 1 } }, { step: waits }]
- step: work
  tool: { kind: noop }
  next: { arcs: [{ step: more }] }
- step: more
  tool: { kind: noop }
- step: waits
  spec: { policy: { admit: { rules: [{ when: "{{ GUARD }}", then: { allow: true } }] } } }
  tool: { kind: noop }
"""


def gated(guard: str) -> str:
    return GATED.replace("GUARD", guard)


def opener(key: str) -> Play:
    def play(work: Work) -> list[Event]:
        return ok(None, ctx={key: True})(work) if work.step == "work" else ok()(work)

    return play


def test_a_gate_opens_when_ctx_has_changed() -> None:
    drive = Drive(gated("ctx.go"), opener("go")).run()
    assert sorted(drive.steps()) == ["more", "start", "waits", "work"]
    assert "token.rejected" not in drive.names()


def test_a_gate_is_tried_again_when_a_step_has_ended() -> None:
    drive = Drive(gated("more is defined")).run()
    assert drive.steps() == ["start", "work", "more", "waits"]
    assert "token.rejected" not in drive.names()


def test_a_token_that_is_never_let_in_is_rejected_at_rest_and_nothing_fails() -> None:
    drive = Drive(gated("ctx.go"), opener("other")).run()
    assert drive.last("token.rejected").data == {"token": 3, "step": "waits", "reason": "at_rest"}
    assert drive.state.status == "success"
    assert drive.state.counts == [3, 0, 1]


def test_on_deny_drop_consumes_the_token_at_once() -> None:
    text = gated("ctx.go").replace("admit: {", "admit: { on_deny: drop,")
    drive = Drive(text, opener("go")).run()
    assert drive.last("token.rejected").data["reason"] == "denied"
    assert drive.steps() == ["start", "work", "more"]


def test_a_gate_sees_args_and_the_event_that_made_the_token() -> None:
    text = """
    - step: start
      tool: { kind: noop }
      next: { arcs: [{ step: end, args: { n: 3 } }] }
    - step: end
      spec:
        policy:
          admit:
            rules:
              - when: "{{ args.n == 3 and event.name == 'step.done' and event.step == 'start' and event.result == 5 }}"
                then: { allow: true }
      tool: { kind: noop }
    """
    assert Drive(text, ok(5)).run().steps() == ["start", "end"]


def test_a_gate_that_cannot_be_tested_rejects_its_token_and_fails_the_execution() -> None:
    drive = Drive(gated("1 // ctx.zero"), ok(None, ctx={"zero": 0})).run()
    rejected = drive.last("token.rejected").data
    assert rejected["reason"] == "template"
    assert rejected["error"]["kind"] == "template"
    assert "playbook.yaml:" in rejected["error"]["message"]
    assert drive.state.status == "failed"


def test_a_gate_is_not_tested_again_while_nothing_changes() -> None:
    drive = Drive(gated("ctx.go")).start()
    before = drive.state.to_data()
    assert drive.control.settle() == []
    assert drive.state.to_data() == before


def test_a_gate_opens_while_the_step_that_wrote_to_ctx_still_runs() -> None:
    drive = Drive(gated("ctx.go"), opener("go"), control=Hand).start()
    (work,) = drive.ready
    drive.take(drive.control.report(*work[:3], drive.play(drive.control.work(work))[:1]))  # type: ignore[operator]
    assert drive.steps() == ["start", "work", "waits"]


@pytest.mark.parametrize("on_deny", ["", "on_deny: drop, "])
def test_an_entry_token_that_is_never_admitted_fails_the_execution(on_deny: str) -> None:
    rules = "rules: [{ else: { then: { allow: false } } }]"
    drive = Drive(
        f"- step: start\n  spec: {{ policy: {{ admit: {{ {on_deny}{rules} }} }} }}\n  tool: {{ kind: noop }}\n"
    ).run()
    assert drive.state.status == "failed"
    assert drive.state.failures[0]["error"]["kind"] == "admission"


def test_a_denial_names_its_rule_and_where_that_stands_if_the_bundle_says_so() -> None:
    whole = Drive(gated("ctx.go")).start().last("token.denied").data
    assert whole == {"token": 3, "step": "waits", "rule": 2, "at": "playbook.yaml:17:28"}
    program = compiled(gated("ctx.go")).program
    assert program is not None
    stripped = load_program(encode(program, debug=False)).main
    assert Drive(stripped).start().last("token.denied").data == {"token": 3, "step": "waits", "rule": 2}


def test_an_entry_that_is_never_let_in_names_the_place_of_its_gate() -> None:
    text = (
        '- { step: start, spec: { policy: { admit: { rules: [{ when: "{{ ctx.go }}", then: { allow: true } }] } } } }'
    )
    error = Drive(text).start().last("token.rejected").data["error"]
    assert error["message"].startswith("playbook.yaml:")
