"""Time limits on the engine: the tool is stopped, a crash does not buy time, and an armed timer holds nobody up."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from noetlvm.data.event import Recorded, moment
from noetlvm.rounds.recovery import recovered
from noetlvm.store.interface import Append, Execution, Snapshot
from noetlvm.tools.call import Outcome, ToolCall, ok
from noetlvm.worker.pipeline_run import SystemClock
from tests.fake_clock import FakeClock
from tests.noetlvm.engine.runs import Session, bundle_of, labels
from tests.waiting import forever

SLOW = """
- step: start
  spec: { policy: { lifecycle: { timeout_s: 5 } } }
  tool:
    - slow: { kind: http, url: https://example.org/items }
  next:
    arcs:
      - step: late
        when: "{{ event.error.kind == 'timeout' }}"
- step: late
  tool:
    - after: { kind: http, url: https://example.org/late }
"""


def sleeping(session: Session, seconds: float, stopped: list[str] | None = None) -> None:
    """Let the task `slow` take so long."""

    async def play(call: ToolCall) -> Outcome:
        try:
            await session.clock.sleep(seconds if call.label == "slow" else 0)
        except asyncio.CancelledError:
            if stopped is not None:
                stopped.append(call.label)
            raise
        return ok(call.label)

    session.tools.play = play


def test_a_tool_that_runs_too_long_is_stopped() -> None:
    session = Session()
    stopped: list[str] = []
    sleeping(session, 1_000_000, stopped)
    ending = session.run(SLOW)
    assert (ending.status, stopped) == ("success", ["slow"])
    assert labels(session.tools.calls) == ["slow", "after"]
    at = {one.event.name: one.timestamp for one in reversed(session.received)}
    assert at["step.failed"] - at["step.started"] == 5


@pytest.mark.parametrize("loop", ["", "loop: { in: [1, 2], iterator: i, spec: { mode: parallel } }"])
@pytest.mark.parametrize(
    "tool",
    [
        """while: { when: "{{ range(20000) | sum > 0 }}", max: 1000000, do: [] }""",
        """busy:
        kind: noop
        spec: { policy: { rules: [{ when: "{{ range(20000) | sum > 0 }}", then: { do: jump, to: busy } }] } }""",
    ],
)
def test_a_limit_ends_a_step_that_never_waits(tool: str, loop: str) -> None:
    text = f"""
- step: start
  spec: {{ policy: {{ lifecycle: {{ timeout_s: 0.2 }} }} }}
  {loop}
  tool:
    - {tool}
"""
    ending = Session(clock=SystemClock()).run(text)
    assert [failure["error"]["kind"] for failure in ending.failures] == ["timeout"]


def test_a_step_in_time_is_not_held_up_by_its_limit() -> None:
    session = Session()
    began = session.clock.now()
    sleeping(session, 1)
    assert session.run(SLOW).status == "success"
    assert session.clock.now() - began < 5


class TickingClock(FakeClock):
    """Never returns the same time twice."""

    def now(self) -> float:
        self.advance(0.001)
        return super().now()


def test_what_a_template_sees_as_time_is_what_the_log_has() -> None:
    session = Session(clock=TickingClock())
    ending = session.run("""
    - step: start
      tool: { kind: noop }
      next: { arcs: [{ step: end, args: { at: "{{ event.timestamp }}" } }] }
    - step: end
      tool: { kind: noop }
    """)
    log = list(session.store.events(ending.execution_id))
    done = next(one for one in log if one.event.name == "step.done")
    sent = [one.event for one in log if one.event.name == "token.enqueued"][-1]
    assert sent.data["args"] == {"at": moment(done.timestamp)}


def left_in_the_middle(session: Session) -> str:
    """Run until the slow task has begun, then leave at once, as a crash does."""

    async def go() -> str:
        engine = session.engine()

        async def play(_call: ToolCall) -> Outcome:
            engine.stop(now=True)
            await forever()
            raise AssertionError

        session.tools.play = play
        execution_id = engine.start(bundle_of(SLOW), {})
        await asyncio.wait_for(engine.run(), 120)
        return execution_id

    return asyncio.run(go())


@pytest.mark.parametrize(("away", "called"), [(4, ["slow", "slow"]), (5, ["slow", "after"])])
def test_time_passes_while_nobody_runs_it(away: float, called: list[str]) -> None:
    clock = FakeClock()
    session = Session(clock=clock)
    execution_id = left_in_the_middle(session)
    clock.advance(away)
    sleeping(session, 0)
    assert session.resume(execution_id).status == "success"
    assert labels(session.tools.calls) == called


def test_a_paused_execution_does_not_wait_for_its_limit() -> None:
    session = Session()

    async def go() -> str:
        engine = session.engine()

        async def play(_call: ToolCall) -> Outcome:
            engine.control(execution_id, "pause")
            return ok()

        session.tools.play = play
        execution_id = engine.start(bundle_of(SLOW), {})
        await asyncio.wait_for(engine.run(), 120)
        return engine.ending(execution_id).status

    began = session.clock.now()
    assert asyncio.run(go()) == "paused"
    assert session.clock.now() == began


PARENT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: parent, path: parent }
workflow:
  - step: start
    spec: { policy: { lifecycle: { timeout_s: 5 } } }
    tool:
      - call: { kind: playbook, path: child }
    next: { arcs: [{ step: rest, when: "{{ event.error.kind == 'timeout' }}" }] }
  - step: rest
    tool:
      - after: { kind: http, url: https://example.org/late }
"""
CHILD = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: child, path: child }
workflow:
  - step: start
    tool:
      - slow: { kind: http, url: https://example.org/items }
"""


def test_a_child_whose_parent_gave_it_up_is_cancelled_after_a_crash_too() -> None:
    session = Session()
    sleeping(session, 1_000_000)

    class CrashError(Exception):
        pass

    async def go() -> None:
        engine = session.engine(observers=(crash,))
        engine.start(bundle_of(PARENT, CHILD), {}, "parent")
        await engine.run()

    def crash(_row: Execution, recorded: Sequence[Recorded]) -> None:
        # The decision is durable, and nothing was done about it yet.
        if any(one.event.name == "step.failed" for one in recorded):
            raise CrashError

    with pytest.raises(CrashError):
        asyncio.run(go())
    (child,) = session.store.executions(parent="parent")
    assert child.status == "running"
    assert session.resume("parent").status == "success"
    (child,) = session.store.executions(parent="parent")
    assert child.status == "cancelled"


def test_a_snapshot_of_another_layout_is_not_read() -> None:
    session = Session()
    sleeping(session, 1)
    ending = session.run(SLOW)
    row = session.store.execution(ending.execution_id)
    assert row is not None
    session.store.write([Append(row, row.seq, snapshot=Snapshot(row.bundle, 3, {"seq": 3}))])
    assert recovered(session.store, ending.execution_id, row.bundle).status == "success"
