"""Which worker gets which command: pools, local units, slots, and commands that are open already."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from noetlvm.bridge import compile_texts
from noetlvm.data.event import Event
from noetlvm.language.placement import StoreName
from noetlvm.machine.loaded import Bundle
from noetlvm.machine.messages import OpenWork, Work
from noetlvm.machine.payload import Offload
from noetlvm.protocol.messages import lease_form, work_in
from noetlvm.results.interface import MemoryResults
from noetlvm.results.offered import OfferedResults
from noetlvm.rounds.credentials import no_credentials
from noetlvm.rounds.recovery import BundleCache
from noetlvm.rounds.requests import BadRequestError
from noetlvm.service import driver as driver_module
from noetlvm.service.driver import Driver, ServerPorts, ServerSources
from noetlvm.service.hub import CommandGrant, ConnectedWorker, Hub
from noetlvm.store.memory import MemoryStore
from noetlvm.wake.interface import LocalWakeUps, WakeUps
from tests.noetlvm.service.test_leases import driven
from tests.waiting import ended, until

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: test, path: tests/test }\n"


class Hand:
    """A worker of the test: it takes commands, and reports what the test says."""

    def __init__(self, driver: Driver, name: str, pools: tuple[str, ...] = ("default",), slots: int = 4) -> None:
        self.driver = driver
        self.news = asyncio.Event()
        self.worker = ConnectedWorker(name, pools, slots, self.news.set)
        self.taken: list[Work] = []
        self.stopped: list[dict[str, Any]] = []

    async def join(self) -> Hand:
        await self.driver.join(self.worker)
        return self

    def take(self) -> list[Work]:
        """Return commands that came since the last call."""
        outbound = self.worker.take()
        works = [work_in(command["work"]) for command in outbound.commands]
        self.taken += works
        self.stopped += outbound.stop
        return works

    async def next(self, count: int = 1) -> list[Work]:
        found: list[Work] = []
        while len(found) < count:
            self.news.clear()
            found += self.take()
            if len(found) < count:
                await self.news.wait()
        return found

    def report(self, work: Work, *events: Event) -> None:
        part = (work.execution_id, work.run, work.iteration)
        self.driver.report(self.worker, 1, part, work.lease, list(events))

    def finish(self, work: Work) -> None:
        name = "loop.iteration.done" if work.iteration else "step.done"
        self.report(work, Event(name, {"result": None}, work.run, work.iteration))


async def start(driver: Driver, *texts: str) -> str:
    return await driver.start(Bundle.of(compile_texts([HEAD + texts[0], *texts[1:]])), {}, {})


async def settled(driver: Driver) -> None:
    """Let the driver poll a few times, and do what comes of it."""
    sources, pace = driver.loop.sources, driver._pace
    assert isinstance(sources, ServerSources)
    polls, poll = 0, sources._poll

    async def counted() -> None:
        nonlocal polls
        await poll()
        polls += 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "_poll", counted)
        await until(lambda: polls >= 3 and not pace._has_work())


def looped(spec: str) -> str:
    return f"""
workflow:
  - step: start
    loop: {{ in: [0, 1, 2, 3, 4, 5], iterator: n, spec: {spec} }}
    tool: [{{ only: {{ kind: shell, command: ["true"] }} }}]
"""


PARALLEL = "{ mode: parallel, max_in_flight: 6, policy: { exec: local } }"

POOLS = """
executor: { spec: { pool: big } }
workflow:
  - step: start
    tool: [{ a: { kind: shell, command: ["true"] } }]
    next: { arcs: [{ step: fine }, { step: each }], spec: { mode: inclusive } }
  - step: fine
    spec: { pool: small }
    tool: [{ b: { kind: postgres, command: select 1, spec: { pool: { max_size: 2 } } } }]
  - step: each
    spec: { pool: small }
    loop: { in: [1], iterator: n, spec: { pool: gpu } }
    tool: [{ c: { kind: shell, command: ["true"] } }]
