"""Runs cases on servers and workers, and compares what they leave in the store with the embedded engine's run.

A case passes if its expectation holds, apart from order and time, and if the log is the one that
the embedded engine writes under some schedule (`log_comparison`), with the same calls of tools.

Cases in which time passes run on a fast clock. How fast depends on the shortest time between two moments of the case,
so that their order stays as it is. A case that differs is repeated more slowly before the difference counts: a busy
machine may have been late.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from noetlvm.bridge import CompilationError, compile_texts
from noetlvm.client import Client, ServiceError
from noetlvm.command_line.process import CommandError
from noetlvm.conformance.cluster import Cluster, running
from noetlvm.conformance.databases import nats_server, postgres_server
from noetlvm.conformance.log_comparison import ExecutionLog, differences
from noetlvm.conformance.scripted import CLOCK, HOST, ScriptHost, SharedClock
from noetlvm.conformance.suite import Case
from noetlvm.conformance.verdict import IN_ANY_ORDER, complaints
from noetlvm.results.files import FileResults
from noetlvm.results.interface import ResultStore
from noetlvm.service.process import SQLITE, open_store
from noetlvm.store.interface import StoreReader
from noetlvm.store.sqlite import SqliteReader
from noetlvm.testing.__main__ import run_given
from noetlvm.testing.result import RunResult, read_result

MODES = {"sqlite": (1, 2), "postgres": (2, 2)}
"""Servers and workers of each mode."""
GAP_SECONDS = 0.4
"""Real time between two moments of a case, at least."""
SLOWER = 4
"""Factor by which a case that differs is slowed down when it is repeated."""
AT_ONCE = 8
"""Cases that run at once."""
END_SECONDS = 120
LOOK_SECONDS = 0.02
EMBEDDED = "00000000-0000-8000-8000-e38edded0000"
"""Identifier of an embedded run: one that no text contains by chance."""
REST_SECONDS = 0.5
"""How long nothing must happen until an execution that does not end counts as being at rest."""

_JUDGED = (IN_ANY_ORDER | {"absent", "depth", "event_bytes"}) - {"seconds", "in_flight"}


class ServiceMode:
    """A cluster with scripted tools, its store, and the clock of all."""

    def __init__(
        self, cluster: Cluster, host: ScriptHost, clock: SharedClock, reader: StoreReader, results: ResultStore
    ) -> None:
        self.cluster = cluster
        self.host = host
        self.clock = clock
        self.reader = reader
        self.results = results
        self._clients = [cluster.client(number) for number in range(len(cluster.servers))]
        self._turn = 0

    @property
    def client(self) -> Client:
        """A client of each server in turn."""
        self._turn += 1
        return self._clients[self._turn % len(self._clients)]

    def close(self) -> None:
        for client in self._clients:
            client.close()

    def run(self, bundle: bytes, given: dict[str, Any], expected: RunResult, *, scripted: bool = True) -> RunResult:
        """Run a bundle as a case specifies. `expected` defines when an execution that does not end is at rest."""
        id = self.client.register(bundle)["bundle"]
        if scripted:
            self.host.play(id, given.get("tools", {}))
        execution = self.client.start(bundle=id, payload=given.get("payload", {}), ctx=given.get("ctx", {}))
        begun = self._begun(execution)
        for seconds, action in given.get("controls", ()):
            self.clock.sleep_until(begun + seconds)
            self.client.control(execution, action)
        self._wait(execution, expected)
        row = self.reader.execution(execution)
        assert row is not None  # it was started
        return read_result(self.reader, self.results, row, self.host.played)

    def _begun(self, execution: str) -> float:
        """Return the time of the first event, which a reader that threads share may see a moment later."""
        give_up = time.monotonic() + END_SECONDS
        while time.monotonic() < give_up:
            for first in self.reader.events(execution, until=1):
                return first.timestamp
            time.sleep(LOOK_SECONDS)
        raise CommandError(f"{execution} was started and has no events")

    def _wait(self, execution: str, expected: RunResult) -> None:
        """Wait until an execution and its children have ended, or are at rest."""
        ends = expected.status not in ("paused", "running")
        give_up = time.monotonic() + END_SECONDS
        while time.monotonic() < give_up:
            row = self.reader.execution(execution)
            if row is not None and (row.ended is not None or (not ends and row.seq >= len(expected.events))):
                break
            time.sleep(LOOK_SECONDS)
        if not ends:
            time.sleep(REST_SECONDS)
        while time.monotonic() < give_up and self._running_children(execution) and ends:
            time.sleep(LOOK_SECONDS)

    def _running_children(self, execution: str) -> bool:
        """Return whether a child has not ended: it is cancelled shortly after its parent."""
        children = self.reader.executions(parent=execution)
        return any(child.ended is None or self._running_children(child.execution_id) for child in children)


@contextmanager
def started(mode: str, folder: Path, store: str | None = None, wake: str | None = None) -> Iterator[ServiceMode]:
    """Start the servers and workers of a mode, and a database unless one is named. Raises CommandError."""
    servers, workers = MODES[mode]
    with ExitStack() as stack:
        if mode == "postgres":
            store = store or stack.enter_context(postgres_server())
            wake = wake or stack.enter_context(nats_server(folder / "nats"))
        else:
            store = store or f"sqlite:{folder / 'service.db'}"
        clock = SharedClock(folder / CLOCK)
        clock.start()
        host = ScriptHost(folder / HOST, clock)
        stack.callback(host.close)
        options = ["--home", str(folder)]
        cluster = Cluster(
            store,
            folder,
            module="noetlvm.conformance",
            server_options=[*options, *(["--wake", wake] if wake else [])],
            worker_options=options,
        )
        stack.enter_context(running(cluster, servers=servers, workers=workers))
        reader, results = opened_for_reading(store)
        stack.callback(reader.close)
        made = ServiceMode(cluster, host, clock, reader, results)
        stack.callback(made.close)
        yield made


def opened_for_reading(store: str) -> tuple[StoreReader, ResultStore]:
    if not store.startswith(SQLITE):
        return open_store(store)
    path = Path(store.removeprefix(SQLITE))
    return SqliteReader(path), FileResults.of_database(path)


def judge_all(mode: ServiceMode, cases: Sequence[Case], done: Callable[[Case, list[str]], None]) -> None:
    """Run all cases, those of one speed at once, and give what is wrong with each to `done`."""
    groups: dict[tuple[float, bool], list[Case]] = {}
    for case in cases:
        groups.setdefault((_speed(case), "keychain" in case.given), []).append(case)
    for (speed, in_turn), group in sorted(groups.items(), key=lambda item: item[0]):
        mode.clock.set_speed(speed)
        with ThreadPoolExecutor(1 if in_turn else AT_ONCE) as pool:
            found = list(pool.map(lambda case: judge_run(mode, case), group))
        for case, problems in zip(group, found, strict=True):
            if problems and speed > 1:
                mode.clock.set_speed(speed / SLOWER)
                problems = judge_run(mode, case)
                mode.clock.set_speed(speed)
            done(case, problems)


def judge_run(mode: ServiceMode, case: Case) -> list[str]:
    if case.expect["status"] == "refused":
        return list(_judge_refusal(mode, case))
    embedded = run_given(case.texts, case.given, execution_id=EMBEDDED)
    mode.host.set_keychain(case.given.get("keychain", {}))
    try:
        ran = mode.run(compile_texts(case.texts), case.given, embedded)
    except ServiceError as error:
        raise CommandError(f"{case.id}: {error}") from None
    timed = case.expect.get("timed", ())
    problems = complaints(_expected(case.expect, timed), _without(ran.to_data(), timed))
    if ran.in_flight > case.expect.get("in_flight", ran.in_flight):
        problems.append(f"{ran.in_flight} tools ran at once, and {case.expect['in_flight']} may")
    found = compared(embedded, ran, timed)
    for seed in range(case.given.get("schedules", 0)):
        if not found:
            break
        if not compared(run_given(case.texts, case.given, seed, EMBEDDED), ran, timed):
            found = []
    return [*problems, *found]


def _judge_refusal(mode: ServiceMode, case: Case) -> Iterator[str]:
    """A service refuses a playbook that does not compile when it is registered, with the compiler's diagnostics."""
    try:
        compile_texts(case.texts)
    except CompilationError as problem:
        expected = [(row["code"], row["line"]) for row in problem.findings]
    else:
        yield "the playbook compiles"
        return
    try:
        mode.client.register(case.data)
        yield "the playbook was registered"
    except ServiceError as error:
        found = [(row["code"], row["line"]) for row in error.diagnostics]
        if found != expected:
            yield f"the diagnostics are {found}, not {expected}"


