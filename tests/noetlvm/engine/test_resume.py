"""An execution that was left continues where it was: what was reported is not run again, and nothing fires twice."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from noetlvm.data.encoding import encode
from noetlvm.data.event import Recorded
from noetlvm.rounds.active import Ending
from noetlvm.rounds.library import NotFoundError
from noetlvm.rounds.recovery import SNAPSHOT_EVENTS, folded, recovered
from noetlvm.store.interface import Execution
from noetlvm.tools.call import Outcome, ToolCall, error, ok
from tests.noetlvm.engine.runs import Session, bundle_of, labels
from tests.noetlvm.engine.test_engine import CHAIN, LOOP, RETRY
from tests.waiting import forever, turns, until


class Power:
    """Fails the engine at a chosen call, as a crash would: between a tool's work and its report."""

    def __init__(self, at: int) -> None:
        self.left = at

    async def play(self, call: ToolCall) -> Outcome:
        await turns()
        self.left -= 1
        if self.left == 0:
            raise ConnectionAbortedError("the power is gone")
        return ok(call.inputs["command"])


def _crash(session: Session, text: str, **payload: object) -> str:
    """Run until the power goes, and return which execution that was."""
    with pytest.raises(ConnectionAbortedError):
        session.run(text, payload=payload)
    (row,) = session.store.unfinished()
    return row.execution_id


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_chain_goes_on_with_the_task_that_was_interrupted(at: int) -> None:
    session = Session(Power(at).play)
    execution_id = _crash(session, CHAIN)
    ending = session.resume(execution_id)
    assert ending.status == "success"
    whole = ["one", "two", "three"]
    assert labels(session.tools.calls) == whole[:at] + whole[at - 1 :]
    again = session.tools.calls[at - 1 : at + 1]
    assert again[0].key == again[1].key


@pytest.mark.parametrize("at", range(1, 21, 3))
def test_a_parallel_loop_ends_as_without_a_crash(at: int) -> None:
    fault_free = Session(Power(0).play).run(LOOP, payload={"items": list(range(20))})
    session = Session(Power(at).play)
    ending = session.resume(_crash(session, LOOP, items=list(range(20))))
    assert (ending.status, ending.ctx, ending.result) == (fault_free.status, fault_free.ctx, fault_free.result)
    tokens = [one.event.data["token"] for one in session.store.events(ending.execution_id) if "token" in one.event.data]
    fired = [
        one.event.data["token"]
        for one in session.store.events(ending.execution_id)
        if one.event.name == "step.scheduled" and "token" in one.event.data
    ]
    assert len(fired) == len(set(fired))
    assert tokens


def test_a_wait_goes_on_from_when_it_began() -> None:
    calls = 0

    async def play(_call: ToolCall) -> Outcome:
        nonlocal calls
        calls += 1
        return error("net", "no") if calls == 1 else ok("fine")

    session = Session(play)
    before = session.clock.now()

    async def leave_while_it_waits() -> str:
        engine = session.engine()
        execution_id = engine.start(bundle_of(RETRY), {})
        running = asyncio.create_task(engine.run(listens=True))
        await until(lambda: any(one.event.name == "task.done" for one in session.received), interval=0)
        engine.stop()
        await running
        return execution_id

    ending = session.resume(asyncio.run(leave_while_it_waits()))
    assert ending.result == "fine"
    assert session.clock.now() - before == 100


def test_an_orderly_stop_lets_running_tools_end_and_begins_nothing_new() -> None:
    session = Session()

    async def stop_during_the_first() -> Ending:
        engine = session.engine()

        async def play(_call: ToolCall) -> Outcome:
            engine.stop()
            await turns(10)
            return ok("kept")

        session.tools.play = play
        execution_id = engine.start(bundle_of(CHAIN), {})
        await engine.run()
        return engine.ending(execution_id)

    left = asyncio.run(stop_during_the_first())
    assert left.status == "running"
    assert labels(session.tools.calls) == ["one"]

    async def play(_call: ToolCall) -> Outcome:
        return ok()

    session.tools.play = play
    assert session.resume(left.execution_id).status == "success"
    assert labels(session.tools.calls) == ["one", "two", "three"]


def test_stopping_now_cancels_the_tool_that_runs() -> None:
    session = Session()

    async def go() -> Ending:
        engine = session.engine()

        async def play(_call: ToolCall) -> Outcome:
            engine.stop(now=True)
            await forever()
            return ok()

        session.tools.play = play
        execution_id = engine.start(bundle_of(CHAIN), {})
        await engine.run()
        return engine.ending(execution_id)

    left = asyncio.run(go())
    assert left.status == "running"
    assert "task.done" not in session.names(left.execution_id)


def test_resuming_what_has_ended_reports_its_ending() -> None:
    session = Session()
    ending = session.run(CHAIN)
    events = session.names(ending.execution_id)
    assert session.resume(ending.execution_id) == ending
    assert session.names(ending.execution_id) == events


def test_resuming_what_is_unknown_is_refused() -> None:
    with pytest.raises(NotFoundError, match="nobody"):
        Session().resume("nobody")


def test_a_long_execution_is_restored_from_a_snapshot_as_from_its_events() -> None:
    items = SNAPSHOT_EVENTS
    session = Session(Power(items // 2).play)
    execution_id = _crash(session, LOOP, items=list(range(items)))
    (row,) = session.store.unfinished()
    snapshot = session.store.snapshot(execution_id, row.bundle)
    assert snapshot is not None
    assert 0 < snapshot.seq <= row.seq
    assert recovered(session.store, execution_id, row.bundle).to_data() == folded(session.store, execution_id).to_data()
    assert session.resume(execution_id).ctx == {"total": sum(range(items))}


SECRET_IN_CTX = """
- step: start
  tool:
    - read: { kind: secrets, secret: api/token }
    - echo:
        kind: shell
        command: [cat, token.txt]
        spec:
          policy:
            rules:
              - when: "{{ outcome.status == 'error' }}"
                then: { do: fail }
              - else: { then: { do: continue, set_ctx: { token: "{{ outcome.result }}" } } }
  next: { arcs: [{ step: send }] }
- step: send
  tool:
    - use: { kind: shell, command: ["{{ ctx.token }}"] }
"""


class Killed(BaseException):
    """The process dies."""


def test_a_process_that_never_knew_a_secret_gives_no_tool_its_mask() -> None:
    async def play(call: ToolCall) -> Outcome:
        return ok("s3cr3t-0123456789")

    session = Session(play)

    def die(_row: Execution, recorded: Sequence[Recorded]) -> None:
        if any(one.event.name == "step.done" for one in recorded):
            raise Killed

    async def go() -> str:
        engine = session.engine(observers=(die,))
        execution_id = engine.start(bundle_of(SECRET_IN_CTX), {})
        with pytest.raises(Killed):
            await engine.run()
        return execution_id

    execution_id = asyncio.run(go())
    session.tools.calls.clear()
    ending = session.resume(execution_id)
    assert ending.status == "failed"
    assert "a secret, which is not recorded" in ending.failures[0]["error"]["message"]
    assert session.tools.calls == []
    assert not any(b"s3cr3t" in encode(one.event.data) for one in session.store.events(execution_id))
