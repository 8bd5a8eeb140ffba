"""Requests between executions that several servers deliver: late, or twice."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from noetlvm.bridge import compile_texts
from noetlvm.data.event import Event, Recorded
from noetlvm.machine.loaded import Bundle
from noetlvm.machine.messages import Cancel, Input, Pause, TimerDue, WorkerReport
from noetlvm.results.interface import MemoryResults
from noetlvm.rounds.children import ChildRequest
from noetlvm.rounds.requests import StartContent
from noetlvm.store.interface import Append, Execution, ExecutionRequest, StoreError
from noetlvm.store.memory import MemoryStore
from tests.noetlvm.rounds.desk import Desk

PLAYBOOK = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: one, path: tests/one }
workflow:
  - step: start
"""


class RepeatingStore(MemoryStore):
    """Delivers a request again that was answered before, as a shared database may."""

    again: tuple[ExecutionRequest, ...] = ()

    def requests(
        self, execution_id: str | None = None, *, after: int = 0, limit: int | None = None
    ) -> list[ExecutionRequest]:
        again, self.again = self.again, ()
        return [*super().requests(execution_id, after=after, limit=limit), *again]


def decided(server: Desk) -> None:
    server.settle()


def test_a_start_that_is_delivered_again_after_the_end_is_acknowledged() -> None:
    store = RepeatingStore()
    server = Desk(store, is_shared=True)
    bundle = Bundle.of(compile_texts([PLAYBOOK]))
    id = server.start(bundle, {})
    decided(server)
    ended = store.execution(id)
    assert ended is not None
    assert ended.status == "success"
    child = ChildRequest("tests/one", None, {}, "", bundle.id, "", 0, "", 9)
    store.again = (ExecutionRequest(id, "start", child.to_data(), 7),)
    server.collect()
    decided(server)
    assert store.execution(id) == ended
    assert server.rounds.active == {}


def test_a_start_that_waits_while_another_server_starts_the_same_execution_is_no_second_start() -> None:
    store = RepeatingStore()
    first, second = (Desk(store, is_shared=True) for _ in range(2))
    bundle = Bundle.of(compile_texts([CHILD]))
    first.start(bundle, {})
    decided(first)  # the store has the bundle
    child = ChildRequest("tests/child", None, {}, "", bundle.id, "", 0, "", 9)
    wanted = (ExecutionRequest("both", "start", child.to_data(), 7),)
    store.again = wanted
    first.collect()
    store.again = wanted
    second.collect()
    decided(second)
    asyncio.run(first.intake.refresh("both"))  # it claims a command that the other has opened
    decided(first)
    names = [recorded.event.name for recorded in store.events("both")]
    assert names.count("playbook.execution.requested") == 1


PARENT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: parent, path: tests/parent }
workflow:
  - step: start
    tool: [{ child: { kind: playbook, path: tests/child } }]
"""
CHILD = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: child, path: tests/child }
workflow:
  - step: start
    tool: [{ work: { kind: shell, command: ["true"] } }]
"""


class Parent:
    """An execution whose only task starts a child, and the server that decides for it."""

    def __init__(self, path: str = "tests/child", store: MemoryStore | None = None) -> None:
        self.store = store or MemoryStore()
        self.server = Desk(self.store, is_shared=True)
        self.path = path
        self.id = self.server.start(Bundle.of(compile_texts([PARENT, CHILD])), {})
        decided(self.server)

    def give(self, *inputs: Input) -> None:
        """Let it decide on inputs that arrive together."""
        for given in inputs:
            self.server.submit(self.id, given)
        decided(self.server)

    def child_wanted(self, **more: float) -> Input:
        wants = Event("task.started", {"ts": 1.0, "child": {"path": self.path} | more}, 1, "", 1, "child", 1)
        return WorkerReport(1, "", 1, [wants])

    def statuses(self) -> list[str]:
        return sorted(row.status for row in self.store.executions())


def test_a_child_that_a_pause_held_back_is_not_cancelled_with_its_parent() -> None:
    parent = Parent()
    parent.give(Pause())
    parent.give(parent.child_wanted())
    parent.give(Cancel())
    assert parent.statuses() == ["cancelled"]
    assert parent.store.requests() == []


