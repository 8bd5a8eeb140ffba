"""Runs executions on virtual time: the engine as it is, with scripted tools, a store in memory and a clock of its own.

What is due at the same moment happens in the order in which it came up, or in an order that a seed chooses; the seed
also chooses how many things the engine finds at once. One seed gives one schedule, so that a failure can be repeated.
After each decision the state is thrown away and read back from its encoding.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections.abc import Iterable
from itertools import count
from typing import Any

from noetlvm.data.encoding import decode, encode
from noetlvm.engine.engine import Engine
from noetlvm.machine.decide import decide
from noetlvm.machine.fold import apply
from noetlvm.machine.instructions import CallTool
from noetlvm.machine.loaded import Bundle, LoadedPlaybook
from noetlvm.machine.messages import Decision, Input, LeaseLost
from noetlvm.machine.payload import Offload
from noetlvm.machine.state import State
from noetlvm.results.interface import MemoryResults
from noetlvm.rounds.credentials import Resolve
from noetlvm.store.interface import Action
from noetlvm.store.memory import MemoryStore
from noetlvm.testing.result import CallLog, CallMade, RunResult, read_result, shown
from noetlvm.testing.script import Script, ScriptError
from noetlvm.tools.call import Outcome, ToolCall, ok

RESTS_MAX = 1_000_000
"""Moments of one simulation: a playbook that never ends must not hang a test."""

_TOOLS_AT_ONCE = 1_000_000


class EndlessError(AssertionError):
    """The simulation does not end."""


class NotTheFoldError(AssertionError):
    """The live state differs from the log's."""


class VirtualClock:
    """Time that passes only while everything waits."""

    def __init__(self, seed: int | None) -> None:
        self._now = 0.0
        self._random = random.Random(seed) if seed is not None else None
        self._sleepers: list[tuple[float, float, int, asyncio.Future[None]]] = []
        self._count = count()
        self._rests = 0

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        order = self._random.random() if self._random else 0.0
        awake = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + max(seconds, 0), order, next(self._count), awake))
        await awake

    def rest(self, waiting: int) -> None:
        """Wake the first sleeper, or with a seed some of those that are due at the same moment."""
        self._rests += 1
        if self._rests > RESTS_MAX:
            raise EndlessError(f"it has not ended after {RESTS_MAX:,} moments")
        sleepers = [sleeper for sleeper in self._sleepers if not sleeper[3].done()]
        if len(sleepers) < waiting or not sleepers:
            return
        heapq.heapify(sleepers)
        self._sleepers = sleepers
        self._now = due = sleepers[0][0]
        wanted = self._random.randint(1, 3) if self._random else 1
        while wanted and sleepers and sleepers[0][0] <= due:
            heapq.heappop(sleepers)[3].set_result(None)
            wanted -= 1


class ScriptedTools:
    """Answers calls from a script, and records them."""

    def __init__(self, script: Script, clock: VirtualClock) -> None:
        self.engine: Engine | None = None
        self.calls = CallLog()
        self._script = script
        self._clock = clock

    def at_once(self, call: ToolCall) -> Outcome | None:
        _, step, _, iteration = self._position(call)
        if call.kind == "noop" and not self._script.knows(step, iteration, call.label):
            return ok()
        return None

    async def run(self, call: ToolCall) -> Outcome:
        execution, step, run, iteration = self._position(call)
        wanted = CallTool(call.kind, call.inputs, call.spec, 0, call.label, call.attempt, call.key)
        answer = self._script.answer(step, iteration, wanted)
        if answer is None:
            raise ScriptError(f"the script has no answer for `{call.label}` of the step `{step}`")
        assert self.engine is not None  # it was made with these tools
        active = self.engine.server.active[execution]
        inputs = shown(active.offload.redacted(dict(call.inputs)))
        made = CallMade(self._clock.now(), step, iteration, call.label, call.attempt, call.kind, inputs, call.key)
        self.calls.begin(execution, made)
        try:
            if answer.fate:
                thread = active.state.runs[run].threads[iteration]
                self.engine.submit(active, LeaseLost(run, iteration, thread.lease))
            await self._clock.sleep(answer.takes)
        finally:
            self.calls.end(execution)
        if answer.fate == "lost":
            raise asyncio.CancelledError
        return answer.outcome

    async def close(self) -> None:
        """Nothing is open."""

    def _position(self, call: ToolCall) -> tuple[str, str, int, str]:
        """Return execution, step, run and iteration of a call."""
        execution, number, *iteration = call.key.rpartition("#")[0].split("/")
        assert self.engine is not None  # it was made with these tools
        run = int(number)
        step = self.engine.server.active[execution].state.runs[run].step
        return execution, step, run, iteration[0] if iteration else ""


def forgetful_decide(
    net: LoadedPlaybook, state: State, given: Input, now: float, offload: Offload, *more: Any
) -> Decision:
    """Decide, check that the state is the fold of the events, and replace it by what its encoding gives."""
    before = State.from_data(decode(encode(state.to_data())))
    decision = decide(net, state, given, now, offload, *more)
    for event in decision.events:
        apply(before, event, now)
    live = encode(state.to_data())
    if encode(before.to_data()) != live:
        names = ", ".join(event.name for event in decision.events)
        raise NotTheFoldError(f"after the events up to {state.seq}: {names}")
    rebuilt = State.from_data(decode(live))
    for name in State.__slots__:
        setattr(state, name, getattr(rebuilt, name))
    return decision


class Simulation:
    """One run of a playbook, its children included."""

    def __init__(self, script: Script, resolve: Resolve, seed: int | None) -> None:
        self._clock = VirtualClock(seed)
        self._store = MemoryStore()
        self._results = MemoryResults()
        self._tools = ScriptedTools(script, self._clock)
        self._resolve = resolve
        self._seed = seed

    async def run(
        self,
        bundle: Bundle,
        payload: dict[str, Any],
        execution_id: str,
        ctx: dict[str, Any],
        controls: Iterable[tuple[float, Action]],
    ) -> RunResult:
        """Run it until nothing can happen any more."""
        engine = self._tools.engine = Engine(
            self._store,
            self._results,
            self._tools,
            resolve=self._resolve,
            clock=self._clock,
            max_parallel=_TOOLS_AT_ONCE,
            decide=forgetful_decide,
            shuffle=random.Random(self._seed).shuffle if self._seed is not None else None,
        )
        engine.start(bundle, payload, execution_id, ctx=ctx)
        for time, action in controls:
            engine.spawn(self._control(engine, execution_id, time, action))
        await engine.run()
        row = self._store.execution(execution_id)
        assert row is not None  # it was started
        return read_result(self._store, self._results, row, self._tools.calls.played)

    async def _control(self, engine: Engine, execution_id: str, time: float, action: Action) -> None:
        await self._clock.sleep(time)
        engine.control(execution_id, action)
