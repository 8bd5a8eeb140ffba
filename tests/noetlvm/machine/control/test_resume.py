"""Whatever was durable when a process died, the execution that continues from it ends as it would have (S35)."""

from __future__ import annotations

from typing import Any

from noetlvm.data.event import Event
from noetlvm.machine.fold import apply
from noetlvm.machine.messages import Request
from noetlvm.machine.state import State
from tests.noetlvm.machine.control.drive import Drive, Hand, loaded
from tests.noetlvm.machine.control.test_schedules import GROUPS, PLAYBOOK, play


def ends(state: State) -> tuple[Any, ...]:
    return state.status, state.ctx, state.results, state.result, state.counts, state.failures


def durable_prefixes(net: Any) -> tuple[list[list[Event]], State]:
    """Return the logs that a crash can leave: each decision is there as a whole or not at all."""
    drive = Drive(net, play, control=Hand)
    log: list[Event] = []
    prefixes = []

    def commit(events: list[Event]) -> None:
        log.extend(events)
        prefixes.append(list(log))

    commit(drive.control.start(Request("x", "bundle", GROUPS)))
    while ready := drive.control.take_ready():
        for command in ready:
            for event in play(drive.control.work(command)):
                commit(drive.control.report(*command[:3], [event]))
    return prefixes, drive.state


def test_every_durable_log_can_be_gone_on_from() -> None:
    net = loaded(PLAYBOOK)
    prefixes, expected = durable_prefixes(net)
    assert len(prefixes) > 20
    for prefix in prefixes:
        state = State()
        for event in prefix:
            apply(state, event, 0.0)
        again = Drive(net, play, control=Hand).restart(state)
        while again.ready:
            again.perform(again.ready.pop(0))
        assert ends(again.state) == ends(expected)
        whole = prefix + again.events
        tasks = [event[2:] for event in whole if event.name == "task.done"]
        assert len(tasks) == len(set(tasks))
        tokens = [event.data["token"] for event in whole if event.name == "step.scheduled"]
        assert len(tokens) == len(set(tokens))


def test_a_log_folds_to_its_state() -> None:
    net = loaded(PLAYBOOK)
    prefixes, expected = durable_prefixes(net)
    state = State()
    for event in prefixes[-1]:
        apply(state, event, 0.0)
    assert state.to_data() == expected.to_data()
