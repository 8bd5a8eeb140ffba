"""What holds where a playbook says nothing."""

from __future__ import annotations

import pytest

from tests.noetlvm.machine.control.drive import Drive, Play, bad, ok

TWO_WAYS = """
- step: start
  tool: { kind: noop }
  next:
    arcs:
      - { step: left }
      - { step: right }
- { step: left, tool: { kind: noop } }
- { step: right, tool: { kind: noop } }
"""


def test_admit_omitted_lets_every_token_in() -> None:
    assert Drive("- { step: start, tool: { kind: noop } }").run().steps() == ["start"]


def test_admit_with_rules_of_which_none_holds_lets_nobody_in() -> None:
    gate = '{ policy: { admit: { rules: [{ when: "{{ ctx.go }}", then: { allow: true } }] } } }'
    drive = Drive(f"- {{ step: start, spec: {gate}, tool: {{ kind: noop }} }}").run()
    assert drive.steps() == []
    assert drive.last("token.rejected").data["reason"] == "at_rest"
    assert drive.state.status == "failed"


def test_mode_omitted_is_exclusive() -> None:
    assert Drive(TWO_WAYS).run().steps() == ["start", "left"]


@pytest.mark.parametrize("play", [ok(), bad()])
def test_when_omitted_holds_on_every_boundary_event(play: Play) -> None:
    drive = Drive(TWO_WAYS, {"start": play, "left": ok()}).run()
    assert drive.steps() == ["start", "left"]


def test_next_omitted_ends_the_branch() -> None:
    drive = Drive("- { step: start, tool: { kind: noop } }", ok(7)).run()
    assert drive.last("next.evaluated").data == {"arcs": [], "place": 1}
    assert drive.state.status == "success"
    assert drive.state.result == 7


def test_entry_is_the_step_named_start_else_the_first() -> None:
    assert Drive("- { step: a, tool: { kind: noop } }\n- { step: start, tool: { kind: noop } }").run().steps() == [
        "start"
    ]
    assert Drive("- { step: a, tool: { kind: noop } }\n- { step: b, tool: { kind: noop } }").run().steps() == ["a"]


def test_loop_mode_omitted_is_sequential() -> None:
    drive = Drive("- { step: start, loop: { in: [1, 2, 3], iterator: n }, tool: { kind: noop } }").start()
    assert [command.iteration for command in drive.ready] == ["0"]


def test_width_omitted_is_thirty_two() -> None:
    loop = '{ in: "{{ range(40) | list }}", iterator: n, spec: { mode: parallel } }'
    drive = Drive(f"- {{ step: start, loop: {loop}, tool: {{ kind: noop }} }}").start()
    assert len(drive.ready) == 32


def test_failure_mode_omitted_is_fail_fast() -> None:
    drive = Drive("- { step: start, loop: { in: [1, 2], iterator: n }, tool: { kind: noop } }", bad()).run()
    assert drive.state.status == "failed"
    assert drive.names().count("loop.iteration.failed") == 1


def test_a_no_op_step_of_one_task_makes_five_events() -> None:
    names = Drive("- { step: start, tool: { kind: noop } }").run().names()
    assert names == [
        "playbook.execution.requested",
        "playbook.request.evaluated",
        "workflow.started",
        "token.enqueued",
        "step.scheduled",
        "step.started",
        "task.done",
        "step.done",
        "next.evaluated",
        "workflow.finished",
        "playbook.processed",
    ]


def test_a_parallel_loop_item_of_one_report_makes_three_events() -> None:
    loop = "{ in: [1, 2, 3], iterator: n, spec: { mode: parallel } }"
    names = Drive(f"- {{ step: start, loop: {loop}, tool: {{ kind: noop }} }}").run().names()
    begin = names.index("loop.started") + 2
    assert names[begin - 1] == "step.started"
    assert names[begin:-4] == ["loop.iteration.started", "task.done", "loop.iteration.done"] * 3