def _expected(expect: dict[str, Any], timed: Collection[str]) -> dict[str, Any]:
    """Return what is expected whatever the order and the time."""
    found = {key: value for key, value in expect.items() if key in _JUDGED}
    if "children" in found:
        found["children"] = [_expected(child, timed) for child in found["children"]]
    return _without(found, timed)


def _without(run: dict[str, Any], timed: Collection[str]) -> dict[str, Any]:
    """Return a run without the keys of `ctx` that hold a time."""
    ctx = {key: value for key, value in run.get("ctx", {}).items() if key not in timed}
    return run | {"ctx": ctx} if "ctx" in run else run


def compared(expected: RunResult, found: RunResult, timed: Collection[str] = ()) -> list[str]:
    """Return where two runs differ: in their logs, or in the calls of tools."""
    problems = differences(log_of(expected), log_of(found), timed)
    one, other = _calls(expected), _calls(found)
    problems += [f"there is no call {call}" for call in one if call not in other]
    problems += [f"unexpected call {call}" for call in other if call not in one]
    if len(one) != len(other) and not problems:
        problems.append(f"there are {len(other)} calls, not {len(one)}")
    return problems


def log_of(run: RunResult) -> ExecutionLog:
    return ExecutionLog(run.execution_id, run.events, [log_of(child) for child in run.children])


def _calls(run: RunResult) -> list[str]:
    """Return the calls of a run in an order of their own; key and time are left out."""
    calls = (json.dumps([*call[1:7]], sort_keys=True, default=repr) for call in run.calls)
    return sorted(call.replace(run.execution_id, "execution") for call in calls)


def _speed(case: Case) -> float:
    """Return how many seconds may pass in a real one."""
    try:
        run = run_given(case.texts, case.given)
    except CompilationError:
        return 1.0
    moments = sorted({*run.times, *(call.at for call in run.calls), *(at for at, _ in case.given.get("controls", ()))})
    gaps = [later - earlier for earlier, later in pairwise(moments)]
    return max(1.0, min(gaps) / GAP_SECONDS) if gaps else 1.0
