"""Branches, nested loops, gates, retries and failures at once, as chance has it: a log folds and is decided again."""

from __future__ import annotations

import asyncio
import random

import pytest

from noetlvm.rounds.active import Ending
from noetlvm.tools.call import Outcome, ToolCall, error, ok
from noetlvm.worker.pipeline_run import SystemClock
from tests.noetlvm.engine.runs import Session, bundle_of

STEPS = """
- step: start
  tool: { kind: noop }
  next:
    spec: { mode: inclusive }
    arcs: [{ step: left }, { step: right }, { step: gate }]
- step: left
  spec: { policy: { failure: { mode: FAILURE_MODE } } }
  loop:
    in: "{{ range(ITEMS) | list }}"
    iterator: outer
    spec: { mode: parallel, max_in_flight: WIDTH, policy: { reducers: { total: sum } } }
    loop: { in: [0, 1, 2], iterator: inner, spec: { mode: INNER_MODE } }
  tool:
    - name_it:
        kind: noop
        spec:
          policy:
            rules:
              - else:
                  then: { do: continue, set_iter: { number: "{{ iter.parent.outer * 3 + iter.inner }}" } }
    - work:
        kind: shell
        command: [work, "{{ iter.number | string }}"]
        spec:
          policy:
            rules:
              - when: "{{ outcome.status == 'error' and _attempt < 3 }}"
                then: { do: retry, attempts: 3, delay: 0.001 }
              - when: "{{ outcome.status == 'error' }}"
                then: { do: DIRECTIVE }
              - else:
                  then: { do: continue, set_ctx: { total: "{{ iter.number }}" } }
  next:
    arcs: [{ step: join, when: "{{ event.name in ['loop.done', 'step.failed'] }}", args: { from: left } }]
- step: right
  loop: { in: [1, 2, 3, 4, 5], iterator: turn, spec: { mode: sequential } }
  tool:
    - take:
        kind: shell
        command: [take, "{{ iter.turn | string }}"]
        spec: { policy: { rules: [{ else: { then: { do: continue, set_ctx: { last: "{{ iter.turn }}" } } } }] } }
  next: { arcs: [{ step: join, args: { from: right } }] }
- step: gate
  spec:
    policy:
      admit:
        rules:
          - when: "{{ ctx.last | default(0) >= 3 }}"
            then: { allow: true }
          - else: { then: { allow: false } }
  tool: { kind: shell, command: [pass] }
- step: join
  tool: { kind: noop }
"""


def steps_of(chance: random.Random) -> str:
    chosen = {
        "FAILURE_MODE": chance.choice(["fail_fast", "best_effort"]),
        "ITEMS": chance.randint(1, 8),
        "WIDTH": chance.randint(1, 6),
        "INNER_MODE": chance.choice(["sequential", "parallel, max_in_flight: 2"]),
        "DIRECTIVE": chance.choice(["fail", "continue", "break"]),
    }
    text = STEPS
    for word, value in chosen.items():
        text = text.replace(word, str(value))
    return text


def session_of(chance: random.Random) -> Session:
    async def play(_call: ToolCall) -> Outcome:
        # The order is not fixed by this, only varied: any order must do.
        await asyncio.sleep(chance.choice([0, 0, 0.001, 0.002, 0.004]))
        if chance.random() < 0.1:
            return error("boom", "no", retryable=True)
        return ok("x" * chance.choice([1, 1, 1, 70_000]))

    return Session(play, clock=SystemClock())


@pytest.mark.parametrize("seed", range(24))
def test_whatever_happened_is_decided_again(seed: int) -> None:
    chance = random.Random(seed)
    session, is_controlled = session_of(chance), chance.random() < 0.4

    async def control(ask: str, execution_id: str) -> None:
        await asyncio.sleep(chance.random() * 0.02)  # at any time
        engine.control(execution_id, "pause")
        await asyncio.sleep(0.005)  # some tasks later
        engine.control(execution_id, "cancel" if ask == "cancel" else "resume")

    async def go() -> Ending:
        execution_id = engine.start(bundle_of(steps_of(chance)), {})
        requested = (
            asyncio.create_task(control(chance.choice(["resume", "cancel"]), execution_id)) if is_controlled else None
        )
        await engine.run(listens=is_controlled)
        if requested:
            requested.cancel()
        return engine.ending(execution_id)

    engine = session.engine(max_parallel=chance.choice([1, 2, 8]))
    ending = asyncio.run(go())
    assert ending.status in ("success", "failed", "cancelled")
    session.check(ending)