def test_a_child_that_was_refused_is_not_cancelled_with_its_parent() -> None:
    parent = Parent("tests/none")
    parent.give(parent.child_wanted(), Cancel())
    assert parent.statuses() == ["cancelled"]
    assert parent.store.requests() == []


def test_a_request_to_cancel_a_child_that_never_was_is_acknowledged_though_its_parent_goes_on() -> None:
    parent = Parent("tests/none")
    parent.give(parent.child_wanted(timeout=0), TimerDue())
    parent.server.collect()
    decided(parent.server)
    assert parent.statuses() == ["running"]
    assert parent.store.requests() == []


def test_a_child_whose_root_ended_in_the_same_write_is_not_started() -> None:
    parent = Parent()
    parent.give(parent.child_wanted(), Cancel())
    assert parent.statuses() == ["cancelled"]
    assert parent.store.requests() == []


def alone(store: MemoryStore) -> Desk:
    return Desk(store)


def test_a_process_that_has_the_store_for_itself_acknowledges_requests_to_what_has_ended() -> None:
    store = RepeatingStore()
    server = alone(store)
    id = server.start(Bundle.of(compile_texts([CHILD])), {})
    decided(server)
    store.request(id, "cancel")
    server.submit(id, Cancel())  # it ends before anything looks for requests
    decided(server)
    assert len(store.requests()) == 1
    server.collect()
    assert store.requests() == []


def test_a_process_that_has_the_store_for_itself_leaves_what_it_was_not_given() -> None:
    store = MemoryStore()
    first = alone(store)
    id = first.start(Bundle.of(compile_texts([CHILD])), {})
    decided(first)
    store.request(id, "cancel")
    second = alone(store)
    second.collect()
    assert second.rounds.active == {}
    assert [request.action for request in store.requests()] == ["cancel"]


class FailingStore(MemoryStore):
    """Refuses every transaction while it is full."""

    is_full = False

    def write(self, batch: Sequence[Append], bundles: Mapping[str, bytes] = {}) -> set[str]:
        if self.is_full:
            raise StoreError("database or disk is full")
        return super().write(batch, bundles)


def test_a_request_that_the_store_could_not_acknowledge_is_delivered_again() -> None:
    store = FailingStore()
    server = alone(store)
    id = server.start(Bundle.of(compile_texts([CHILD])), {})
    decided(server)
    store.request(id, "cancel")
    server.submit(id, Cancel())
    decided(server)
    store.is_full = True
    with pytest.raises(StoreError):
        server.collect()
    store.is_full = False
    server.collect()
    assert store.requests() == []


class UnreadableStore(MemoryStore):
    """Cannot be read while it is away."""

    is_away = False

    def execution(self, execution_id: str) -> Execution | None:
        if self.is_away:
            raise StoreError("the connection to the database was lost")
        return super().execution(execution_id)


def test_a_child_that_is_requested_while_the_store_is_away_is_started_later() -> None:
    store = UnreadableStore()
    parent = Parent(store=store)
    parent.server.submit(parent.id, parent.child_wanted())
    store.is_away = True
    parent.server.turn()  # neither a decision nor its write reads the store
    with pytest.raises(StoreError):
        parent.server.turn()
    store.is_away = False
    decided(parent.server)
    names = [recorded.event.name for recorded in store.events(parent.id)]
    assert names.count("task.started") == 1
    assert parent.statuses() == ["running", "running"]


def test_a_bundle_that_comes_while_a_batch_is_written_is_stored_by_the_next() -> None:
    store = MemoryStore()
    server = Desk(store)
    first, second = (Bundle.of(compile_texts([PLAYBOOK.replace("one", name)])) for name in ("first", "second"))
    server.start(first, {})
    round = server.rounds.next(1.0, server.is_spent)
    assert round is not None
    server.start(second, {})
    server.rounds.settle(round, store.write(round.batch(server.assign, 1.0), round.bundles))
    assert (store.bundle(first.id), store.bundle(second.id)) == (first.data, None)
    decided(server)
    assert store.bundle(second.id) == second.data


