"""Runs executions on a clock of its own: things happen in the order of their time, and what is due at once by chance.

It stands where the engine stands and drives the same machine. There is no store and no event loop, and one seed gives
one schedule, so that a run that went wrong can be had again.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import Any, NamedTuple

from noetlvm.data.event import Event
from noetlvm.data.references import Reference
from noetlvm.engine.actor import Ending, Input
from noetlvm.engine.children import outcome_of, payload_of, refusal
from noetlvm.engine.credentials import Credentials, Resolve, Unresolved
from noetlvm.engine.identity import child_id
from noetlvm.machine.control import Control, Request
from noetlvm.machine.effects import failure
from noetlvm.machine.loaded import LoadedPlaybook, LoadedProgram
from noetlvm.machine.payload import Offload
from noetlvm.machine.state import Child, Command, State
from noetlvm.testing.pipeline import Pipeline
from noetlvm.testing.result import CallMade, RunResult, shown
from noetlvm.testing.script import Script
from noetlvm.testing.witness import Witness

ACTIONS_MAX = 1_000_000
"""Things that may happen in one simulation: a playbook that never ends must not hang a test."""

Action = Callable[[], None]


class Endless(AssertionError):  # noqa: N818 - it says what happened
    """The simulation does not end."""


class Clock:
    """Virtual time, and what is to happen when."""

    def __init__(self, seed: int | None) -> None:
        self.now = 0.0
        self._chance = random.Random(seed) if seed is not None else None
        self._due: list[tuple[float, float, int, Action]] = []
        self._count = count()

    def at(self, time: float, action: Action) -> None:
        """Let something happen then, among all that happens then by chance or in the order of asking."""
        order = self._chance.random() if self._chance else 0.0
        heapq.heappush(self._due, (max(time, self.now), order, next(self._count), action))

    def run(self) -> None:
        """Let time pass until nothing is to happen any more."""
        for _ in range(ACTIONS_MAX):
            if not self._due:
                return
            self.now, _, _, action = heapq.heappop(self._due)
            action()
        raise Endless(f"{ACTIONS_MAX:,} things have happened, and more are due")


class Surroundings(NamedTuple):
    """What all executions of a simulation share."""

    program: LoadedProgram
    clock: Clock
    script: Script
    resolve: Resolve
    blobs: dict[str, bytes]
    executions: dict[str, Simulated]
    """By identifier, in the order in which they were started."""


class Simulated:
    """One execution."""

    def __init__(self, around: Surroundings, playbook: LoadedPlaybook, request: Request) -> None:
        self.around = around
        self.id = request.execution_id
        self.when_over: Action | None = None
        self._request = request
        try:
            self.credentials, refused = around.resolve(playbook.keychain), None
        except Unresolved as problem:
            self.credentials, refused = Credentials(), failure("keychain", str(problem))
        self._refused = refused
        offload = Offload(playbook.limits.max_payload_bytes, self._fetch, self.credentials.redact)
        state = State()
        self.control = Control(playbook, state, offload, Witness(state))
        self.events: list[Event] = []
        self.times: list[float] = []
        self.calls: list[CallMade] = []
        self.children: list[str] = []
        self.running = 0
        self.in_flight = 0
        self._due: float | None = None

    @property
    def state(self) -> State:
        return self.control.state

    def start(self) -> None:
        """Ask for it."""
        if self._refused:
            self.take(partial(self.control.refuse, self._request, self._refused))
        else:
            self.take(partial(self.control.start, self._request))

    def ask(self, action: str) -> None:
        """Cancel, pause or resume it."""
        self.take({"cancel": self.control.cancel, "pause": self.control.pause, "resume": self.control.resume}[action])

    def report(self, command: Command, events: list[Event]) -> None:
        """Hear from a worker."""
        self.take(partial(self.control.report, command.run, command.iteration, command.lease, events))

    def expire(self, command: Command) -> None:
        """Give a worker up."""
        self.take(partial(self.control.expire, command.run, command.iteration, command.lease))

    def take(self, happened: Input) -> None:
        """Let something have happened, its events be durable with all that follows, and do what they ask for."""
        self.control.set_time(self.around.clock.now)
        events = happened()
        if self.times and self.state.is_over and not events:
            return
        made = events + self.control.settle()
        self.around.blobs.update(self.control.offload.take_blobs())
        self.events += made
        self.times += [self.around.clock.now] * len(made)
        self._follow_up()

    def is_current(self, command: Command) -> bool:
        """Tell whether a command's lease still counts."""
        run = self.state.runs.get(command.run)
        is_open = run is not None and command.iteration in run.threads and self.state.status == "running"
        return is_open and run is not None and run.leases.get(command.unit, 1) == command.lease

    def made_call(self, call: CallMade) -> None:
        """Note that a tool runs."""
        self.calls.append(call)
        self.running += 1
        self.in_flight = max(self.in_flight, self.running)

    def result(self) -> RunResult:
        """Return how it went."""
        read, state = self.control.offload.read, self.state
        return RunResult(
            execution_id=self.id,
            status="paused" if state.paused else state.status,
            ctx=self._plain(state.ctx),
            result=self._plain(read(state.result)),
            failures=list(state.failures),
            events=self.events,
            times=self.times,
            calls=self.calls,
            in_flight=self.in_flight,
            children=[self.around.executions[id].result() for id in self.children],
            stored=self.around.blobs,
        )

    def _plain(self, value: Any) -> Any:
        """Return data with everything in it that is stored elsewhere."""
        value = self.control.offload.read(value)
        if isinstance(value, dict):
            return {key: self._plain(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._plain(item) for item in value]
        return shown(value)

    def _fetch(self, reference: Reference) -> bytes:
        return self.around.blobs[reference.key]

    # ---- effects

    def _follow_up(self) -> None:
        control, clock = self.control, self.around.clock
        for key in control.take_cancelled():
            child = self.around.executions.get(child_id(key))
            if child is not None:
                child.ask("cancel")
        if self.state.is_over:
            self._end()
            return
        # Children first: one that stands too deep is answered at once, and its parent is ready.
        for run, iteration, child_asked in control.take_children():
            self._start_child(run, iteration, child_asked)
        for command in control.take_ready():
            clock.at(clock.now, partial(self._begin, command))
        due = control.next_timer()
        if due is not None and due != self._due:
            self._due = due
            clock.at(due, self._ring)

    def _ring(self) -> None:
        self._due = None
        self.take(self.control.timer)

    def _begin(self, command: Command) -> None:
        if self.is_current(command):
            Pipeline(self, self.control.work(command)).go()

    def _end(self) -> None:
        tell, self.when_over = self.when_over, None
        if tell is not None:
            tell()

    # ---- children

    def _start_child(self, run: int, iteration: str, child: Child) -> None:
        around, id = self.around, child_id(child.key)
        playbook = around.program.playbooks.get(child.path)
        refused = refusal(child, playbook, around.program)
        answer = partial(self._answer, run, iteration, child.key)
        if playbook is None or refused:
            answer(refused)
            return
        payload = payload_of(child, self.control.offload)
        request = Request(id, self.state.bundle, payload, self.id, self.state.depth + 1, self.state.trace)
        made = around.executions[id] = Simulated(around, playbook, request)
        made.when_over = lambda: answer(outcome_of(Ending.of(id, made.state.status, made.state)))
        self.children.append(id)
        around.clock.at(around.clock.now, made.start)

    def _answer(self, run: int, iteration: str, key: str, outcome: Mapping[str, Any]) -> None:
        readable = self.control.offload.readable(dict(outcome))
        self.take(partial(self.control.child_finished, run, iteration, key, readable))