"""


def test_a_step_runs_in_the_pool_that_its_loop_itself_or_the_executor_names() -> None:
    async def test(driver: Driver) -> None:
        big, small, gpu, other = [
            await Hand(driver, name, (name,)).join() for name in ("big", "small", "gpu", "default")
        ]
        await start(driver, POOLS)
        (first,) = await big.next()
        assert first.step == "start"
        big.finish(first)
        assert [work.step for work in (*await small.next(), *await gpu.next())] == ["fine", "each"]
        await settled(driver)
        assert (big.take(), other.take()) == ([], [])

    driven(test)


@pytest.mark.parametrize(("place", "workers"), [("local", 1), ("distributed", 2)])
def test_iterations_of_a_local_loop_stay_with_one_worker(place: str, workers: int) -> None:
    async def test(driver: Driver) -> None:
        hands = [await Hand(driver, name, slots=3).join() for name in ("one", "two")]
        await start(driver, looped(PARALLEL.replace("local", place)))
        await settled(driver)
        counts = [len(hand.take()) for hand in hands]
        assert (sum(counts), sum(count > 0 for count in counts)) == (6, workers)

    driven(test)


async def first_taken(hands: list[Hand]) -> tuple[Hand, Work]:
    """Return the only command that any of these workers gets next, and the worker."""
    found: list[tuple[Hand, Work]] = []

    def has_come() -> bool:
        found.extend((hand, work) for hand in hands for work in hand.take())
        return bool(found)

    await until(has_come)
    (one,) = found
    return one


def test_iterations_of_a_sequential_loop_stay_with_one_worker() -> None:
    async def test(driver: Driver) -> None:
        hands = [await Hand(driver, name).join() for name in ("one", "two")]
        await start(driver, looped("{ mode: sequential }"))
        for _ in range(6):
            hand, work = await first_taken(hands)
            hand.finish(work)
        assert sorted(len(hand.taken) for hand in hands) == [0, 6]

    driven(test)


def test_a_local_loop_that_waited_for_a_worker_goes_to_one_as_a_whole() -> None:
    async def test(driver: Driver) -> None:
        await start(driver, looped(PARALLEL))
        await settled(driver)
        hands = [await Hand(driver, name, slots=2).join() for name in ("one", "two")]
        await settled(driver)
        assert sorted(len(hand.take()) for hand in hands) == [0, 6]

    driven(test)


def test_a_local_loop_goes_on_with_another_worker_when_its_own_is_lost() -> None:
    async def test(driver: Driver) -> None:
        one = await Hand(driver, "one").join()
        await start(driver, looped(PARALLEL))
        assert len(await one.next(6)) == 6
        two = await Hand(driver, "two").join()
        driver.workers.leave(one.worker)
        assert {work.lease for work in await two.next(6)} == {2}

    driven(test)


def test_iterations_of_a_local_loop_that_wait_for_its_rate_run_though_its_worker_has_ended_the_others() -> None:
    async def test(driver: Driver) -> None:
        hand = await Hand(driver, "one").join()
        id = await start(driver, looped(PARALLEL.replace("policy:", "rate: { max: 2, per: 0.2 }, policy:")))
        while len(hand.taken) < 6:
            for work in await hand.next():
                hand.finish(work)
        await settled(driver)
        assert driver.store.execution(id).status == "success"  # type: ignore[union-attr]

    driven(test)


CHILD = """
workflow:
  - step: start
    tool: [{ call: { kind: playbook, path: tests/kid } }]
"""
KID = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: kid, path: tests/kid }
workflow:
  - step: start
    tool: [{ say: { kind: shell, command: ["true"] } }]
"""


def test_a_pipeline_that_waits_for_a_child_holds_no_slot() -> None:
    async def test(driver: Driver) -> None:
        hand = await Hand(driver, "one", slots=1).join()
        await start(driver, CHILD, KID)
        (parent,) = await hand.next()
        child = {"path": "tests/kid", "workload": {}}
        hand.report(parent, Event("task.started", {"child": child}, 1, "", 1, "call", 1))
        (kid,) = await hand.next()
        assert kid.path == "tests/kid"
        hand.finish(kid)
        (again,) = await hand.next()
        assert (again.path, again.lease) == ("tests/test", 2)

    driven(test)


