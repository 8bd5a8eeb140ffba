"""Runs playbooks on an engine whose tools are functions of the test and whose clock is no clock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from time import monotonic
from typing import Any

from noetlc.compile import compile_playbooks
from noetlc.rules.catalogue import whole_playbook
from noetlvm.data.event import Recorded
from noetlvm.engine.engine import Engine, EngineOptions
from noetlvm.engine.pace import Budget
from noetlvm.machine.loaded import Bundle, load_program
from noetlvm.machine.payload import Offload
from noetlvm.replay.exact import replay_exactly
from noetlvm.results.interface import MemoryResults, ResultStore
from noetlvm.rounds.active import Ending
from noetlvm.rounds.recovery import folded
from noetlvm.store.interface import Execution, Store
from noetlvm.store.memory import MemoryStore
from noetlvm.tools.call import Outcome, ToolCall, ok
from noetlvm.worker.pipeline_run import Clock
from tests.fake_clock import FakeClock

Play = Callable[[ToolCall], Awaitable[Outcome]]


def bundle_of(*texts: str) -> Bundle:
    files = [(f"playbook_{number}.yaml", whole_playbook(text).encode()) for number, text in enumerate(texts)]
    compiled = compile_playbooks(files)
    assert compiled.program is not None, [finding.message for file in compiled.files for finding in file.findings]
    return Bundle.of(compiled.data)


async def succeed(_call: ToolCall) -> Outcome:
    return ok("done")


class PlayedTools:
    """`noop` as it is; every other tool is played by the test."""

    def __init__(self, play: Play = succeed) -> None:
        self.play = play
        self.calls: list[ToolCall] = []
        self.is_closed = False
        self.running = 0
        self.most = 0

    def at_once(self, call: ToolCall) -> Outcome | None:
        return ok() if call.kind == "noop" else None

    async def run(self, call: ToolCall) -> Outcome:
        self.calls.append(call)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            return await self.play(call)
        finally:
            self.running -= 1

    async def close(self) -> None:
        self.is_closed = True


class Session:
    """What outlives an engine: stores, clock and tools."""

    def __init__(self, play: Play = succeed, store: Store | None = None, clock: Clock | None = None) -> None:
        self.store: Store = store or MemoryStore()
        self.results: ResultStore = MemoryResults()
        self.tools = PlayedTools(play)
        self.clock: Clock = clock or FakeClock()
        self.received: list[Recorded] = []

    def engine(self, *, monotonic: Callable[[], float] = monotonic, **options: Any) -> Engine:
        chosen = EngineOptions(**{"observers": (self._receive,)} | options)
        return Engine(self.store, self.results, self.tools, chosen, clock=self.clock, budget=Budget(monotonic))

    def _receive(self, _execution: Execution, recorded: Sequence[Recorded]) -> None:
        self.received += recorded

    def run(self, *texts: str, payload: dict[str, Any] | None = None, **options: Any) -> Ending:
        """Run a playbook to its end, and check that its log gives the same."""

        async def go() -> Ending:
            engine = self.engine(**options)
            execution_id = engine.start(bundle_of(*texts), payload or {})
            await engine.run()
            return engine.ending(execution_id)

        ending = asyncio.run(go())
        self.check(ending)
        return ending

    def resume(self, execution_id: str, **options: Any) -> Ending:
        async def go() -> Ending:
            engine = self.engine(**options)
            engine.resume(execution_id)
            await engine.run()
            return engine.ending(execution_id)

        ending = asyncio.run(go())
        self.check(ending)
        return ending

    def check(self, ending: Ending) -> None:
        state = folded(self.store, ending.execution_id)
        row = self.store.execution(ending.execution_id)
        assert row is not None
        assert row.seq == state.seq == ending.event_count
        assert (state.ctx, state.result) == (ending.ctx, ending.result)
        log = list(self.store.events(ending.execution_id))
        assert [one.seq for one in log] == list(range(1, row.seq + 1))
        assert_every_task_starts(log)
        data = self.store.bundle(row.bundle)
        assert data is not None
        playbook = load_program(data).playbooks[row.path]
        offload = Offload(playbook.limits.max_payload_bytes, lambda reference: self.results.get(reference.key))
        difference = replay_exactly(playbook, log, offload)
        assert difference is None, difference

    def names(self, execution_id: str) -> list[str]:
        return [recorded.event.name for recorded in self.store.events(execution_id)]


def assert_every_task_starts(log: Sequence[Recorded]) -> None:
    """Check that every attempt which ends has begun, whether its tool was called or not (S61)."""
    started = {one.event[2:] for one in log if one.event.name == "task.started"}
    assert [one.event for one in log if one.event.name == "task.done" and one.event[2:] not in started] == []


def labels(calls: Sequence[ToolCall]) -> list[str]:
    return [call.label for call in calls]
