"""Arcs: which fire, what their tokens carry, and which failures count as handled (S31, S32, S33)."""

from __future__ import annotations

import pytest

from noetlvm.data.encoding import encode
from noetlvm.data.event import Event
from noetlvm.machine.messages import Work
from tests.noetlvm.machine.control.drive import Drive, bad, ok

END = "- { step: a, tool: { kind: noop } }\n- { step: b, tool: { kind: noop } }\n"


def routed(arcs: str, mode: str = "exclusive", head: str = "tool: { kind: noop }") -> str:
    return f"- step: start\n  {head}\n  next: {{ spec: {{ mode: {mode} }}, arcs: [{arcs}] }}\n" + END


def when(step: str, guard: str, args: str = "{}") -> str:
    return f'{{ step: {step}, when: "{{{{ {guard} }}}}", args: {args} }}'


@pytest.mark.parametrize(("mode", "expected"), [("exclusive", ["start", "a"]), ("inclusive", ["start", "a", "b"])])
def test_modes(mode: str, expected: list[str]) -> None:
    text = routed(f"{when('b', 'false')}, {when('a', 'true')}, {when('b', 'event.result == 1')}", mode)
    drive = Drive(text, ok(1)).run()
    assert drive.steps() == expected
    assert drive.state.status == "success"


def test_of_steps_whose_arcs_do_not_hold_the_last_in_the_text_gives_the_result() -> None:
    branch = '- {{ step: {0}, tool: {{ kind: noop }}, next: {{ arcs: [{{ step: c, when: "{{{{ false }}}}" }}] }} }}\n'
    text = "- { step: start, next: { spec: { mode: inclusive }, arcs: [{ step: a }, { step: b }] } }\n"
    text += branch.format("a") + branch.format("b") + "- { step: c }\n"
    drive = Drive(text, {"a": ok("a"), "b": ok("b")}).start()
    first, last = drive.ready
    drive.perform(last)
    drive.perform(first)
    assert drive.state.status == "success"
    assert drive.state.result == "b"


def test_args_are_the_steps_own_overlaid_by_the_arcs() -> None:
    text = """
    - step: start
      next: { arcs: [{ step: a, args: { x: 1, y: 1 } }] }
    - step: a
      tool: { kind: noop }
      next: { arcs: [{ step: b, args: { y: "{{ args.y + 1 }}" } }] }
    - step: b
      tool: { kind: noop }
    """
    drive = Drive(text)
    seen = {}

    def play(work: Work) -> list[Event]:
        seen[work.step] = work.args
        return ok()(work)

    drive.play = play
    drive.run()
    assert seen == {"a": {"x": 1, "y": 1}, "b": {"x": 1, "y": 2}}


def test_a_step_without_a_tool_never_reaches_a_worker() -> None:
    drive = Drive("- { step: start }").start()
    assert drive.ready == []
    assert "step.started" not in drive.names()
    assert drive.state.status == "success"


FAILED = "event.name == 'step.failed'"


@pytest.mark.parametrize(
    ("arcs", "status"),
    [
        (when("a", FAILED), "success"),
        ("{ step: a }", "failed"),
        (when("a", "ctx.x is undefined"), "failed"),
        (when("a", "false"), "failed"),
    ],
)
def test_a_failure_is_handled_only_by_an_arc_that_reads_the_event(arcs: str, status: str) -> None:
    drive = Drive(routed(arcs), {"start": bad(), "a": ok()}).run()
    assert drive.state.status == status


def test_an_unhandled_failure_is_reported_once() -> None:
    drive = Drive(routed("{ step: a }"), {"start": bad("boom"), "a": ok()}).run()
    assert drive.state.failure_count == 1
    assert drive.state.failures[0]["step"] == "start"
    assert drive.state.failures[0]["error"]["kind"] == "boom"