CHAIN = """
workflow:
  - step: start
    tool: [{ a: { kind: shell, command: ["true"] } }]
    next: { arcs: [{ step: end }] }
  - step: end
    tool: [{ b: { kind: shell, command: ["true"] } }]
"""


def test_a_worker_gets_the_next_step_with_the_answer_to_its_report() -> None:
    async def test(driver: Driver) -> None:
        hand = await Hand(driver, "one", slots=1).join()
        await start(driver, CHAIN)
        (first,) = await hand.next()
        hand.finish(first)
        await driver.loop.turn()  # one decision, one write
        assert [work.step for work in hand.take()] == ["end"]

    driven(test)


def test_a_command_of_another_server_is_claimed_as_soon_as_a_slot_is_free() -> None:
    """Not at the next poll, which is a minute away: a wake-up came while every slot was in use."""

    async def test() -> None:
        store, wake_ups = MemoryStore(), LocalWakeUps()

        async def connect() -> WakeUps:
            return wake_ups

        def server() -> Driver:
            return Driver(store, MemoryResults(), no_credentials, ServerPorts(connect, 60))

        here, there = server(), server()
        driving = [asyncio.create_task(driver.run()) for driver in (here, there)]
        hand = await Hand(here, "one", slots=1).join()
        await start(here, CHAIN)
        (first,) = await hand.next()
        other = await start(there, CHAIN)
        await until(lambda: "default" in here.workers._backlog)
        assert hand.take() == []
        hand.finish(first)
        await here.workers.claim_backlog(hand.worker)
        assert other in [work.execution_id for work in await hand.next()]
        for driver, task in zip((here, there), driving, strict=True):
            driver.stop()
            await task

    asyncio.run(asyncio.wait_for(test(), 120))


def test_what_runs_is_not_handed_out_again_after_a_pause() -> None:
    async def test(driver: Driver) -> None:
        one, two = [await Hand(driver, name).join() for name in ("one", "two")]
        id = await start(driver, CHAIN)
        await settled(driver)
        assert len(one.take() + two.take()) == 1
        for action in ("pause", "resume"):
            driver.store.request(id, action)  # type: ignore[arg-type]
            driver.wake()
            await settled(driver)
        assert (one.take(), two.take(), one.stopped, two.stopped) == ([], [], [], [])

    driven(test)


def test_what_became_ready_during_a_pause_is_handed_out_after_it() -> None:
    async def test(driver: Driver) -> None:
        hand = await Hand(driver, "one").join()
        id = await start(driver, CHAIN)
        (first,) = await hand.next()
        driver.store.request(id, "pause")
        driver.wake()
        await settled(driver)
        hand.finish(first)
        await settled(driver)
        assert hand.take() == []
        driver.store.request(id, "resume")
        driver.wake()
        assert [work.step for work in await hand.next()] == ["end"]

    driven(test)


STORED = """
executor: { spec: { result: { store: { kind: nats_object, bucket: ours } } } }
workflow:
  - step: start
    tool: [{ a: { kind: shell, command: ["true"] } }]
"""


def test_results_go_to_the_store_that_the_playbook_chooses() -> None:
    own, chosen = MemoryResults(), MemoryResults()

    async def test(driver: Driver) -> None:
        hand = await Hand(driver, "one").join()
        driver.library.results = OfferedResults({StoreName("files"): own, StoreName("nats_object", "ours"): chosen})
        id = await start(driver, STORED)
        (work,) = await hand.next()
        large = Offload(limit=10)
        result = large.shrink("x" * 10_000)
        await driver.put_results(large.take_blobs(), {id})
        hand.report(work, Event("step.done", {"result": result}, work.run))
        await settled(driver)
        assert (list(own.keys()), list(chosen.keys())) == ([], [result.key])
        assert driver.results.get(result.key) == chosen.get(result.key)

    driven(test)


def test_a_store_that_is_not_offered_is_refused_with_what_is() -> None:
    async def test(driver: Driver) -> None:
        driver.library.results = OfferedResults(
            {StoreName("files"): MemoryResults(), StoreName("nats_object", "theirs"): MemoryResults()}
        )
        with pytest.raises(BadRequestError, match=r"names nats_object .*offers: files, nats_object \(bucket theirs\)"):
            await start(driver, STORED)

    driven(test)


