"""When decisions are committed: each by itself with full durability, several at a time with relaxed, and never late."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import inf

import pytest

from noetlvm.data.event import Recorded
from noetlvm.engine import pace
from noetlvm.rounds.active import Ending
from noetlvm.store.interface import Append, Durability, Execution
from noetlvm.store.memory import MemoryStore
from noetlvm.tools.call import Outcome, ToolCall, error, ok
from tests.noetlvm.engine.runs import PlayedTools, Session, bundle_of, labels
from tests.waiting import until

STEPS = 12

COUNT = """
- step: {name}
  tool:
    - count:
        kind: noop
        spec:
          policy:
            rules:
              - else:
                  then: {{ do: continue, set_ctx: {{ n: "{{{{ (ctx.n | default(0)) + 1 }}}}" }} }}
  next: {{ arcs: [{{ step: {next} }}] }}
"""
COUNTING = "".join(
    COUNT.format(name="start" if number == 1 else f"step_{number}", next=f"step_{number + 1}")
    for number in range(1, STEPS + 1)
)
LAST = f"""
- step: step_{STEPS + 1}
  tool: {{ kind: noop }}
"""
SHELL = f"""
- step: step_{STEPS + 1}
  tool:
    - ready: {{ kind: noop }}
    - act: {{ kind: shell, command: ["{{{{ ctx.n | string }}}}"] }}
  next: {{ arcs: [{{ step: after }}] }}
- step: after
  tool: {{ kind: noop }}
  next: {{ arcs: [{{ step: again }}] }}
- step: again
  tool:
    - repeat: {{ kind: shell, command: [again] }}
"""
PARENT = f"""
- step: step_{STEPS + 1}
  tool: {{ kind: playbook, path: child }}
"""
LARGE = """
- step: start
  loop: { in: [1, 2], iterator: n }
  tool:
    - read: { kind: shell, command: [read] }
  next: { arcs: [{ step: use }] }
- step: use
  tool:
    - use: { kind: shell, command: ["{{ start | length }} {{ start[1] | length }}"] }
"""
CHILD = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: child, path: child }
workflow:
  - step: start
    tool:
      - act: { kind: shell, command: [child] }
"""
WAITING = f"""
- step: step_{STEPS + 1}
  tool:
    - act:
        kind: shell
        command: [act]
        spec:
          policy:
            rules:
              - when: "{{{{ outcome.status == 'error' }}}}"
                then: {{ do: retry, attempts: 2, delay: 100 }}
              - else: {{ then: {{ do: continue }} }}
"""


class CountingStore(MemoryStore):
    commits = 0

    def write(self, batch: Sequence[Append], bundles: Mapping[str, bytes] = {}) -> set[str]:
        self.commits += 1
        return super().write(batch, bundles)


