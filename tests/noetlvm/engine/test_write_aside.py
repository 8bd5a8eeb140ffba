"""Writes in a thread: no tool is called before its report is durable, many reports share a commit, nothing is lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from noetlvm.store.interface import Append, StoreError
from noetlvm.store.memory import MemoryStore
from noetlvm.store.sqlite import SqliteStore
from noetlvm.tools.call import Outcome, ToolCall, ok
from noetlvm.worker.pipeline_run import SystemClock
from tests.noetlvm.engine.runs import Session, bundle_of
from tests.waiting import turns

LOOP = """
- step: start
  loop: { in: "{{ range(40) }}", iterator: i, spec: { mode: parallel, max_in_flight: 8 } }
  tool:
    - work: { kind: http, url: "https://example.org/{{ iter.i }}" }
    - more: { kind: http, url: "https://example.org/{{ iter.i }}" }
  next: { arcs: [{ step: after, when: "{{ event.name == 'loop.done' }}" }] }
- step: after
  tool: { kind: shell, command: [date] }
"""


class CountedStore(MemoryStore):
    """Counts writes, remembers their threads, and may fail."""

    def __init__(self) -> None:
        super().__init__()
        self.writes = 0
        self.threads: set[int] = set()
        self.fails_at: int | None = None

    def write(self, batch: Sequence[Append], bundles: Mapping[str, bytes] = {}) -> set[str]:
        self.writes += 1
        self.threads.add(threading.get_ident())
        if self.writes == self.fails_at:
            raise StoreError("the disk is full")
        return super().write(batch, bundles)


class Watched:
    """Plays tools, and checks that the store has the report of each call before it is made."""

    def __init__(self, store: MemoryStore | SqliteStore) -> None:
        self.store = store
        self.calls = 0

    async def __call__(self, call: ToolCall) -> Outcome:
        self.calls += 1
        execution = call.key.partition("/")[0]
        begun = {
            (one.event.run, one.event.iteration, one.event.task)
            for one in self.store.events(execution)
            if one.event.name == "task.started"
        }
        run, _, rest = call.key.removeprefix(f"{execution}/").partition("#")
        number, _, iteration = run.partition("/")
        assert (int(number), iteration, int(rest)) in begun
        await turns()
        return ok(call.label)


def ran(store: MemoryStore | SqliteStore, **options: Any) -> tuple[Any, Watched]:
    watched = Watched(store)
    session = Session(watched, store, SystemClock())
    return session.run(LOOP, writer=ThreadPoolExecutor(1), **options), watched


def test_a_tool_is_called_when_its_report_is_durable_and_reports_share_commits() -> None:
    store = CountedStore()
    ending, watched = ran(store)
    assert (ending.status, watched.calls) == ("success", 81)
    assert store.writes < 81
    assert len(store.threads) == 2


def test_the_same_holds_on_a_disk(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "x.db")
    try:
        ending, watched = ran(store)
    finally:
        store.close()
    assert (ending.status, watched.calls) == ("success", 81)


@pytest.mark.parametrize("fails_at", [1, 2, 3, 5])
def test_a_failed_write_ends_the_run_and_it_can_be_resumed(fails_at: int) -> None:
    store = CountedStore()
    watched = Watched(store)
    session = Session(watched, store, SystemClock())

    async def go() -> str:
        engine = session.engine(writer=ThreadPoolExecutor(1))
        id = engine.start(bundle_of(LOOP), {})
        store.fails_at = fails_at
        with pytest.raises(StoreError):
            await engine.run()
        return id

    id = asyncio.run(go())
    store.fails_at = None
    if fails_at == 1:
        assert store.execution(id) is None
        return
    ending = session.resume(id, writer=ThreadPoolExecutor(1))
    assert ending.status == "success"
    done = [one.event for one in store.events(id) if one.event.name == "task.done"]
    assert len(done) == len({(one.run, one.iteration, one.task) for one in done}) == 81
