"""Virtual time passes only when everybody sleeps, and wakes them in the order of their times."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest

from noetlvm.rounds.identity import child_id, new_ids
from noetlvm.tools.call import Outcome, ToolCall, error, ok
from noetlvm.worker.pipeline_run import SystemClock
from tests.fake_clock import FakeClock
from tests.noetlvm.engine.runs import Session, bundle_of
from tests.waiting import turns, until

ROOT = Path(__file__).resolve().parents[3]


def test_sleepers_wake_in_order_once_all_sleep() -> None:
    clock = FakeClock(0)
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((name, clock.now()))

    async def go() -> None:
        tasks = [asyncio.create_task(sleeper("late", 30)), asyncio.create_task(sleeper("early", 10))]
        await turns()
        clock.rest(3)
        await turns()
        assert woken == []
        clock.rest(2)
        await turns()
        clock.rest(1)
        await asyncio.gather(*tasks)

    asyncio.run(go())
    assert woken == [("early", 10), ("late", 30)]


def test_time_can_be_pushed_on() -> None:
    clock = FakeClock(0)
    clock.advance(5)
    assert clock.now() == 5


def test_identifiers_sort_by_time_and_are_uuids() -> None:
    early, late = new_ids(1_700_000_000.0, 1)[0], new_ids(1_700_000_001.0, 1)[0]
    assert early < late
    of_one_moment = new_ids(1.0, 500) + new_ids(1.0, 500)
    assert of_one_moment == sorted(set(of_one_moment))
    for id, version in ((early, "7"), (child_id("x"), "8")):
        assert [len(part) for part in id.split("-")] == [8, 4, 4, 4, 12]
        assert id[14] == version
        assert id[19] in "89ab"


def test_two_processes_make_different_identifiers_in_the_same_millisecond() -> None:
    making = "from noetlvm.rounds.identity import new_ids; print(new_ids(1.0, 1)[0])"
    command = [sys.executable, "-c", making]
    made = [subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert made[0] != made[1]
    assert made[0][:14] == made[1][:14]


def test_a_child_has_the_same_identifier_whenever_it_is_requested() -> None:
    assert child_id("e/1#2.1") == child_id("e/1#2.1") != child_id("e/1#2.2")


def test_a_wall_clock_that_is_set_back_changes_no_time_of_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SystemClock()
    before = clock.now()
    day_ago = time.time() - 86_400
    monkeypatch.setattr(time, "time", lambda: day_ago)
    assert before <= clock.now() < before + 3_600


def test_a_wall_clock_that_is_set_is_reported_once_and_changes_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SystemClock()
    real = time.time
    before = clock.now()
    assert clock.jump() == 0
    monkeypatch.setattr(time, "time", lambda: real() - 86_400)
    assert round(clock.jump(), -1) == -86_400
    assert clock.jump() == 0
    assert 0 <= clock.now() - before < 3_600


def test_time_continues_from_the_last_event_where_the_clock_was_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    real = time.time
    recorded = real()
    monkeypatch.setattr(time, "time", lambda: real() - 86_400)
    clock = SystemClock()
    assert clock.now() < recorded
    assert round(clock.catch_up(recorded), -1) == 86_400
    assert recorded <= clock.now() < recorded + 3_600
    assert clock.catch_up(recorded) == 0
    assert clock.jump() == 0


class WaitlessClock(SystemClock):
    """A system clock on which a wait is over at once, and is counted as time that has passed."""

    def __init__(self) -> None:
        super().__init__()
        self.waited = 0.0

    async def sleep(self, seconds: float) -> None:
        self.waited += seconds
        self._start += seconds
        await turns()


def test_a_retry_waits_no_longer_than_its_delay_after_the_clock_was_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[float] = []

    async def play(_call: ToolCall) -> Outcome:
        tries.append(time.monotonic())
        return error("busy", "try again", retryable=True) if len(tries) == 1 else ok()

    session = Session(play, clock=SystemClock())
    text = """
    - step: start
      tool:
        - get:
            kind: shell
            command: [get]
            spec:
              policy:
                rules:
                  - when: "{{ outcome.status == 'error' }}"
                    then: { do: retry, attempts: 3, delay: 6 }
                  - else: { then: { do: continue } }
    """

    async def begin() -> str:
        engine = session.engine()
        execution_id = engine.start(bundle_of(text), {})
        running = asyncio.get_running_loop().create_task(engine.run())
        await until(lambda: any(one.event.name == "task.done" for one in session.received))
        engine.stop(now=True)
        await running
        return execution_id

    execution_id = asyncio.run(begin())
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - 86_400)
    session.clock = clock = WaitlessClock()
    assert session.resume(execution_id).status == "success"
    assert len(tries) == 2
    assert clock.waited <= 6