def test_inputs_of_an_execution_that_lost_a_race_are_decided_even_if_it_cannot_be_read_again_at_once() -> None:
    store = UnreadableStore()
    first, second = (Desk(store, is_shared=True) for _ in range(2))
    id = first.start(Bundle.of(compile_texts([CHILD])), {})
    decided(first)
    late = second.intake.load(id)
    first.submit(id, Pause())
    decided(first)
    answers: list[bool] = []
    second.submit(id, Cancel(), answers.append)
    store.is_away = True
    for _ in range(2):
        with pytest.raises(StoreError):
            decided(second)
    store.is_away = False
    decided(second)
    assert answers == [True]
    assert [(row.status, row.seq) for row in store.executions()] == [("cancelled", late.row.seq)]


class UnansweringStore(MemoryStore):
    """Loses the answer to a transaction."""

    loses_answer = False

    def write(self, batch: Sequence[Append], bundles: Mapping[str, bytes] = {}) -> set[str]:
        conflicts = super().write(batch, bundles)
        if self.loses_answer:
            self.loses_answer = False
            raise StoreError("the connection to the database was lost")
        return conflicts


CLOSED = (
    PLAYBOOK.rstrip()
    + "\n    spec: { policy: { admit: { rules: [{ when: '{{ false }}', then: { allow: true } }] } } }\n"
)


def test_a_retry_whose_write_had_no_answer_is_no_second_retry() -> None:
    store = UnansweringStore()
    server = Desk(store, is_shared=True)
    failed = server.start(Bundle.of(compile_texts([CLOSED])), {})
    decided(server)
    answers: list[bool] = []
    id = server.retry(failed, done=answers.append)
    store.loses_answer = True
    with pytest.raises(StoreError):
        decided(server)
    decided(server)
    assert answers == [True]
    names = [recorded.event.name for recorded in store.events(id)]
    assert (names.count("execution.retried"), server.rounds.active) == (1, {})


def test_retries_with_one_key_on_two_servers_are_one() -> None:
    store = MemoryStore()
    servers = [Desk(store, is_shared=True) for _ in range(2)]
    failed = servers[0].start(Bundle.of(compile_texts([CLOSED])), {})
    decided(servers[0])
    answers: list[bool] = []
    ids = [server.retry(failed, "key", answers.append) for server in servers]
    for server in servers:
        decided(server)
    assert (answers, store.started("key")) == ([True, False], ids[0])
    assert [row.execution_id for row in store.executions()] == [ids[0], failed]


@pytest.mark.parametrize(
    ("payload", "is_same"),
    [
        ({"a": "tok-123456789", "b": [1]}, True),
        ({"a": "another", "b": [1]}, True),
        ({"a": "tok-123456789", "b": [2]}, False),
        ({"a": "tok-123456789"}, False),
    ],
)
def test_what_is_masked_in_a_recorded_payload_is_not_compared(payload: dict[str, object], is_same: bool) -> None:
    event = {"execution": "e", "bundle": "b", "path": "p", "payload": {"a": "***", "b": [1]}}
    log = [Event("playbook.execution.requested", event), Event("playbook.request.evaluated", {})]
    store = MemoryStore()
    row = Execution("e", "b", "n", "p", "running", 0.0, seq=2)
    store.write([Append(row, 0, [Recorded(seq, f"i{seq}", 0.0, event) for seq, event in enumerate(log, 1)])])
    assert StartContent("p", "b", payload, {}).started(store, MemoryResults().get, "e") is is_same


def test_a_control_does_not_wait_behind_reports_for_which_a_turn_is_too_short() -> None:
    server = Desk(MemoryStore(), is_spent=lambda _: True)
    text = PLAYBOOK + "    tool: { kind: shell, command: [x] }\n"
    id = server.start(Bundle.of(compile_texts([text])), {})
    decided(server)
    active = server.rounds.active[id]
    for _ in range(100):
        server.submit(id, WorkerReport(1, "", 99, []))
    server.submit(id, Cancel())
    for _ in range(2):
        assert not active.state.is_over
        server.turn()
    assert active.state.is_over
    assert server.rounds.has_inputs
    decided(server)
    assert not server.rounds.has_inputs
