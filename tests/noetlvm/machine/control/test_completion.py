"""How executions begin and end (S4, S34, S37)."""

from __future__ import annotations

import pytest

from noetlvm.data.event import Event
from noetlvm.machine.messages import Request, Work
from noetlvm.testing import run_playbook
from tests.noetlvm.machine.control.drive import Drive, bad, ok

HEADER = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: x, path: some/path }\n"
STEPS = """
workflow:
- { step: start, tool: { kind: noop }, next: { arcs: [{ step: gated }] } }
- step: gated
  spec: { policy: { admit: { rules: [{ when: "{{ false }}", then: { allow: true } }] } } }
  tool: { kind: noop }
- { step: last, tool: { kind: noop }, next: { arcs: [{ step: start }] } }
"""


def test_the_workload_is_merged_deeply_and_the_request_wins() -> None:
    text = HEADER + "workload: { a: { x: 1, y: 1 }, l: [1, 2] }\nworkflow:\n- { step: start, tool: { kind: noop } }"
    drive = Drive(text).start({"a": {"y": 2}, "l": [3]})
    assert drive.state.workload == {"a": {"x": 1, "y": 2}, "l": [3]}


def test_each_of_the_last_two_events_comes_once() -> None:
    drive = Drive(HEADER + STEPS).run()
    assert drive.names()[-3:] == ["token.rejected", "workflow.finished", "playbook.processed"]
    assert drive.take([]) == []


def test_entry_step_gets_the_first_token() -> None:
    drive = Drive(HEADER + "executor: { spec: { entry_step: last } }" + STEPS).start()
    assert drive.steps() == ["last"]


def test_final_step_runs_once_after_everything_else_and_nothing_follows_it() -> None:
    seen = []

    def play(work: Work) -> list[Event]:
        seen.append((work.step, work.args))
        return (bad("boom") if work.step == "start" else ok(work.step))(work)

    drive = Drive(HEADER + "executor: { spec: { final_step: last } }" + STEPS, play).run()
    assert drive.steps() == ["start", "last"]
    args = seen[-1][1]
    assert args["counts"] == {"succeeded": 0, "failed": 1, "rejected": 1, "unhandled": 1}
    assert args["failures"][0]["error"]["kind"] == "boom"
    assert args["results"] == {}
    assert drive.state.status == "failed"
    assert drive.state.result == "last"


@pytest.mark.parametrize("first", ["slow", "quick"])
def test_the_results_for_final_step_do_not_show_which_branch_was_first(first: str) -> None:
    seconds = {"slow": 9, "quick": 1} if first == "quick" else {"slow": 1, "quick": 9}
    ran = run_playbook(
        HEADER
        + """
executor: { spec: { final_step: last } }
workflow:
  - step: start
    next: { spec: { mode: inclusive }, arcs: [{ step: slow }, { step: quick }] }
  - step: slow
    tool: { kind: shell, command: [x], name: slow }
  - step: quick
    tool: { kind: shell, command: [x], name: quick }
  - step: last
    tool: { kind: shell, command: ["{{ args.results | list | join(' ') }}"], name: last }
""",
        {"last": "echo", **{name: {"answer": "ok 1", "takes": takes} for name, takes in seconds.items()}},
    )
    assert ran.result["command"] == ["quick slow start"]


def test_a_refused_request_leaves_its_reason_and_starts_nothing() -> None:
    drive = Drive(HEADER + STEPS)
    error = {"kind": "keychain", "retryable": False, "message": "no `token`", "details": {}}
    reported = drive.control.refuse(Request("x", "b", {}), error)
    assert [event.name for event in reported] == [
        "playbook.execution.requested",
        "playbook.request.evaluated",
        "playbook.processed",
    ]
    assert drive.state.status == "failed"
    assert drive.state.failures == [{"error": error}]
    assert drive.take([]) == []


def test_failures_are_listed_up_to_a_limit_and_all_are_counted() -> None:
    text = """
    - step: start
      next: { arcs: [{ step: a }] }
    - step: a
      tool: { kind: noop }
      next:
        arcs: [{ step: a, when: "{{ args.n | default(0) < 120 }}", args: { n: "{{ args.n | default(0) + 1 }}" } }]
    """
    drive = Drive(text, bad()).run()
    assert drive.state.failure_count == 121
    assert len(drive.state.failures) == 100
