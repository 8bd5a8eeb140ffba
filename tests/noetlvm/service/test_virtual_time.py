"""What only time shows, on the simulator's event loop, where it costs none: leases, timers of other servers, slots."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from noetlvm.bridge import compile_texts
from noetlvm.data.encoding import decode, encode
from noetlvm.data.event import Event
from noetlvm.data.references import Reference
from noetlvm.limits import EVENT_BYTES_MAX
from noetlvm.machine.decide import work_for
from noetlvm.machine.loaded import Bundle
from noetlvm.machine.messages import Work
from noetlvm.machine.payload import Offload
from noetlvm.protocol.messages import work_form
from noetlvm.results.interface import MemoryResults
from noetlvm.rounds.credentials import no_credentials
from noetlvm.service.driver import Driver
from noetlvm.service.leases import Leases
from noetlvm.sim.loop import WORLD, Process, SimulatedLoop
from noetlvm.sim.ports import SimulatedClock
from noetlvm.store.memory import MemoryStore
from noetlvm.tools.call import Outcome, ToolCall, ok
from noetlvm.worker.commands import RETURN_SECONDS
from noetlvm.worker.held_leases import LEASE_SECONDS
from noetlvm.worker.remote_worker import RemoteWorker
from tests.noetlvm.service.test_placement import CHAIN, HEAD, TIMED, Hand, start
from tests.waiting import forever


class VirtualStore(MemoryStore):
    """A store whose time is that of the loop."""

    def __init__(self, loop: SimulatedLoop) -> None:
        super().__init__()
        self._loop = loop

    def now(self) -> float:
        return self._loop.time()

    def names(self, execution_id: str) -> list[str]:
        return [one.event.name for one in self.events(execution_id)]


def ended(loop: SimulatedLoop, work: Coroutine[Any, Any, None], seconds: float = 600.0) -> None:
    """Run something to its end, which must come within so much virtual time."""
    task = loop.spawn(WORLD, work)
    assert loop.run(task.done, seconds), "it has not ended"
    task.result()


def test_the_timer_of_a_server_that_died_rings_at_another() -> None:
    loop = SimulatedLoop()  # type: ignore[abstract]  # nothing here uses files, sockets or signals
    store, first = VirtualStore(loop), Process("first")

    def driver(process: Process) -> Driver:
        made = Driver(store, MemoryResults(), no_credentials, leases=Leases(store, store.now, 300.0))
        loop.spawn(process, made.run())
        return made

    async def test() -> None:
        dying = driver(first)
        hand = await Hand(dying, "one").join()
        id = await start(dying, TIMED)
        (work,) = await hand.next()
        hand.report(work, Event("task.started", {}, 1, "", 1, "a", 1))
        await asyncio.sleep(0.5)  # virtual
        loop.kill(first)
        driver(Process("second"))
        await asyncio.sleep(5)  # virtual
        assert "step.failed" in store.names(id)

    with loop:
        ended(loop, test())


def test_a_slot_is_free_again_when_the_server_fails_the_step_of_a_report() -> None:
    loop = SimulatedLoop()  # type: ignore[abstract]
    store = VirtualStore(loop)

    async def test() -> None:
        driver = Driver(store, MemoryResults(), no_credentials)
        loop.spawn(WORLD, driver.run())
        hand = await Hand(driver, "one", slots=1).join()
        id = await start(driver, CHAIN)
        (work,) = await hand.next()
        too_much = {"outcome": ok("x" * EVENT_BYTES_MAX), "do": "continue", "pc": 1}
        hand.report(work, Event("task.done", too_much, 1, "", 1, "a", 1))
        assert [one.step for one in await hand.next()] == ["end"]
        assert "step.failed" in store.names(id)

    with loop:
        ended(loop, test())


class SlowTools:
    """One call that would take an hour."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def at_once(self, _call: ToolCall) -> Outcome | None:
        return None

    async def run(self, _call: ToolCall) -> Outcome:
        self.calls.append("began")
        try:
            await forever()
        except asyncio.CancelledError:
            self.calls.append("was cancelled")
            raise
        return ok()

    async def close(self) -> None:
        """Nothing is open."""


class DeafLink:
    """A server that gives out a command each second and accepts reports, but renews no lease."""

    def __init__(self, bundle: Bundle, *works: Work) -> None:
        self._bundle = bundle
        self._outbound: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.returned: dict[int, float] = {}
        """When leases came back."""
        for seconds, work in enumerate(works):
            command = {"work": work_form(work), "secrets": {}}
            asyncio.get_running_loop().call_later(seconds, lambda command=command: self._answer(commands=[command]))

    def _answer(self, **message: list[Any]) -> None:
        empty = {"commands": [], "answers": [], "stop": [], "beat": 0, "lease_seconds": 0.0}
        self._outbound.put_nowait(empty | message)

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[DeafLink]:
        yield self

    async def send(self, data: bytes) -> None:
        message = decode(data)
        for report in message.get("reports", ()):
            self._answer(answers=[{"number": report["number"], "accepted": True}])
        now = asyncio.get_running_loop().time()
        self.returned |= {lease["lease"]: now for lease in message.get("released", ())}

    async def receive(self) -> bytes:
        return encode(await self._outbound.get())

    def get(self, path: str) -> bytes:
        if "/results/" in path:
            raise LookupError("no command of this worker refers to such a result")
        return self._bundle.data


BUNDLE = Bundle.of(compile_texts([HEAD + CHAIN]))


def calls_of(*leases: int) -> list[str]:
    """Return what became of the calls of a worker with one slot that gets one command under each of these leases."""
    return calls_and_returns(*leases)[0]


def calls_and_returns(*leases: int, answer: Outcome | None = None) -> tuple[list[str], dict[int, float]]:
    """Return the same, and when leases came back; the first command has the answer of a child."""
    loop = SimulatedLoop()  # type: ignore[abstract]
    tools = SlowTools()

    returned: dict[int, float] = {}

    async def test() -> None:
        driver = Driver(VirtualStore(loop), MemoryResults(), no_credentials)
        loop.spawn(WORLD, driver.run())
        active = driver.intake.load(await driver.start(BUNDLE, {}, {}))
        work = work_for(active.playbook, active.state, 1, "", Offload())
        assert work is not None
        works = [work._replace(lease=lease) for lease in leases]
        link = DeafLink(BUNDLE, works[0]._replace(answer=answer), *works[1:])
        worker = RemoteWorker(
            link, tools, id="w", pools=("default",), slots=1, clock=SimulatedClock(loop), jitter=lambda: 0.5
        )
        loop.spawn(WORLD, worker.run())
        await asyncio.sleep(LEASE_SECONDS)  # virtual
        returned.update(link.returned)

    with loop:
        ended(loop, test())
        return list(tools.calls), returned


def test_a_worker_stops_its_tools_before_a_lease_ends_that_is_not_renewed() -> None:
    assert calls_of(1) == ["began", "was cancelled"]


def test_a_worker_stops_a_pipeline_whose_command_comes_again_under_a_new_lease() -> None:
    assert calls_of(1, 2) == ["began", "was cancelled"] * 2


def test_a_command_that_comes_twice_runs_once() -> None:
    assert calls_of(1, 1) == ["began", "was cancelled"]


def test_a_worker_outlives_a_command_whose_stored_result_it_cannot_read() -> None:
    unreadable = ok(Reference("results", "0" * 64, 9_000, "text of 9000"))
    calls, returned = calls_and_returns(1, 2, answer=unreadable)
    assert calls == ["began", "was cancelled"]
    assert returned[1] >= RETURN_SECONDS  # it may come again at once, and fail again
