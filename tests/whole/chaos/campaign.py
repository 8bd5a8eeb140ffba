"""Two servers and four workers on PostgreSQL and NATS, under load and under every kind of fault; then the check.

A slow disk is a slow store: what servers send to PostgreSQL and get from it is held back. A full disk is one that can
be read and not written: PostgreSQL refuses every write (`default_transaction_read_only`). A limit of the size of files
needs rights over its processes that a test does not have; `test_chaos.py` sets one for a server on SQLite.
"""

from __future__ import annotations

import contextlib
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from noetlvm.conformance.cluster import Cluster
from noetlvm.conformance.databases import NatsProcess, PostgresProcess
from noetlvm.conformance.service_runs import opened_for_reading
from tests.whole.chaos.databases import postgres_and_nats, refuse_writes
from tests.whole.chaos.forked import ForkedCluster
from tests.whole.chaos.histories import INVARIANTS
from tests.whole.chaos.load import Load
from tests.whole.chaos.proxy import Proxy

SERVERS, WORKERS = 2, 4
LEASE_SECONDS = 2
PAUSE_SECONDS = 0.5


class Place(NamedTuple):
    """Everything that a fault may hit."""

    cluster: Cluster
    postgres: PostgresProcess
    nats: NatsProcess
    to_postgres: Proxy
    to_nats: Proxy
    to_servers: list[Proxy]
    """By worker."""


Fault = Callable[[Place, random.Random], None]


def _kill_server(place: Place, chance: random.Random) -> None:
    place.cluster.restart_server(chance.randrange(SERVERS))


def _kill_worker(place: Place, chance: random.Random) -> None:
    number = chance.randrange(WORKERS)
    place.cluster.restart_worker(number, f"http://127.0.0.1:{place.to_servers[number].port}")


def _kill_postgres(place: Place, chance: random.Random) -> None:
    place.postgres.kill()
    time.sleep(chance.random())  # how long the fault lasts, by chance
    place.postgres.start()


def _kill_nats(place: Place, chance: random.Random) -> None:
    place.nats.kill()
    time.sleep(chance.random())  # how long the fault lasts, by chance
    place.nats.start()


def _stop(target: Callable[[Place, random.Random], Callable[[int], None]], longest: float) -> Fault:
    def fault(place: Place, chance: random.Random) -> None:
        send = target(place, chance)
        send(signal.SIGSTOP)
        time.sleep(chance.random() * longest)  # how long the fault lasts, by chance
        send(signal.SIGCONT)

    return fault


def _a_server(place: Place, chance: random.Random) -> Callable[[int], None]:
    return place.cluster.servers[chance.randrange(SERVERS)].process.send_signal


def _a_worker(place: Place, chance: random.Random) -> Callable[[int], None]:
    return place.cluster.workers[chance.randrange(WORKERS)].send_signal


def _cut(target: Callable[[Place, random.Random], Proxy], *, resets: bool) -> Fault:
    def fault(place: Place, chance: random.Random) -> None:
        proxy = target(place, chance)
        proxy.stall()
        time.sleep(chance.random() * LEASE_SECONDS * 1.5)  # how long the fault lasts, by chance
        if resets:
            proxy.reset()
        else:
            proxy.resume()

    return fault


def _slow_disk(place: Place, chance: random.Random) -> None:
    place.to_postgres.slow(0.05 + 0.2 * chance.random())
    time.sleep(1 + chance.random())  # how long the fault lasts, by chance
    place.to_postgres.slow(0)


def _full_disk(place: Place, chance: random.Random) -> None:
    refuse_writes(place.postgres, True)
    time.sleep(0.5 + chance.random())  # how long the fault lasts, by chance
    refuse_writes(place.postgres, False)


FAULTS: dict[str, Fault] = {
    "kill a server": _kill_server,
    "kill a worker": _kill_worker,
    "kill PostgreSQL": _kill_postgres,
    "kill NATS": _kill_nats,
    "stop a server": _stop(_a_server, LEASE_SECONDS * 1.5),
    "stop a worker": _stop(_a_worker, LEASE_SECONDS * 1.5),
    "stop PostgreSQL": _stop(lambda place, _: place.postgres.signal, 1.0),
    "stop NATS": _stop(lambda place, _: place.nats.signal, 1.0),
    "cut off a worker": _cut(lambda place, chance: chance.choice(place.to_servers), resets=True),
    "delay a worker": _cut(lambda place, chance: chance.choice(place.to_servers), resets=False),
    "cut off PostgreSQL": _cut(lambda place, _: place.to_postgres, resets=True),
    "cut off NATS": _cut(lambda place, _: place.to_nats, resets=True),
    "slow disk": _slow_disk,
    "full disk": _full_disk,
}
"""Every fault: it happens, lasts a while, and is over when the function returns."""


@contextlib.contextmanager
def started(folder: Path) -> Iterator[Place]:
    """Start everything, with a proxy before PostgreSQL, NATS, and the server of each worker."""
    with contextlib.ExitStack() as stack:
        postgres, nats = stack.enter_context(postgres_and_nats(folder))
        to_postgres = _proxy(stack, postgres.socket)
        to_nats = _proxy(stack, f"127.0.0.1:{nats.port}")
        store = f"postgresql://postgres@127.0.0.1:{to_postgres.port}/postgres"
        options = ["--json", "--lease", str(LEASE_SECONDS), "--wake", f"nats://127.0.0.1:{to_nats.port}"]
        cluster = ForkedCluster(store, folder, server_options=options, worker_options=["--slots", "4"])
        stack.callback(cluster.stop)
        urls = [cluster.add_server() for _ in range(SERVERS)]
        to_servers = [_proxy(stack, urls[number % SERVERS].removeprefix("http://")) for number in range(WORKERS)]
        for proxy in to_servers:
            cluster.add_worker(f"http://127.0.0.1:{proxy.port}")
        yield Place(cluster, postgres, nats, to_postgres, to_nats, to_servers)


def _proxy(stack: contextlib.ExitStack, upstream: str) -> Proxy:
    proxy = Proxy(upstream)
    stack.callback(proxy.close)
    return proxy


def run(folder: Path, seconds: float, seed: int) -> dict[str, Any]:
    """Inject faults for so long, each kind at least once, and return the report."""
    chance = random.Random(seed)
    done: Counter[str] = Counter()
    with started(folder) as place:
        load = Load(place.cluster, folder, seed, at_once=6)
        expected = load.run_one()
        load.begin()
        began = time.monotonic()
        left: list[str] = []
        while time.monotonic() - began < seconds or len(done) < len(FAULTS):
            left = left or chance.sample(list(FAULTS), len(FAULTS))
            name = left.pop()
            FAULTS[name](place, chance)
            done[name] += 1
            time.sleep(chance.random() * PAUSE_SECONDS)  # at any time
        load.finish()
        reader, _ = opened_for_reading(place.postgres.address)
        try:
            violations = load.violations(reader, expected)
            events = sum(len(list(reader.events(one.id))) for one in load.tracked)
            leases = sum("lease" in each.event.data for one in load.tracked for each in reader.events(one.id))
        finally:
            reader.close()
            load.close()
    return {
        "seed": seed,
        "seconds": round(time.monotonic() - began),
        "faults": dict(sorted(done.items())),
        "executions": len(load.tracked),
        "events": events,
        "leases_replaced": leases,
        "invariants": sorted(INVARIANTS),
        "violations": [violation._asdict() for violation in violations],
    }
