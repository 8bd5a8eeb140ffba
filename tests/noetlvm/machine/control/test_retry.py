"""What a retry of a failed execution puts back, and what it takes out of the counts (S56)."""

from __future__ import annotations

from noetlvm.data.event import Recorded
from noetlvm.machine.messages import Retry
from noetlvm.machine.retry import RetryPlan
from tests.noetlvm.machine.control.drive import Drive, Hand, bad, ok

FAN = """
- step: start
  next: { spec: { mode: inclusive }, arcs: [{ step: a }, { step: b }] }
- { step: a, tool: { kind: noop } }
- { step: b, tool: { kind: noop } }
"""
WITH_FINAL = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: retried, path: tests/retried }
executor: { spec: { final_step: last } }
workflow:
  - { step: start, tool: { kind: noop } }
  - { step: last, tool: { kind: noop } }
"""


def plan_of(drive: Drive) -> RetryPlan:
    return RetryPlan(Recorded(seq, "id", 0.0, event) for seq, event in enumerate(drive.events, 1))


def retried(drive: Drive, id: str) -> tuple[Drive, Retry]:
    """Return the execution that continues the log of a failed one, and the input that started it."""
    plan = plan_of(drive)
    given = plan.retry(id, "bundle")
    again = Drive(drive.net, drive.play, control=Hand)
    again.control = Hand(drive.net, plan.state, drive.control.offload)
    again.state, again.events = plan.state, list(drive.events)
    again.take(again.control.give(given))
    return again, given


def test_tokens_are_put_back_in_their_order_whichever_run_failed_first() -> None:
    drive = Drive(FAN, bad()).start()
    for command in reversed(drive.ready):
        drive.perform(command)
    plan = plan_of(drive)
    assert [token.step for token in plan.retry("y", "bundle").tokens] == ["a", "b"]


def test_each_retry_takes_out_what_its_own_part_counted() -> None:
    drive = Drive(WITH_FINAL, {"start": bad(), "last": ok()}).run()
    assert drive.state.counts == [1, 1, 0]
    for id in ("y", "z"):
        drive, given = retried(drive, id)
        assert given.undone == [1, 1, 0]
        assert [token.step for token in given.tokens] == ["start"]
        while drive.ready:
            drive.perform(drive.ready.pop(0))
        assert drive.state.counts == [1, 1, 0]


def test_a_state_that_a_plan_made_has_no_effects_left() -> None:
    drive = Drive(FAN, bad()).run()
    assert plan_of(drive).state.touched == {}