def test_a_worker_that_connects_again_may_still_read_what_its_command_refers_to() -> None:
    async def test(driver: Driver) -> None:
        hand = await Hand(driver, "one").join()
        await start(driver, CHAIN)
        (work,) = await hand.next()
        again = Hand(driver, "one")
        await driver.join(again.worker)
        assert again.worker.grants == []
        await driver.workers.renew(again.worker, [((work.execution_id, work.run, work.iteration), work.lease)])
        await until(lambda: again.worker.grants)
        assert [grant.bundle for grant in again.worker.grants] == [work.bundle]

    driven(test)


TIMED = CHAIN.replace("- step: start\n", "- step: start\n    spec: { policy: { lifecycle: { timeout_s: 1 } } }\n", 1)


def test_an_idle_execution_leaves_the_memory_and_goes_on_from_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_module, "IDLE_SECONDS", 0.05)

    async def test(driver: Driver) -> None:
        hand = await Hand(driver, "one").join()
        id = await start(driver, CHAIN)
        (first,) = await hand.next()
        await until(lambda: not driver.rounds.active)
        await driver.intake.activate([id])
        hand.finish(first)
        (second,) = await hand.next()
        hand.finish(second)
        row = await ended(driver.store, id)
        assert row.status == "success"

    driven(test)


def test_an_execution_that_decides_without_end_holds_nobody_up() -> None:
    endless = """workflow:
  - step: start
    next: { arcs: [{ step: start, when: "{{ args.n | default(0) >= 0 }}", args: { n: 1 } }] }
"""

    async def test(driver: Driver) -> None:
        hand = await Hand(driver, "one").join()
        id = await start(driver, endless)
        await start(driver, CHAIN)
        (first,) = await hand.next()
        hand.finish(first)
        await hand.next()
        driver.store.request(id, "cancel")
        row = await ended(driver.store, id)
        assert row.status == "cancelled"

    driven(test)


def test_the_timer_of_an_idle_execution_still_rings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_module, "IDLE_SECONDS", 0.05)

    async def test(driver: Driver) -> None:
        hand = await Hand(driver, "one").join()
        id = await start(driver, TIMED)
        (first,) = await hand.next()
        hand.report(first, Event("task.started", {}, 1, "", 1, "a", 1))
        await until(lambda: "step.failed" in [one.event.name for one in driver.store.events(id)])
        hand.take()
        assert hand.stopped == [lease_form((id, 1, ""), 1)]

    driven(test)


def test_a_worker_forgets_what_ended_commands_granted() -> None:
    worker = ConnectedWorker("one", ["default"], 1, lambda: None)
    for number in range(1_000):
        part = (str(number), 1, "")
        worker.held = {part: 1}
        worker.grant(part, CommandGrant(str(number), []))
    assert [grant.bundle for grant in worker.grants] == ["999"]
    assert len(worker._grants) < 200


def test_bundles_are_read_once_and_forgotten_when_there_are_many() -> None:
    store = MemoryStore()
    texts = [HEAD + CHAIN.replace("[a:", f"[a{number}:").replace("{ a:", f"{{ a{number}:") for number in range(3)]
    bundles = [Bundle.of(compile_texts([text])) for text in texts]
    for bundle in bundles:
        store.put_bundle(bundle.id, bundle.data)
    cache = BundleCache(store, most=2)
    first = cache.get(bundles[0].id)
    assert first is cache.get(bundles[0].id)
    assert [bundle.id in cache for bundle in bundles] == [True, False, False]
    for bundle in bundles:
        cache.get(bundle.id)
    assert [bundle.id in cache for bundle in bundles] == [False, True, True]
    assert cache.get("unknown") is None


def test_an_assignment_of_a_write_that_failed_is_dropped_when_the_work_is_offered_again() -> None:
    hub = Hub()
    worker = hub.workers["one"] = ConnectedWorker("one", ("default",), 1, lambda: None)
    work = OpenWork(1, "", "", 1, "start", "default")
    assert hub.assign("x", work, 0.0) == "one"
    assert hub.assign("x", work._replace(again=True), 0.0) == ""
    assert worker.held == {}
