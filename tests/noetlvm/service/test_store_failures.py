"""A store that fails, and servers that share one: no work, answer or request is lost (found by `noetlvm sim`)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from starlette.websockets import WebSocketDisconnect

from noetlvm.bridge import compile_texts
from noetlvm.data.encoding import decode, encode
from noetlvm.data.event import Event
from noetlvm.machine.loaded import Bundle
from noetlvm.machine.messages import OpenWork, Work, WorkerReport
from noetlvm.protocol.messages import event_form, work_in
from noetlvm.results.interface import MemoryResults
from noetlvm.rounds.credentials import no_credentials
from noetlvm.rounds.rounds import CONTROLS
from noetlvm.service.driver import Driver, ServerPorts
from noetlvm.service.hub import ConnectedWorker, Hub
from noetlvm.service.worker_exchange import exchange_messages
from noetlvm.store.interface import Append, QueuedCommand, StoreError
from noetlvm.store.memory import MemoryStore
from tests.noetlvm.rounds.desk import Desk
from tests.noetlvm.service.test_placement import settled
from tests.waiting import until

POLL_SECONDS = 0.02
PARENT = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: parent, path: tests/parent }
workflow:
  - step: start
    tool: [{ only: { kind: playbook, path: tests/child } }]
"""
CHILD = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: child, path: tests/child }
workflow:
  - step: start
    tool: [{ work: { kind: shell, command: ["true"] } }]
