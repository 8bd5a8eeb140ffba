"""Two servers decide for one execution on one PostgreSQL: they take turns, and nothing is lost or done twice."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import count

import pytest

from noetlvm.bridge import compile_texts
from noetlvm.data.event import Event
from noetlvm.machine.decide import work_for
from noetlvm.machine.loaded import Bundle
from noetlvm.machine.messages import Cancel, Pause, Resume, WorkerReport
from noetlvm.machine.payload import Offload
from noetlvm.machine.replay import replay
from noetlvm.results.interface import MemoryResults
from noetlvm.store.postgres import PostgresStore
from tests.noetlvm.rounds.desk import Desk

NUMBERS = count()
ITEMS = 12
PLAYBOOK = f"""
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{ name: test, path: tests/test }}
workflow:
  - step: start
    loop: {{ in: "{{{{ range({ITEMS}) | list }}}}", iterator: n, spec: {{ mode: parallel }} }}
    tool: [{{ a: {{ kind: shell, command: ["true"] }} }}]
    next: {{ arcs: [{{ step: end, when: "{{{{ event.name == 'loop.done' }}}}" }}] }}
  - step: end
"""
BUNDLE = Bundle.of(compile_texts([PLAYBOOK]))


class Pair:
    """Two servers over one database, and how often one of them lost a race."""

    def __init__(self, stores: list[PostgresStore]) -> None:
        self.store = stores[0]
        self.races = 0
        results = MemoryResults()
        self.servers = [Desk(store, results, is_shared=True, now=store.now) for store in stores]
        for store in stores:
            self._count_races(store)

    def _count_races(self, store: PostgresStore) -> None:
        write = store.write

        def counted(*arguments: object) -> set[str]:
            lost = write(*arguments)  # type: ignore[arg-type]
            self.races += len(lost)
            return lost

        store.write = counted  # type: ignore[method-assign]

    def start(self) -> str:
        id = self.servers[0].start(BUNDLE, {})
        self.settle()
        return id

    def settle(self) -> None:
        """Let both decide before either writes, until neither has anything left."""
        while any(server.rounds.has_inputs or server.intake.is_wanted for server in self.servers):
            for server in self.servers:
                server.decide()
            for server in self.servers:
                server.write()

    def report(self, number: int, id: str, iteration: int) -> None:
        active = self.servers[number].intake.load(id)
        work = work_for(active.playbook, active.state, 1, str(iteration), active.offload)
        lease = work.lease if work else 1
        done = Event("loop.iteration.done", {"result": iteration}, 1, str(iteration))
        self.servers[number].submit(id, WorkerReport(1, str(iteration), lease, [done]))

    def check(self, id: str) -> Counter[str]:
        """Look at the log: it has no gap, is decided again as it was, and no iteration ended twice."""
        log = list(self.store.events(id))
        assert [one.seq for one in log] == list(range(1, len(log) + 1))
        assert replay(BUNDLE.program.main, log, Offload()) is None
        ended = Counter(one.event.iteration for one in log if one.event.name == "loop.iteration.done")
        assert set(ended.values()) <= {1}
        return Counter(one.event.name for one in log)


@pytest.fixture
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    schema = f"race{next(NUMBERS)}"
    address = request.getfixturevalue("postgres")
    stores = [PostgresStore(address, schema) for _ in range(2)]
    yield Pair(stores)
    for store in stores:
        store.close()


@pytest.mark.parametrize("seed", range(5))
def test_reports_to_both_servers_at_once_are_all_taken_once(pair: Pair, seed: int) -> None:
    chance = random.Random(seed)
    id = pair.start()
    reports = [(server, item) for item in range(ITEMS) for server in (0, 1)]  # each comes to both
    chance.shuffle(reports)
    while reports:
        batch = [reports.pop() for _ in range(min(len(reports), chance.randint(1, 6)))]
        for server, item in batch:
            pair.report(server, id, item)
        pair.settle()
    names = pair.check(id)
    row = pair.store.execution(id)
    assert row is not None
    assert (row.status, names["loop.iteration.done"], names["loop.done"]) == ("success", ITEMS, 1)
    assert pair.races > 0


def test_a_control_and_a_report_at_once_are_both_decided(pair: Pair) -> None:
    id = pair.start()
    pair.report(0, id, 0)
    pair.servers[1].submit(id, Pause())
    pair.settle()
    pair.report(0, id, 1)
    pair.servers[1].submit(id, Resume())
    pair.settle()
    pair.report(1, id, 2)
    pair.servers[0].submit(id, Cancel())
    pair.settle()
    names = pair.check(id)
    assert (names["execution.paused"], names["execution.resumed"], names["execution.cancelled"]) == (1, 1, 1)
    assert pair.store.execution(id).status == "cancelled"  # type: ignore[union-attr]
    assert pair.races >= 2
