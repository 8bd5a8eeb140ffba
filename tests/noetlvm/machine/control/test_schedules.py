"""No schedule shows in what loops and branches leave behind, and none makes a loop too wide (S24, S26, S65)."""

from __future__ import annotations

import random
from itertools import permutations
from typing import Any

from noetlvm.data.event import Event
from noetlvm.machine import fold
from noetlvm.machine.messages import Work
from noetlvm.machine.state import Run, State
from tests.noetlvm.machine.control.drive import Drive, Hand, bad, loaded, ok

PLAYBOOK = """
- step: start
  spec: { policy: { failure: { mode: best_effort } } }
  loop:
    in: "{{ workload.groups }}"
    iterator: group
    spec: { mode: parallel, max_in_flight: 3, policy: { reducers: { total: sum, seen: extend, last: last } } }
    loop:
      in: "{{ iter.group }}"
      iterator: n
      spec: { mode: parallel, max_in_flight: 2, policy: { reducers: { total: sum, seen: append, last: last } } }
  tool: { kind: noop }
  next: { arcs: [{ step: end, args: { results: "{{ event.result }}", loop: "{{ event.loop }}" } }] }
- { step: end, tool: { kind: noop } }
"""
GROUPS = {"groups": [[1, 2, 3], [4], [], [5, 6], [7, 8, 9, 10]]}


def play(work: Work) -> list[Event]:
    if work.iter is None:
        return ok(work.args)(work)
    n = work.iter["n"]
    if n % 4 == 0:
        return bad()(work)
    return ok(n * n, ctx={"total": n, "seen": n, "last": n, "same": "x"})(work)


class Worker:
    """Holds some commands at once and reports in bits, in any order."""

    def __init__(self, drive: Drive, seed: int) -> None:
        self.drive = drive
        self.chance = random.Random(seed)
        self.left: list[tuple[tuple[int, str, int], list[Event]]] = []

    def run(self) -> None:
        self.drive.start(GROUPS)
        while self.drive.ready or self.left:
            if self.drive.ready and (not self.left or self.chance.random() < 0.6):
                command = self.drive.ready.pop(self.chance.randrange(len(self.drive.ready)))
                self.left.append((command[:3], play(self.drive.control.work(command))))
            else:
                self.report()
            self.check_width()

    def report(self) -> None:
        at = self.chance.randrange(len(self.left))
        key, events = self.left[at]
        count = self.chance.randint(1, len(events))
        self.drive.take(self.drive.control.report(*key, events[:count]))
        self.left[at] = key, events[count:]
        if not events[count:]:
            del self.left[at]

    def check_width(self) -> None:
        for run in self.drive.state.runs.values():
            open_groups = {path.split(".")[0] for path in run.threads}
            assert len(open_groups) <= 3
            for group in open_groups:
                assert sum(path.startswith(f"{group}.") for path in run.threads) <= 2


def outcome(seed: int, net: Any) -> tuple[Any, ...]:
    drive = Drive(net, play, control=Hand)
    Worker(drive, seed).run()
    return drive.state.status, drive.state.ctx, drive.state.results, drive.state.result, drive.state.counts


def test_two_hundred_schedules_leave_the_same_ctx_and_results() -> None:
    net = loaded(PLAYBOOK)
    expected = Drive(net, play).run(GROUPS)
    assert expected.state.ctx == {"total": 43, "seen": [1, 2, 3, 5, 6, 7, 9, 10], "last": 10, "same": "x"}
    assert expected.state.result["loop"] == {"total": 10, "ok": 8, "failed": 2}
    found = {repr(outcome(seed, net)) for seed in range(200)}
    assert found == {repr(outcome(0, net))}
    assert found == {
        repr((expected.state.status, expected.state.ctx, expected.state.results, expected.state.result, [2, 0, 0]))
    }


def test_the_fold_equals_the_live_state_at_every_event_of_some_schedules() -> None:
    net = loaded(PLAYBOOK)
    for seed in range(5):
        drive = Drive(net, play)
        Worker(drive, seed).run()
        assert drive.state.status == "success"


WRITES = {1: [{"b": 1}], 2: [{"d": 2, "a": 2}, {"c": 2}], 3: [{"c": 3, "a": 3}, {"e": 3}]}
"""Patches by the run that makes them, in order."""


def ctx_after(order: tuple[int, ...]) -> list[str]:
    state, left = State(), {number: list(patches) for number, patches in WRITES.items()}
    state.runs = {number: Run("step", {}, False, state.view) for number in WRITES}
    for number in order:
        fold.apply(state, Event("ctx.patched", {"patch": left[number].pop(0)}, number), 0.0)
    return list(state.ctx)


def test_keys_of_ctx_stand_in_the_order_of_the_runs_that_wrote_them() -> None:
    writers = [number for number, patches in WRITES.items() for _ in patches]
    assert {tuple(ctx_after(order)) for order in permutations(writers)} == {("b", "d", "a", "c", "e")}