"""


class FailingStore(MemoryStore):
    """Fails as often as it is set to, before or after it has written."""

    def __init__(self) -> None:
        super().__init__()
        self.failures_before = self.failures_after = self.failed_claims = self.failed_renewals = 0

    def write(self, batch: Sequence[Append], bundles: Mapping[str, bytes] = {}) -> set[str]:
        if self.failures_before:
            self.failures_before -= 1
            raise StoreError("the disk is full")
        written = super().write(batch, bundles)
        if self.failures_after:
            self.failures_after -= 1
            raise StoreError("the connection was lost")
        return written

    def claim(self, *args: object) -> list[QueuedCommand]:
        if self.failed_claims:
            self.failed_claims -= 1
            raise StoreError("the disk is full")
        return super().claim(*args)  # type: ignore[arg-type]  # as they came

    def renew(self, *args: object) -> list[QueuedCommand]:
        if self.failed_renewals:
            self.failed_renewals -= 1
            raise StoreError("PostgreSQL does not answer")
        return super().renew(*args)  # type: ignore[arg-type]  # as they came


def one_playbook(text: str) -> Bundle:
    return Bundle.of(compile_texts([text]))


class Driven:
    """A driver that runs beside a test."""

    def __init__(self, store: MemoryStore) -> None:
        self.driver = Driver(store, MemoryResults(), no_credentials, ServerPorts(poll_seconds=POLL_SECONDS))
        self.news = asyncio.Event()

    async def __aenter__(self) -> Driven:
        self._task = asyncio.create_task(self.driver.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.driver.stop()
        await self._task

    async def join(self, slots: int = 1) -> ConnectedWorker:
        worker = ConnectedWorker("one", ["default"], slots, self.news.set)
        await self.driver.join(worker)
        return worker

    async def command(self, worker: ConnectedWorker) -> Work:
        while True:
            taken = worker.take()
            if taken.commands:
                work: Work = work_in(taken.commands[0]["work"])
                return work
            self.news.clear()
            await self.news.wait()


def part(work: Work) -> tuple[str, int, str]:
    return work.execution_id, work.run, work.iteration


@pytest.mark.parametrize("failure", ["failures_before", "failures_after"])
def test_work_that_a_failed_write_opened_is_handed_out_after_the_next(failure: str) -> None:
    async def run() -> None:
        store = FailingStore()
        async with Driven(store) as driven:
            driven.driver.leases.seconds = 0.2  # what was written is this worker's until then, and nobody knows
            worker = await driven.join()
            setattr(store, failure, 1)
            await driven.driver.start(one_playbook(CHILD), {}, {})
            assert (await driven.command(worker)).step == "start"

    asyncio.run(asyncio.wait_for(run(), 120))


def test_a_slot_is_free_again_while_a_task_waits_for_its_child() -> None:
    async def run() -> None:
        async with Driven(MemoryStore()) as driven:
            worker = await driven.join(slots=1)
            await driven.driver.start(Bundle.of(compile_texts([PARENT, CHILD])), {}, {})
            parent = await driven.command(worker)
            wanted = {"ts": 1.0, "child": {"path": "tests/child"}}
            event = Event("task.started", wanted, parent.run, parent.iteration, 1, "only", 1)
            driven.driver.report(worker, 1, part(parent), parent.lease, [event])
            child = await driven.command(worker)
            assert child.path == "tests/child"

    asyncio.run(asyncio.wait_for(run(), 120))


def test_a_worker_that_comes_while_the_store_fails_stays_and_gets_work_when_it_answers_again() -> None:
    async def run() -> None:
        store = FailingStore()
        async with Driven(store) as driven:
            await driven.driver.start(one_playbook(CHILD), {}, {})
            store.failed_claims = 1
            worker = await driven.join()
            assert store.failed_claims == 0
            assert (await driven.command(worker)).step == "start"

    asyncio.run(asyncio.wait_for(run(), 120))


class QueuedSocket:
    """The connection of a worker that a test plays."""

    def __init__(self) -> None:
        self.to_server: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self.to_worker: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def receive_bytes(self) -> bytes:
        message = await self.to_server.get()
        if message is None:
            raise WebSocketDisconnect
        return encode(message)

    async def send_bytes(self, data: bytes) -> None:
        self.to_worker.put_nowait(decode(data))

    async def close(self, code: int = 1000, reason: str | None = None) -> None:
        raise AssertionError(f"the connection was closed: {reason}")


@pytest.mark.parametrize("failure", ["failed_renewals", "failed_claims", "failures_before"])
def test_a_store_that_fails_costs_a_worker_neither_its_connection_nor_its_lease(failure: str) -> None:
    async def run() -> None:
        store = FailingStore()
        async with Driven(store) as driven:
            socket = QueuedSocket()
            exchange = asyncio.create_task(exchange_messages(driven.driver, socket))
            socket.to_server.put_nowait({"worker": "one", "pools": ["default"], "slots": 1})
            id = await driven.driver.start(one_playbook(CHILD), {}, {})
            work: Work = work_in((await socket.to_worker.get())["commands"][0]["work"])
            lease = {"execution_id": id, "run": work.run, "iteration": work.iteration, "lease": work.lease}
            setattr(store, failure, 3)
            report = {**lease, "number": 1, "events": [event_form(Event("step.done", {"result": 7}, work.run))]}
            socket.to_server.put_nowait({"beat": 1, "held": [lease], "reports": [report]})
            answers: list[dict[str, Any]] = []
            while not answers:
                answers += (await socket.to_worker.get())["answers"]
            assert answers == [{"number": 1, "accepted": True}]
            socket.to_server.put_nowait(None)
            await exchange
            events = [recorded.event.name for recorded in store.events(id)]
            assert events.count("step.done") == 1
            assert events.count("step.scheduled") == 1

    asyncio.run(asyncio.wait_for(run(), 120))


def shared_server(store: MemoryStore) -> Desk:
    return Desk(store, is_shared=True)


def rounds(server: Desk) -> None:
    server.collect()
    server.settle()


def test_the_end_of_a_child_reaches_its_parent_over_a_server_that_does_not_know_of_it() -> None:
    from noetlvm.machine.messages import WorkerReport

    store = MemoryStore()
    first, second = shared_server(store), shared_server(store)
    id = first.start(Bundle.of(compile_texts([PARENT, CHILD])), {})
    rounds(first)
    second.intake.load(id)  # and from now on it does not see what the first one decides
    wanted = {"ts": 1.0, "child": {"path": "tests/child"}}
    first.submit(id, WorkerReport(1, "", 1, [Event("task.started", wanted, 1, "", 1, "only", 1)]))
    rounds(first)
    child = next(row.execution_id for row in store.executions() if row.parent == id)
    second.submit(child, WorkerReport(1, "", 1, [Event("step.done", {"result": 7}, 1)]))
    rounds(second)
    assert "child.finished" in [recorded.event.name for recorded in store.events(id)]


def test_a_request_to_an_execution_that_has_ended_is_dropped() -> None:
    from noetlvm.machine.messages import Cancel

    store = MemoryStore()
    first, second = shared_server(store), shared_server(store)
    id = first.start(one_playbook(CHILD), {})
    rounds(first)
    store.request(id, "cancel")
    first.submit(id, Cancel())
    first.decide()
    first.write()
    row = store.execution(id)
    assert row is not None
    assert row.ended is not None
    rounds(second)
    assert store.requests() == []


def test_a_resumed_execution_leaves_its_work_with_the_worker_of_another_server() -> None:
    async def run() -> None:
        store = MemoryStore()
        async with Driven(store) as first, Driven(store) as second:
            holder = await first.join()
            id = await first.driver.start(one_playbook(CHILD), {}, {})
            await first.command(holder)
            other = await second.join()
            for action in ("pause", "resume"):
                active = second.driver.intake.load(id)
                done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
                second.driver.rounds.submit(active, CONTROLS[action], done.set_result)
                second.driver.wake()
                await done
            await settled(second.driver)
            assert other.take().commands == []
            assert other.free == 1

    asyncio.run(asyncio.wait_for(run(), 120))


def test_a_start_that_loses_the_race_for_its_key_leaves_no_slot_taken() -> None:
    async def run() -> None:
        store = FailingStore()
        async with Driven(store) as first:
            worker = await first.join()
            winner = shared_server(store)
            store.failures_before = 1
            starting = asyncio.create_task(first.driver.start(one_playbook(CHILD), {}, {}, "key"))
            await until(lambda: store.failures_before == 0)
            id = winner.start(one_playbook(CHILD), {}, start_key="key")
            winner.decide()
            winner.write()
            assert await starting == id
            assert (await first.command(worker)).execution_id == id

    asyncio.run(asyncio.wait_for(run(), 120))


def test_a_driver_does_not_spin_while_the_store_fails_and_a_timer_is_due() -> None:
    timed = CHILD.replace("step: start", "step: start\n    spec: { policy: { lifecycle: { deadline_s: 0.01 } } }")

    async def run() -> None:
        store = FailingStore()
        async with Driven(store) as driven:
            await driven.join()
            store.failures_before = all_of_them = 1_000_000
            began = asyncio.get_running_loop().time()
            starting = asyncio.create_task(driven.driver.start(one_playbook(timed), {}, {}))
            await until(lambda: all_of_them - store.failures_before > 10)
            tries, seconds = all_of_them - store.failures_before, asyncio.get_running_loop().time() - began
            store.failures_before = 0
            await starting
            # A start and a timer cause some tries at once; a slow machine makes fewer.
            assert tries <= seconds / POLL_SECONDS + 5

    asyncio.run(asyncio.wait_for(run(), 120))


def test_an_iteration_that_a_resumed_execution_cancels_leaves_no_command() -> None:
    from noetlvm.machine.messages import Pause, Resume, WorkerReport

    looped = CHILD.replace(
        "step: start", "step: start\n    loop: { in: [1, 2], iterator: n, spec: { mode: parallel } }"
    )
    store = MemoryStore()
    server = shared_server(store)
    id = server.start(one_playbook(looped), {})
    rounds(server)
    assert [command.unit for command in store.commands()] == ["0", "1"]
    failed = Event("loop.iteration.failed", {"error": {"kind": "x", "message": "x"}}, 1, "0")
    for given in (Pause(), WorkerReport(1, "0", 1, [failed]), Resume()):
        server.submit(id, given)
        rounds(server)
    assert store.commands() == []


def test_an_assignment_of_a_failed_write_ends_when_a_resumed_execution_offers_the_command_again() -> None:
    hub = Hub()
    worker = hub.workers["one"] = ConnectedWorker("one", ["default"], 1, lambda: None)
    work = OpenWork(1, "", "", 1, "start", "default", 0.0, False)
    assert hub.assign("x", work, 1.0) == "one"  # that write fails; the next has a pause and a resume too
    assert hub.assign("x", work._replace(again=True), 1.0) == ""
    assert hub.take_assigned(("x", 1, ""), 1) is None
    assert worker.free == 1


FORK = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: fork, path: tests/fork }
workflow:
  - step: start
    tool: { kind: shell, command: ["true"] }
    next:
      arcs:
        - { step: good, when: "{{ event.name == 'step.done' }}" }
        - { step: bad, when: "{{ event.name == 'step.failed' }}" }
  - { step: good, tool: { kind: shell, command: ["true"] } }
  - { step: bad, tool: { kind: shell, command: ["true"] } }
"""


def test_a_server_whose_decision_is_not_written_hands_out_no_command_of_another() -> None:
    """Both servers give the next run the same number, and only one of them is right."""

    async def run() -> None:
        store = MemoryStore()
        other = Desk(store, is_shared=True, now=store.now)
        driver = Driver(store, MemoryResults(), no_credentials)
        id = other.start(one_playbook(FORK), {})
        other.decide()
        other.write()
        done = Event("step.done", {"result": None}, 1)
        failed = Event("step.failed", {"error": {"kind": "shell", "message": "no"}}, 1)
        driver.rounds.submit(driver.intake.load(id), WorkerReport(1, "", 1, [done]))
        round = driver.rounds.next(store.now(), lambda _: False)
        assert round is not None
        driver.rounds.keep(round)  # it could not be written
        other.submit(id, WorkerReport(1, "", 1, [failed]))
        other.decide()
        other.write()
        worker = ConnectedWorker("one", ["default"], 1, lambda: None)
        await driver.workers.claim_for(worker)
        assert worker.take().commands == []
        for _ in range(2):
            await driver.loop.turn()
        assert driver.rounds.active[id].state.runs[2].step == "bad"

    asyncio.run(run())