@pytest.mark.parametrize(("setting", "status"), [("true", "failed"), ("false", "success")])
def test_no_arc_that_holds_ends_the_branch_or_fails_the_execution(setting: str, status: str) -> None:
    header = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: x, path: x }\n"
    header += f"executor: {{ spec: {{ no_next_is_error: {setting} }} }}\nworkflow:\n"
    drive = Drive(header + routed(when("a", "false"))).run()
    assert drive.steps() == ["start"]
    assert drive.state.status == status
    assert ("error" in drive.last("next.evaluated").data) is (status == "failed")


def test_an_undefined_argument_fails_routing_and_names_its_place() -> None:
    drive = Drive(routed(when("a", "true", '{ n: "{{ ctx.nothing }}" }'))).run()
    error = drive.last("next.evaluated").data["error"]
    assert error["kind"] == "template"
    assert "playbook.yaml:" in error["message"]
    assert drive.state.status == "failed"
    assert drive.steps() == ["start"]


def test_the_guards_of_a_router_share_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A decision is not cut between two guards of one router, so together they must not take long."""
    monkeypatch.setattr("noetlvm.machine.routing.ROUTER_STEPS_MAX", 10_000)
    costly = [when("a", f"range(1000) | sum == args.x | default({number})") for number in range(20)]
    drive = Drive(routed(", ".join(costly), "inclusive"), ok(1)).run()
    assert drive.state.failures[0]["error"]["kind"] == "fuel"
    assert Drive(routed(", ".join(costly[:5]), "inclusive"), ok(1)).run().state.status == "success"


def test_a_bare_step_name_is_the_result_of_its_last_run() -> None:
    drive = Drive(routed(when("a", "start.rows == 2")), ok({"rows": 2})).run()
    assert drive.steps() == ["start", "a"]


def test_tokens_of_one_step_fire_once_each() -> None:
    drive = Drive(routed("{ step: a }, { step: a }", "inclusive")).run()
    assert drive.steps() == ["start", "a", "a"]
    assert drive.names().count("next.evaluated") == 3


@pytest.mark.parametrize(("keys", "fires"), [(2_000, True), (4_000, False)])
def test_args_have_a_limit(keys: int, fires: bool) -> None:
    args = ", ".join(f"k{number}: {'x' * 20}" for number in range(keys))
    drive = Drive(routed(f"{{ step: a, args: {{ {args} }} }}")).run()
    assert drive.steps() == (["start", "a"] if fires else ["start"])
    assert drive.state.status == ("success" if fires else "failed")
    assert ("error" in drive.last("next.evaluated").data) is not fires


def test_a_large_argument_goes_by_reference_and_is_read_where_it_is_used() -> None:
    text = """
    - step: start
      tool: { kind: noop }
      next: { arcs: [{ step: a, args: { rows: "{{ event.result }}" } }] }
    - step: a
      tool: { kind: noop }
      next: { arcs: [{ step: b, when: "{{ args.rows | length == 70000 and start | length == 70000 }}" }] }
    - { step: b, tool: { kind: noop } }
    """
    drive = Drive(text)
    drive.play = {
        "start": lambda work: ok(drive.control.offload.shrink("x" * 70_000))(work),
        "a": ok(),
        "b": ok(),
    }
    drive.run()
    assert drive.steps() == ["start", "a", "b"]
    assert all(len(encode(event.data)) < 1_000 for event in drive.events)


def test_arcs_and_gates_see_when_and_in_which_trace_a_step_ended() -> None:
    drive = Drive("""
    - step: start
      tool: { kind: noop }
      next: { arcs: [{ step: end, args: { seen: "{{ [event.timestamp, event.trace_id, event.seq] }}" } }] }
    - step: end
      spec:
        policy:
          admit:
            rules:
              - when: "{{ event.timestamp == args.seen[0] }}"
                then: { allow: true }
              - else: { then: { allow: false } }
      tool: { kind: noop }
    """)
    drive.control.set_time(1_714_564_800.5)
    drive.run()
    assert drive.last("step.scheduled").data["step"] == "end"
    seen = drive.last("token.enqueued").data["args"]["seen"]
    seq = drive.names().index("step.done") + 1
    assert seen == ["2024-05-01T12:00:00.500+00:00", "x", seq]
