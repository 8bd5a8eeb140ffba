"""Pause, resume and cancel, requested here or by another process (S36)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from noetlvm.data.event import Recorded
from noetlvm.engine.engine import Engine
from noetlvm.limits import Limits
from noetlvm.rounds.active import Ending
from noetlvm.store.interface import Execution
from noetlvm.tools.call import Outcome, ToolCall, ok
from tests.noetlvm.engine.runs import Session, bundle_of, labels
from tests.noetlvm.engine.test_engine import CHAIN
from tests.waiting import until


def _run_with(session: Session, during_first: str, *, listens: bool = False) -> Ending:
    """Run the chain; while its first task runs, send a request."""

    async def go() -> Ending:
        engine = session.engine()

        async def play(call: ToolCall) -> Outcome:
            if call.label == "one" and call.attempt == 1:
                await _request(engine, session, execution_id, during_first, listens)
            return ok(call.label)

        session.tools.play = play
        execution_id = engine.start(bundle_of(CHAIN), {})
        await asyncio.wait_for(engine.run(listens=listens), 120)
        return engine.ending(execution_id)

    return asyncio.run(go())


async def _request(engine: Engine, session: Session, execution_id: str, action: str, listens: bool) -> None:
    assert action in ("cancel", "pause")
    wanted = "cancel" if action == "cancel" else "pause"
    if not listens:
        engine.control(execution_id, wanted)  # type: ignore[arg-type]
    else:
        session.store.request(execution_id, wanted)  # type: ignore[arg-type]
    await until(lambda: any(one.event.name.startswith("execution.") for one in session.received))


def test_a_paused_execution_ends_its_step_and_begins_no_other() -> None:
    session = Session()
    left = _run_with(session, "pause")
    assert left.status == "paused"
    assert labels(session.tools.calls) == ["one", "two"]


def test_a_paused_execution_goes_on_when_resumed() -> None:
    session = Session()
    left = _run_with(session, "pause")
    assert session.resume(left.execution_id).status == "success"
    assert labels(session.tools.calls) == ["one", "two", "three"]


def test_a_cancelled_execution_stops_its_tools() -> None:
    session = Session()
    ending = _run_with(session, "cancel")
    assert ending.status == "cancelled"
    assert labels(session.tools.calls) == ["one"]
    assert session.names(ending.execution_id)[-2:] == ["workflow.finished", "playbook.processed"]


def test_a_request_of_another_process_is_received() -> None:
    session = Session()
    ending = _run_with(session, "cancel", listens=True)
    assert ending.status == "cancelled"
    assert session.store.requests() == []


def test_a_request_that_comes_while_the_last_task_ends_does_not_stay_in_the_store() -> None:
    session = Session()

    async def go() -> str:
        engine = session.engine()

        async def play(call: ToolCall) -> Outcome:
            if call.label == "three":
                session.store.request(execution_id, "cancel")
            return ok(call.label)

        session.tools.play = play
        execution_id = engine.start(bundle_of(CHAIN), {})
        await asyncio.wait_for(engine.run(listens=True), 120)
        return engine.ending(execution_id).status

    assert asyncio.run(go()) in ("success", "cancelled")
    assert session.store.requests() == []


def test_an_execution_that_nobody_runs_can_be_cancelled() -> None:
    session = Session()
    left = _run_with(session, "pause")

    async def go() -> None:
        await session.engine().control_idle(left.execution_id, "cancel")

    asyncio.run(go())
    row = session.store.execution(left.execution_id)
    assert row is not None
    assert row.status == "cancelled"


RUNS_ITSELF = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: swarm, path: tests/swarm }
workflow:
  - step: start
    loop: { in: "{{ range(10) }}", iterator: n, spec: { mode: parallel } }
    tool: { kind: playbook, path: tests/swarm }
"""


def test_a_cancelled_execution_is_not_outrun_by_the_children_of_its_children() -> None:
    session = Session()

    async def go() -> str:
        engine = session.engine()
        execution_id = engine.start(bundle_of(RUNS_ITSELF), {})
        run = asyncio.ensure_future(engine.run(listens=True))
        await until(lambda: session.store.descendants(execution_id) >= 400, interval=0)
        session.store.request(execution_id, "cancel")
        await asyncio.wait_for(run, 120)
        return execution_id

    execution_id = asyncio.run(go())
    assert session.store.unfinished() == []
    assert session.store.descendants(execution_id) < Limits().max_children
    assert session.store.requests() == []


def test_tokens_that_double_leave_no_backlog_that_a_stop_has_to_wait_for() -> None:
    arc = "{ step: start, when: '{{ workload.go }}' }"
    doubling = f"""
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{ name: doubling, path: tests/doubling }}
executor: {{ spec: {{ limits: {{ max_step_runs: 3000 }} }} }}
workload: {{ go: true }}
workflow:
  - step: start
    tool: {{ kind: noop }}
    next: {{ spec: {{ mode: inclusive }}, arcs: [{arc}, {arc}] }}
"""
    session, written = Session(), [0]
    receive = session._receive

    def count(execution: Execution, recorded: Sequence[Recorded]) -> None:
        written.append(sum(one.event.name == "step.done" for one in recorded))
        receive(execution, recorded)

    session._receive = count  # type: ignore[method-assign]
    ending = session.run(doubling, monotonic=lambda: 0.0)
    assert ending.failures[0]["error"]["kind"] == "fuel"
    assert sum(written) == 3000
    assert max(written) < 300
