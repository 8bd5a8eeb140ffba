"""Drives a Control by hand: compiles steps, plays the worker, and folds the log beside the live state at each event."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from noetlc.compile import PlaybookFile, compile_playbooks
from noetlc.rules.examples import whole_playbook
from noetlvm.data.event import Event
from noetlvm.machine.control import Control, Request, Work
from noetlvm.machine.fold import apply
from noetlvm.machine.journal import Journal
from noetlvm.machine.loaded import LoadedPlaybook, load_program
from noetlvm.machine.payload import Offload
from noetlvm.machine.state import Command, State

Play = Callable[[Work], "list[Event]"]


def loaded(text: str) -> LoadedPlaybook:
    """Return a playbook, given whole or as a list of steps."""
    compiled = compile_playbooks([PlaybookFile("playbook.yaml", whole_playbook(text).encode())])
    assert compiled.program is not None, [finding for file in compiled.files for finding in file.findings]
    return load_program(compiled.data).main


class Witness(Journal):
    """Folds every event a second time, and compares: state is the fold of the log and nothing else."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self.shadow = State.from_data(state.to_data())

    def tell(self, event: Event) -> None:
        super().tell(event)
        apply(self.shadow, event, self.now)
        live = self.state.to_data()
        assert self.shadow.to_data() == live
        assert State.from_data(live).to_data() == live


def watched(net: LoadedPlaybook, state: State, offload: Offload) -> Control:
    """Return a control whose every event is witnessed."""
    return Control(net, state, offload, Witness(state))


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
    thing = "loop.iteration" if work.command.iteration else "step"
    return Event(f"{thing}.{'failed' if 'error' in data else 'done'}", data)


class Drive:
    """One execution, played to its end or by single steps."""

    def __init__(
        self,
        text: str | LoadedPlaybook,
        play: Play | dict[str, Play] | None = None,
        *,
        control: Callable[[LoadedPlaybook, State, Offload], Control] = watched,
    ) -> None:
        self.net = loaded(text) if isinstance(text, str) else text
        self.blobs: dict[str, bytes] = {}
        self.control = control(self.net, State(), Offload(fetch=lambda reference: self.blobs[reference.key]))
        self.state = self.control.state
        self.play = play if play is not None else ok()
        self.events: list[Event] = []
        self.ready: list[Command] = []

    def take(self, events: list[Event]) -> list[Event]:
        """Let events be durable: settle, and take what is ready."""
        made = events + self.control.settle()
        self.blobs.update(self.control.offload.take_blobs())
        self.events += made
        self.ready += self.control.take_ready()
        return made

    def start(self, payload: dict[str, Any] | None = None, **more: Any) -> Drive:
        self.take(self.control.start(Request("x", "bundle", payload or {}, **more)))
        return self

    def perform(self, command: Command) -> list[Event]:
        """Run one command as the worker would."""
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
