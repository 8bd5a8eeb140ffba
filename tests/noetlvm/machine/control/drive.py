"""Gives inputs to `decide` by hand: compiles steps, plays the worker, and rebuilds the state after each decision."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from noetlc.compile import Compiled, compile_playbooks
from noetlc.rules.catalogue import whole_playbook
from noetlvm.data.encoding import decode, encode
from noetlvm.data.event import Event
from noetlvm.machine.decide import decide, offers, work_for
from noetlvm.machine.fold import apply
from noetlvm.machine.loaded import LoadedPlaybook, load_program
from noetlvm.machine.messages import (
    Cancel,
    CancelChild,
    ChildFinished,
    CloseWork,
    Continue,
    Decision,
    Input,
    LeaseLost,
    OpenWork,
    Pause,
    Refuse,
    Request,
    Resume,
    Start,
    StartChild,
    StopWork,
    TimerDue,
    WakeAt,
    Work,
    WorkerReport,
)
from noetlvm.machine.payload import Offload
from noetlvm.machine.state import Child, State
from noetlvm.testing.simulation import NotTheFoldError

Play = Callable[[Work], "list[Event]"]


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


def compiled(text: str) -> Compiled:
    """Return the bundle of a playbook, given whole or as a list of steps."""
    made = compile_playbooks([("playbook.yaml", whole_playbook(text).encode())])
    assert made.program is not None, [finding for file in made.files for finding in file.findings]
    return made


def loaded(text: str) -> LoadedPlaybook:
    return load_program(compiled(text).data).main


class Command(NamedTuple):
    """A thread that a worker may take."""

    run: int
    iteration: str
    lease: int
    unit: str


class Hand:
    """Gives inputs to `decide` and collects its effects."""

    def __init__(self, net: LoadedPlaybook, state: State, offload: Offload, decider: Any = decide) -> None:
        self.net = net
        self.state = state
        self.offload = offload
        self.now = 0.0
        self._decide = decider
        self._effects: list[Any] = []
        self._due: float | None = None

    def give(self, given: Input) -> list[Event]:
        """Decide on an input, to its end."""
        made: list[Event] = []
        inputs = [given]
        while inputs:
            events, effects, rest = self._decide(self.net, self.state, inputs.pop(0), self.now, self.offload)
            made += events
            inputs += rest
            self._effects += [effect for effect in effects if type(effect) is not CloseWork]
            self._due = next((effect.at for effect in effects if type(effect) is WakeAt), None)
        return made

    def set_time(self, now: float) -> None:
        self.now = now

    def start(self, request: Request) -> list[Event]:
        return self.give(Start(request))

    def refuse(self, request: Request, error: dict[str, Any]) -> list[Event]:
        return self.give(Refuse(request, error))

    def report(self, run: int, iteration: str, lease: int, events: Sequence[Event]) -> list[Event]:
        return self.give(WorkerReport(run, iteration, lease, events))

    def expire(self, run: int, iteration: str, lease: int) -> list[Event]:
        return self.give(LeaseLost(run, iteration, lease))

    def child_finished(self, run: int, iteration: str, key: str, outcome: dict[str, Any]) -> list[Event]:
        return self.give(ChildFinished(run, iteration, key, outcome))

    def timer(self) -> list[Event]:
        return self.give(TimerDue())

    def pause(self) -> list[Event]:
        return self.give(Pause())

    def resume(self) -> list[Event]:
        return self.give(Resume())

    def cancel(self) -> list[Event]:
        return self.give(Cancel())

    def settle(self) -> list[Event]:
        return self.give(Continue())

    def next_timer(self) -> float | None:
        return self._due

    def work(self, command: Command) -> Work:
        work = work_for(self.net, self.state, command.run, command.iteration, self.offload)
        assert work is not None
        return work

    def offer_all(self) -> None:
        """Collect everything that the state needs, as after a restart."""
        self._effects = offers(self.net, self.state)

    def take_ready(self, limit: int | None = None) -> list[Command]:
        opened = self._taken(OpenWork, limit)
        return [Command(work.run, work.iteration, work.lease, work.unit) for work in opened if self.is_current(work)]

    def is_current(self, work: OpenWork | Command) -> bool:
        thread = self.state.thread(work.run, work.iteration)
        return thread is not None and thread.lease == work.lease

    def take_children(self) -> list[tuple[int, str, Child]]:
        return [tuple(start) for start in self._taken(StartChild)]

    def take_cancelled(self) -> list[str]:
        return [cancel.key for cancel in self._taken(CancelChild)]

    def take_stopped(self) -> list[tuple[int, str]]:
        return [stop[:2] for stop in self._taken(StopWork)]

    def _taken(self, kind: type, limit: int | None = None) -> list[Any]:
        taken = [effect for effect in self._effects if type(effect) is kind][:limit]
        self._effects = [effect for effect in self._effects if effect not in taken]
        return taken


def watched(net: LoadedPlaybook, state: State, offload: Offload) -> Hand:
    """Return a hand whose state is thrown away and read back after each decision."""
    return Hand(net, state, offload, forgetful_decide)


def ok(result: Any = None, **patches: Any) -> Play:
    """Return a worker whose one task succeeds; `ctx` and `iter` are what it writes."""

    def play(work: Work) -> list[Event]:
        done = {"outcome": {"status": "ok", "result": result, "meta": {"attempt": 1}}, "do": "continue", "pc": 5}
        return [task_done(done | patches), ending(work, result=result)]

    return play


def bad(kind: str = "boom", **patches: Any) -> Play:
    """Return a worker whose one task fails."""
    error = {"kind": kind, "retryable": False, "message": "it failed", "details": {}}

    def play(work: Work) -> list[Event]:
        done = {"outcome": {"status": "error", "error": error, "meta": {"attempt": 1}}, "do": "fail", "pc": 5}
        return [task_done(done | patches), ending(work, error=error)]

    return play


def task_done(data: dict[str, Any], task: int = 1, attempt: int = 1) -> Event:
    return Event("task.done", data, task=task, label=f"task_{task}", attempt=attempt)


def ending(work: Work, **data: Any) -> Event:
    thing = "loop.iteration" if work.iteration else "step"
    return Event(f"{thing}.{'failed' if 'error' in data else 'done'}", data)


class Drive:
    """One execution, played to its end or by single steps."""

    def __init__(
        self,
        text: str | LoadedPlaybook,
        play: Play | dict[str, Play] | None = None,
        *,
        control: Callable[[LoadedPlaybook, State, Offload], Hand] = watched,
    ) -> None:
        self._make = control
        self.net = loaded(text) if isinstance(text, str) else text
        self.blobs: dict[str, bytes] = {}
        self.control = control(self.net, State(), Offload(fetch=lambda reference: self.blobs[reference.key]))
        self.state = self.control.state
        self.play = play if play is not None else ok()
        self.events: list[Event] = []
        self.ready: list[Command] = []

    def restart(self, state: State | None = None) -> Drive:
        """Return a drive over another state, or this one read from its data, as after a crash."""
        again = Drive(self.net, self.play, control=self._make)
        again.blobs = self.blobs
        offload = Offload(fetch=lambda reference: self.blobs[reference.key])
        again.control = self._make(self.net, state or State.from_data(self.state.to_data()), offload)
        again.state = again.control.state
        again.take(again.control.resume())
        return again

    def take(self, events: list[Event]) -> list[Event]:
        """Let events be durable, and take what is ready."""
        made = events
        self.blobs.update(self.control.offload.take_blobs())
        self.events += made
        self.ready += self.control.take_ready()
        return made

    def start(self, payload: dict[str, Any] | None = None, **more: Any) -> Drive:
        self.take(self.control.start(Request("x", "bundle", payload or {}, **more)))
        return self

    def perform(self, command: Command) -> list[Event]:
        """Run one command as the worker would."""
        if not self.control.is_current(command):
            return []
        work = self.control.work(command)
        play = self.play[work.step] if isinstance(self.play, dict) else self.play
        return self.take(self.control.report(command.run, command.iteration, command.lease, play(work)))

    def run(self, payload: dict[str, Any] | None = None, seed: int | None = None) -> Drive:
        """Play to the end; a seed chooses which of the ready commands goes next."""
        chance = random.Random(seed)
        self.start(payload)
        while self.ready:
            self.perform(self.ready.pop(chance.randrange(len(self.ready)) if seed is not None else 0))
        return self

    def names(self) -> list[str]:
        return [event.name for event in self.events]

    def steps(self) -> list[str]:
        """Return the steps that were scheduled, in order."""
        return [event.data["step"] for event in self.events if event.name == "step.scheduled" and "step" in event.data]

    def last(self, name: str) -> Event:
        return [event for event in self.events if event.name == name][-1]
