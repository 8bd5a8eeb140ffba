"""Witnesses are runs: each is played on the machine's own control, which admits, routes and counts tokens itself.

What a guard reads is data, and the abstraction lets it go either way; so here guards answer as the witness says. All
the rest, which tokens there are, which arcs a router may fire, when a step can run, is the machine's.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from noetlc.graph.analyse import analyse
from noetlc.graph.report import Firing, Witness
from noetlc.net.program import program_net as build_net
from noetlvm.bytecode.program import Program
from noetlvm.machine.loaded import LoadedPlaybook, LoadedStep, prepare
from noetlvm.record import changed
from tests.noetlc.graph.random_playbooks import random_playbook
from tests.noetlvm.machine.control.drive import Drive, Hand, bad, ok

NETS_PER_BATCH = 40


class Gate(NamedTuple):
    """A gate that a function decides."""

    admits: Callable[[Any, Any], bool]

    def __call__(self, names: Any, fuel: Any) -> bool:
        return self.admits(names, fuel)

    def deciding_rule(self, names: Any) -> tuple[int, str]:
        return 0, ""


class Script:
    """Plays one witness: says which tokens may enter, how runs end, and which guards hold."""

    def __init__(self, net: LoadedPlaybook, witness: Witness) -> None:
        self.moves = [firing for firing in witness if firing.event not in ("token.rejected", "token.dropped")]
        self._dropped = {firing.step for firing in witness if firing.event == "token.dropped"}
        self._by_step: dict[str, list[Firing]] = defaultdict(list)
        for firing in self.moves:
            self._by_step[firing.step].append(firing)
        self._admitted: dict[str, int] = defaultdict(int)
        self._routing: dict[str, int] = defaultdict(lambda: -1)
        self.net = changed(net, steps={name: self._scripted(name, step) for name, step in net.steps.items()})

    def _scripted(self, name: str, step: LoadedStep) -> LoadedStep:
        first = next((number for number, arc in enumerate(step.arcs, 1) if arc.guard), 0)
        arcs = tuple(
            changed(arc, args=None, guard=arc.guard and self._guard(name, number, number == first))
            for number, arc in enumerate(step.arcs, 1)
        )
        return changed(step, admit=self._gate(name), drops_denied=name in self._dropped, loops=(), arcs=arcs)

    def _gate(self, name: str) -> Any:
        def admits(names: Any, fuel: Any) -> bool:
            self._admitted[name] += 1
            return self._admitted[name] <= len(self._by_step[name])

        return Gate(admits)

    def _guard(self, name: str, number: int, is_first: bool) -> Any:
        def holds(names: Any, fuel: Any) -> bool:
            self._routing[name] += is_first
            return number in self._by_step[name][self._routing[name]].arcs

        return holds

    def play(self) -> dict[str, list[tuple[str, ...]]]:
        """Return where tokens went from each step, firing by firing."""
        drive = Drive(self.net, {}, control=Hand).start()
        for firing in self.moves:
            if self.net.steps[firing.step].pipeline is None:
                continue  # the server has fired it by itself
            command = next(one for one in drive.ready if drive.control.work(one).step == firing.step)
            drive.ready.remove(command)
            drive.play = bad() if firing.event == "step.failed" else ok()
            drive.perform(command)
        step_of = {event.run: event.data["step"] for event in drive.events if event.name == "step.scheduled"}
        went: dict[str, list[tuple[str, ...]]] = defaultdict(list)
        for event in drive.events:
            if event.name == "next.evaluated":
                sent = (one for one in drive.events if one.name == "token.enqueued" and one.run == event.run)
                went[step_of[event.run]].append(tuple(token.data["step"] for token in sent))
        return went

    def reported(self) -> dict[str, list[tuple[str, ...]]]:
        """Return the same from the witness."""
        return {name: [firing.targets for firing in firings] for name, firings in self._by_step.items() if firings}


@pytest.mark.parametrize("batch", range(5))
def test_every_witness_is_a_run_of_the_machine(batch: int) -> None:
    rng = random.Random(f"machine {batch}")
    played = 0
    for _ in range(NETS_PER_BATCH):
        playbook = random_playbook(rng).program()
        net = prepare(Program((playbook,))).main
        for finding in analyse(build_net(playbook)).findings:
            script = Script(net, finding.witness)
            assert script.play() == script.reported(), finding
            played += 1
    assert played > NETS_PER_BATCH // 2
