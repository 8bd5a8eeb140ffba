"""Runs executions on virtual time: the engine as it is, with scripted tools, a store in memory and a clock of its own.

What is due at the same moment happens in the order in which it came up, or in an order that a seed chooses; the seed
also chooses how many things the engine finds at once. One seed gives one schedule, so that a failure can be repeated.
After each round the state is thrown away and read back from its encoding.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

from noetlvm.data.encoding import decode, encode
from noetlvm.engine.engine import Engine, EngineOptions
from noetlvm.machine.fold import apply
from noetlvm.machine.instructions import CallTool
from noetlvm.machine.loaded import Bundle
from noetlvm.machine.messages import Effect, LeaseLost, WorkerReport
from noetlvm.machine.state import State
from noetlvm.results.interface import MemoryResults
from noetlvm.rounds.active import Active
from noetlvm.rounds.credentials import Resolve
from noetlvm.rounds.loop import Performer, RoundLoop, RoundWriter, Sources
from noetlvm.rounds.pending import WaitingInput
from noetlvm.rounds.rounds import CREATING, Round, Rounds
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
        active = self.engine.rounds.active[execution]
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
        step = self.engine.rounds.active[execution].state.runs[run].step
        return execution, step, run, iteration[0] if iteration else ""


class ForgetfulWriter:
    """Checks that each state is the fold of the events written, and replaces it by what its encoding gives."""

    def __init__(self, inner: RoundWriter) -> None:
        self._inner = inner
        self._known: dict[str, bytes] = {}
        """States as of the last write."""

    async def write(self, round: Round) -> set[str]:
        for active in round.executions:
            self._forget(active)
        return await self._inner.write(round)

    def _forget(self, active: Active) -> None:
        known = self._known.get(active.execution_id)
        folded = State.from_data(decode(known)) if known else State()
        for recorded in active.pending.events:
            apply(folded, recorded.event, recorded.timestamp)
        live = encode(active.state.to_data())
        if encode(folded.to_data()) != live:
            names = ", ".join(recorded.event.name for recorded in active.pending.events)
            raise NotTheFoldError(f"after the events up to {active.state.seq}: {names}")
        self._known[active.execution_id] = live
        active.state = State.from_data(decode(live))


class ShuffledSources:
    """Gives inputs in another order that could have been that of their arrival."""

    def __init__(self, inner: Sources, rounds: Rounds, chance: random.Random) -> None:
        self._inner = inner
        self._rounds = rounds
        self._chance = chance
        self.look = inner.look

    @property
    def has_postponed(self) -> bool:
        return self._inner.has_postponed

    async def take_in(self) -> None:
        await self._inner.take_in()
        waiting = list(self._rounds.waiting)
        self._chance.shuffle(waiting)
        self._rounds.waiting = dict.fromkeys(waiting)
        for active in waiting:
            active.inbox = _shuffled(active.inbox, self._chance)


class ShuffledPerformer:
    """Performs the effects of a round in any order."""

    def __init__(self, inner: Performer, chance: random.Random) -> None:
        self.prepare = inner.prepare
        self._inner = inner
        self._chance = chance

    def perform(self, effects: Sequence[tuple[Active, Effect]]) -> None:
        shuffled = list(effects)
        self._chance.shuffle(shuffled)
        self._inner.perform(shuffled)


def shuffle(loop: RoundLoop, chance: random.Random) -> None:
    """Let chance order what a loop takes in and performs."""
    loop.sources = ShuffledSources(loop.sources, loop.rounds, chance)
    loop.performer = ShuffledPerformer(loop.performer, chance)


def _shuffled(entries: list[WaitingInput], chance: random.Random) -> list[WaitingInput]:
    """Return inputs in another order: reports of a thread stay in order."""
    if len(entries) < 2 or type(entries[0].input) in CREATING:
        return entries
    reports = [(one.input.run, one.input.iteration) if type(one.input) is WorkerReport else None for one in entries]
    queues = {key: iter([one for one, of in zip(entries, reports, strict=True) if of == key]) for key in reports}
    chance.shuffle(reports)
    return [next(queues[key]) for key in reports]


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
            EngineOptions(resolve=self._resolve, max_parallel=_TOOLS_AT_ONCE),
            clock=self._clock,
        )
        engine.loop.writer = ForgetfulWriter(engine.loop.writer)
        if self._seed is not None:
            shuffle(engine.loop, random.Random(self._seed))
        engine.start(bundle, payload, execution_id, ctx=ctx)
        for time, action in controls:
            engine.pipelines.spawn(self._control(engine, execution_id, time, action))
        await engine.run()
        row = self._store.execution(execution_id)
        assert row is not None  # it was started
        return read_result(self._store, self._results, row, self._tools.calls.played)

    async def _control(self, engine: Engine, execution_id: str, time: float, action: Action) -> None:
        await self._clock.sleep(time)
        engine.control(execution_id, action)
