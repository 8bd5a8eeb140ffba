"""Logs of every mode obey the rules of logs, and the rules see an event that is missing or too much."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest

from noetlvm.bridge import compile_texts
from noetlvm.engine.engine import Engine, EngineOptions
from noetlvm.machine.loaded import Bundle
from noetlvm.results.interface import MemoryResults
from noetlvm.sim.world import Scenario, simulate
from noetlvm.store.interface import Durability
from noetlvm.store.memory import MemoryStore
from noetlvm.store.sqlite import SqliteStore
from noetlvm.testing.run_playbook import resolver_of
from noetlvm.worker.pipeline_run import SystemClock
from tests.whole.conformance.log_rules import Envelope, envelopes, problems, stored_logs
from tests.whole.conformance.suite import Case, read_cases
from tests.whole.conformance.test_run_cases_on_the_engine import ScriptedTools, is_for_one_worker
from tests.whole.conformance.test_run_envelopes import emitted

SEEDS = 60
PORTION = 20
DAMAGED = (
    "admit-gate-waits",
    "cancelled-work-ends",
    "child-by-path-and-version",
    "loop-best-effort",
    "loop-fail-fast",
    "outer-iterations-begin",
    "retry-backoff-linear",
    "time-timeout-cancels-iterations",
)
"""Cases whose logs together have an event of every kind that begins or ends something."""
FREE = {
    "drop": {"ctx.patched", "execution.paused", "execution.resumed", "token.denied"},
    "double": {"ctx.patched"},
}
"""Events that a log may have or not have as far as its other events show."""


# ---- modes


class HastyClock(SystemClock):
    """A clock on which every wait is over at once: limits expire early, and tools end in any order."""

    def __init__(self) -> None:
        super().__init__()
        self._ahead = 0.0

    def now(self) -> float:
        return super().now() + self._ahead

    async def sleep(self, seconds: float) -> None:
        self._ahead += max(seconds, 0.0)
        await super().sleep(0)  # no time passes


@pytest.mark.parametrize("durability", get_args(Durability))
def test_logs_of_the_engine_obey_the_rules_whatever_the_durability(durability: Durability, tmp_path: Path) -> None:
    cases = [case for case in read_cases("run") if is_for_one_worker(case)]
    with closing(SqliteStore(tmp_path / "test.db", durability)) as store:
        for number, case in enumerate(cases):
            run_on_engine(case, store, f"test-{number}")
        logs = stored_logs(store)
    assert len(logs) >= len(cases)
    assert {id: found for id, log in logs.items() if (found := problems(log))} == {}


def run_on_engine(case: Case, store: Any, execution_id: str) -> None:
    given, clock = case.expect.get("given", {}), HastyClock()
    texts = [path.read_text(encoding="utf-8") for path in (case.path, *case.companions)]

    async def run() -> None:
        tools, resolve = ScriptedTools(given.get("tools", {}), clock), resolver_of(lambda: given.get("keychain", {}))
        engine = Engine(store, MemoryResults(), tools, EngineOptions(resolve=resolve, max_parallel=100), clock=clock)
        bundle = Bundle.of(compile_texts(texts))
        engine.start(bundle, given.get("payload", {}), execution_id, ctx=given.get("ctx"))
        await asyncio.wait_for(engine.run(), 60)

    asyncio.run(run())


@pytest.mark.parametrize("first", range(0, SEEDS, PORTION))
@pytest.mark.parametrize("is_embedded", [False, True], ids=["service", "embedded"])
def test_logs_of_random_playbooks_under_faults_obey_the_rules(is_embedded: bool, first: int) -> None:
    found = {}
    for seed in range(first, first + PORTION):
        history = simulate(Scenario.of(seed, is_embedded=is_embedded))
        for id, log in history.logs.items():
            found[seed, id] = problems(envelopes(log.row, log.events))
    assert {place: wrong for place, wrong in found.items() if wrong} == {}


# ---- damage


@cache
def rich_logs() -> list[list[Envelope]]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        cases = [case for case in read_cases("run") if case.id in DAMAGED]
        assert len(cases) == len(DAMAGED)
        return [log for case in cases for log in emitted(case, monkeypatch).values()]


DAMAGES: dict[str, Callable[[Envelope], list[Envelope]]] = {
    "drop": lambda _event: [],
    "double": lambda event: [event, event | {"event_id": f"{event['event_id']}-again"}],
}


@pytest.mark.parametrize("name", DAMAGES)
def test_an_event_that_is_missing_or_too_much_is_seen(name: str) -> None:
    unseen = []
    for log in rich_logs():
        assert problems(log) == []
        for at, event in enumerate(log):
            damaged = [*log[:at], *DAMAGES[name](event), *log[at + 1 :]]
            renumbered = [one | {"seq": seq} for seq, one in enumerate(damaged, 1)]
            is_free = event["name"] in FREE[name] or "lease" in event["data"] or event["data"].get("total") == 0
            if not is_free and not problems(renumbered):
                unseen.append((event["execution_id"], event["seq"], event["name"]))
    assert unseen == []


def changed(name: str, change: Callable[[Envelope], Envelope]) -> list[list[str]]:
    """Return what the rules find in the logs if one event of a name is another."""
    found = []
    for log in rich_logs():
        for at, event in enumerate(log):
            if event["name"] == name:
                found.append(problems([*log[:at], change(event), *log[at + 1 :]]))
    return found


def with_meta(event: Envelope, **meta: Any) -> Envelope:
    outcome = event["data"]["outcome"]
    return event | {"data": event["data"] | {"outcome": outcome | {"meta": outcome["meta"] | meta}}}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("task.done", lambda event: with_meta(event, ts=None)),
        ("task.done", lambda event: with_meta(event, duration_ms=None)),
        ("task.done", lambda event: with_meta(event, attempt=9)),
        ("task.done", lambda event: with_meta(event, trace_id="another")),
        ("task.done", lambda event: event | {"task_label": ""}),
        ("task.started", lambda event: event | {"attempt": 9}),
        ("step.failed", lambda event: event | {"status": "failed"}),
        ("token.enqueued", lambda event: event | {"entity": "token"}),
        ("loop.started", lambda event: event | {"source": "nobody"}),
        ("loop.iteration.failed", lambda event: event | {"iteration_id": "of another"}),
        ("next.evaluated", lambda event: event | {"trace_id": ""}),
        ("ctx.patched", lambda event: {key: value for key, value in event.items() if key != "step_run_id"}),
    ],
)
def test_a_field_that_is_wrong_is_seen(name: str, change: Callable[[Envelope], Envelope]) -> None:
    found = changed(name, change)
    assert found
    assert all(found)


def test_a_log_of_nothing_but_its_request_is_that_of_a_refusal() -> None:
    (case,) = [case for case in read_cases("run") if case.id == "log-of-a-whole-run"]
    store = MemoryStore()
    run_on_engine(case, store, "test")
    (log,) = stored_logs(store).values()
    assert problems(log) == []
    assert problems(log[:2]) != []
