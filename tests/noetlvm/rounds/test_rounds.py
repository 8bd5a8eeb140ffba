"""Rounds as values: reads, then decisions, then one write; a failed write or a lost race is decided once in the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from noetlvm.bridge import compile_texts
from noetlvm.data.event import Event
from noetlvm.machine.loaded import Bundle
from noetlvm.machine.messages import Cancel, Input, Pause, Resume, TimerDue, WorkerReport
from noetlvm.machine.payload import Offload
from noetlvm.machine.replay import replay
from noetlvm.store.interface import Append, StoreError
from noetlvm.store.memory import MemoryStore
from tests.noetlvm.rounds.desk import Desk
from tests.noetlvm.rounds.test_requests import CHILD, PARENT

BUNDLE = Bundle.of(compile_texts([PARENT, CHILD]))


class SealedStore(MemoryStore):
    """Can be used by nobody while it is sealed, and loses writes as often as it is set to."""

    is_sealed = False
    lost_writes = 0

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if callable(found) and not name.startswith("_") and super().__getattribute__("is_sealed"):
            raise AssertionError(f"a decision calls `{name}` of the store")
        return found

    def write(self, batch: Sequence[Append], bundles: Mapping[str, bytes] = {}) -> set[str]:
        if self.lost_writes:
            self.lost_writes -= 1
            raise StoreError("the disk is full")
        return super().write(batch, bundles)


def child_wanted(path: str = "tests/child") -> Input:
    return WorkerReport(1, "", 1, [Event("task.started", {"ts": 1.0, "child": {"path": path}}, 1, "", 1, "child", 1)])


@pytest.mark.parametrize(
    "inputs",
    [
        [child_wanted()],
        [child_wanted("tests/none")],
        [child_wanted(), Cancel()],
        [Pause(), child_wanted(), Resume()],
        [TimerDue(), Cancel()],
    ],
)
def test_no_decision_calls_the_store(inputs: list[Input]) -> None:
    store = SealedStore()
    desk = Desk(store, is_shared=True)
    id = desk.start(BUNDLE)
    desk.settle()
    for given in inputs:
        desk.submit(id, given)
    while desk.rounds.has_inputs or desk.rounds.has_unwritten or desk.intake.is_wanted:
        desk.intake.take_in_now()
        store.is_sealed = True
        round = desk.rounds.next(1.0, desk.is_spent)
        store.is_sealed = False
        if round is not None:
            settled = desk.rounds.settle(round, store.write(round.batch(desk.assign, 1.0), round.bundles))
            desk.intake.looks = settled.has_sent or desk.intake.has_postponed
    assert store.requests() == []
    assert replay(BUNDLE.program.main, list(store.events(id)), Offload()) is None


def test_events_have_the_time_of_their_decision_however_often_its_write_fails() -> None:
    store, time = SealedStore(), [1.0]
    desk = Desk(store, is_shared=True, now=lambda: time[0])
    id = desk.start(BUNDLE)
    desk.settle()
    desk.submit(id, child_wanted())
    store.lost_writes = 2
    for later in (2.0, 3.0):
        time[0] = later
        with pytest.raises(StoreError):
            desk.turn()
    desk.submit(id, Pause())
    time[0] = 4.0
    desk.turn()
    log = list(store.events(id))
    assert {one.timestamp for one in log if one.event.name == "task.started"} == {2.0}
    assert {one.timestamp for one in log if one.event.name == "execution.paused"} == {4.0}
    assert replay(BUNDLE.program.main, log, Offload()) is None


def test_an_execution_has_ended_with_its_last_event_whatever_is_acknowledged_later() -> None:
    store, time = MemoryStore(), [1.0]
    desk = Desk(store, is_shared=True, now=lambda: time[0])
    id = desk.start(BUNDLE)
    desk.settle()
    desk.submit(id, Cancel())
    round = desk.rounds.next(2.0, desk.is_spent)
    assert round is not None
    store.request(id, "pause")  # while that is written
    desk.look()
    desk.intake.take_in_now()
    desk.rounds.settle(round, store.write(round.batch(desk.assign, 2.0), round.bundles))
    time[0] = 9.0
    desk.settle()
    row = store.execution(id)
    assert row is not None
    assert (row.status, row.ended, store.requests()) == ("cancelled", 2.0, [])


def test_a_round_is_settled_or_returned_before_the_next() -> None:
    desk = Desk(MemoryStore())
    desk.start(BUNDLE)
    round = desk.rounds.next(1.0, desk.is_spent)
    assert round is not None
    with pytest.raises(RuntimeError, match="a round is out"):
        desk.rounds.next(1.0, desk.is_spent)
    desk.rounds.keep(round)
    again = desk.rounds.next(1.0, desk.is_spent)
    assert again is not None
    assert again.executions == round.executions