def counting(durability: Durability) -> tuple[Session, CountingStore]:
    store = CountingStore(durability)
    return Session(store=store), store


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let decisions wait forever, if nothing but time would have them committed."""
    monkeypatch.setattr(pace, "HOLD_SECONDS", inf)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "HOLD_SECONDS", 0)


def test_full_durability_commits_each_step_before_the_next(patient: None) -> None:
    session, store = counting("full")
    session.run(COUNTING + LAST)
    assert store.commits == STEPS + 1 + 1  # each step's end is the next one's beginning, and one more begins the first


def test_relaxed_durability_lets_steps_share_a_commit_and_ends_the_same(patient: None) -> None:
    relaxed, store = counting("relaxed")
    full, _ = counting("full")
    ending = relaxed.run(COUNTING + LAST, monotonic=lambda: 0.0)
    other = full.run(COUNTING + LAST)
    assert store.commits == 2  # the first commits what the engine was started with
    assert (ending.status, ending.ctx, ending.result) == (other.status, other.ctx, other.result)
    assert relaxed.names(ending.execution_id) == full.names(other.execution_id)


def test_a_decision_that_has_waited_long_enough_is_committed(impatient: None) -> None:
    session, store = counting("relaxed")
    session.run(COUNTING + LAST)
    assert store.commits == STEPS + 1 + 1


@pytest.mark.parametrize("last", [SHELL, PARENT, WAITING], ids=["tool", "child", "wait"])
def test_no_tool_begins_before_everything_that_led_to_it_is_committed(last: str, patient: None) -> None:
    session, store = counting("relaxed")
    known: list[list[str]] = []

    async def play(_call: ToolCall) -> Outcome:
        parent = store.executions(parent="")[0].execution_id
        known.append([recorded.event.label for recorded in store.events(parent) if recorded.event.name == "task.done"])
        return error("net", "no") if last is WAITING and len(known) == 1 else ok()

    session.tools.play = play
    session.run(COUNTING + last, CHILD)
    counted = ["count"] * STEPS
    expected = {
        SHELL: [[*counted, "ready"], [*counted, "ready", "act", "task_1"]],
        PARENT: [counted],
        WAITING: [counted, [*counted, "act"]],
    }
    assert known == expected[last]


@pytest.mark.parametrize("has_thread", [False, True], ids=["here", "thread"])
@pytest.mark.parametrize("durability", ["full", "relaxed"])
def test_what_begins_before_the_write_reads_large_results_that_it_brings(
    durability: Durability, has_thread: bool, patient: None
) -> None:
    session, _ = counting(durability)
    large = "x" * 100_000

    async def play(call: ToolCall) -> Outcome:
        return ok(large) if call.label == "read" else ok(call.inputs["command"])

    session.tools.play = play
    ending = session.run(LARGE, monotonic=lambda: 0.0, writer=ThreadPoolExecutor(1) if has_thread else None)
    assert (ending.status, ending.result) == ("success", [f"2 {len(large)}"])


def test_observers_receive_nothing_that_could_be_lost(patient: None) -> None:
    session, store = counting("relaxed")
    received: list[Recorded] = []

    def observe(row: Execution, recorded: Sequence[Recorded]) -> None:
        received.extend(recorded)
        assert list(store.events(row.execution_id)) == received
        assert store.execution(row.execution_id) == row

    async def go() -> Ending:
        engine = session.engine(observers=(observe,))
        execution_id = engine.start(bundle_of(COUNTING + SHELL), {})
        await engine.run()
        return engine.ending(execution_id)

    ending = asyncio.run(go())
    assert [recorded.seq for recorded in received] == list(range(1, ending.event_count + 1))


def test_a_run_that_is_cancelled_has_committed_all_that_it_decided(patient: None) -> None:
    text = """
    - step: start
      loop: { in: "{{ range(500) }}", iterator: item, spec: { mode: sequential } }
      tool: { kind: noop }
    """
    session, _ = counting("relaxed")

    async def go() -> Ending:
        engine = session.engine()
        execution_id = engine.start(bundle_of(text), {})
        running = asyncio.create_task(engine.run(listens=True))
        await until(lambda: engine.ending(execution_id).event_count, interval=0)
        running.cancel()
        await asyncio.wait([running])
        return engine.ending(execution_id)

    ending = asyncio.run(go())
    assert ending.status == "running"
    session.check(ending)


class Died(Exception):  # noqa: N818 - it says what happened
    pass


class MortalTools(PlayedTools):
    """Tools that take the process down with the question after so many."""

    life: float = inf

    def at_once(self, call: ToolCall) -> Outcome | None:
        self.life -= 1
        if self.life < 0:
            raise Died
        return super().at_once(call)


@pytest.mark.parametrize("durability", ["full", "relaxed"])
@pytest.mark.parametrize("life", range(STEPS + 4))
def test_wherever_it_dies_it_goes_on_to_the_same_end_and_no_effect_happens_twice(
    life: int, durability: Durability, patient: None
) -> None:
    session, store = counting(durability)
    session.tools = tools = MortalTools()
    tools.life = life
    with pytest.raises(Died):
        session.run(COUNTING + SHELL)
    tools.life = inf
    (row,) = store.executions()
    ending = session.resume(row.execution_id)
    assert (ending.status, ending.ctx, ending.result) == ("success", {"n": STEPS}, "done")
    assert labels(tools.calls) == ["act", "repeat"]
