"""The cases of the stage `run` once more, on the embedded engine: it ends where the pure machine ends."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

import pytest

from noetlvm.bridge import compile_texts
from noetlvm.engine.engine import Engine, EngineOptions
from noetlvm.machine.instructions import CallTool
from noetlvm.machine.loaded import Bundle, load_program
from noetlvm.machine.payload import Offload
from noetlvm.replay.exact import replay_exactly
from noetlvm.results.interface import MemoryResults
from noetlvm.store.memory import MemoryStore
from noetlvm.testing.__main__ import run_given
from noetlvm.testing.run_playbook import resolver_of
from noetlvm.testing.script import Script
from noetlvm.tools.call import Outcome, ToolCall, ok
from noetlvm.worker.pipeline_run import Clock
from tests.fake_clock import FakeClock
from tests.whole.conformance.suite import Case, read_cases

BEYOND = ("lost", "late")
"""Answers that need a second worker; the engine has one."""


def is_for_one_worker(case: Case) -> bool:
    given = case.expect.get("given", {})
    reported = json.dumps(given.get("tools", {}))
    return (
        case.expect["status"] != "refused" and "controls" not in given and not any(word in reported for word in BEYOND)
    )


class ScriptedTools:
    """Tools that answer as a script says, on the engine's clock."""

    def __init__(self, script: dict[str, Any], clock: Clock) -> None:
        self._script = Script(script)
        self._labels = {key.partition("[")[0] for key in script}
        self._clock = clock

    def at_once(self, call: ToolCall) -> Outcome | None:
        return ok() if call.kind == "noop" and call.label not in self._labels else None

    async def run(self, call: ToolCall) -> Outcome:
        iteration = call.key.rpartition("#")[0].partition("/")[2].partition("/")[2]
        requested = CallTool(call.kind, call.inputs, call.spec, 0, call.label, call.attempt, call.key)
        answer = self._script.answer("", iteration, requested)
        assert answer is not None
        await self._clock.sleep(answer.takes)
        return answer.outcome

    async def close(self) -> None:
        """Nothing is held."""


@pytest.mark.parametrize(
    "case", [case for case in read_cases("run") if is_for_one_worker(case)], ids=lambda case: case.id
)
def test_the_engine_ends_where_the_machine_does(case: Case) -> None:
    texts = [path.read_text(encoding="utf-8") for path in (case.path, *case.companions)]
    given = case.expect.get("given", {})
    clock, store, results = FakeClock(), MemoryStore(), MemoryResults()

    async def run() -> Engine:
        tools = ScriptedTools(given.get("tools", {}), clock)
        options = EngineOptions(resolve=resolver_of(lambda: given.get("keychain", {})), max_parallel=100)
        engine = Engine(store, results, tools, options, clock=clock)
        engine.start(Bundle.of(compile_texts(texts)), given.get("payload", {}), "test", ctx=given.get("ctx"))
        await asyncio.wait_for(engine.run(), 60)
        return engine

    ending = asyncio.run(run()).ending("test")
    expected = run_given(texts, given)
    read = Offload(fetch=lambda reference: results.get(reference.key)).read
    assert ending.status == expected.status
    assert {name: read(value) for name, value in ending.ctx.items()} == expected.ctx
    assert read(ending.result) == expected.result
    assert [failure["error"]["kind"] for failure in ending.failures] == [
        failure["error"]["kind"] for failure in expected.failures
    ]
    counts = Counter(recorded.event.name for recorded in store.events("test"))
    program = load_program(compile_texts(texts))
    for row in store.executions():
        net, log = program.playbooks[row.path], list(store.events(row.execution_id))
        fetch = Offload(net.limits.max_payload_bytes, lambda reference: results.get(reference.key))
        assert replay_exactly(net, log, fetch) is None
    assert counts == Counter(expected.names())
