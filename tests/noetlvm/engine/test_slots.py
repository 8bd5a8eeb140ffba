"""Slots for tools: taken in order, and one that is given back at once goes to the next."""

from __future__ import annotations

import asyncio
from functools import partial

from noetlvm.tools.call import Outcome, ToolCall, ok
from noetlvm.worker.pipeline_run import Slots
from tests.noetlvm.engine.runs import Session
from tests.waiting import turns

MANY = 5_000

WIDE = """
- step: start
  loop: { in: "{{ range(40) }}", iterator: i, spec: { mode: parallel } }
  tool: { kind: http, url: "https://example.org/{{ iter.i }}" }
"""


def test_a_slot_goes_to_the_first_that_waits() -> None:
    slots, had = Slots(2), list[int]()
    for number in range(4):
        slots.take(partial(had.append, number))
    assert had == [0, 1]
    slots.give_back()
    assert had == [0, 1, 2]


def test_many_that_no_longer_need_their_slot_are_passed_over() -> None:
    slots, had = Slots(1), list[int]()

    def leave(number: int) -> None:
        had.append(number)
        slots.give_back()

    slots.take(lambda: None)
    for number in range(MANY):
        slots.take(partial(leave, number))
    assert had == []
    slots.give_back()
    assert had == list(range(MANY))


def test_no_more_tools_run_than_there_are_slots_and_what_waits_for_one_is_no_task() -> None:
    running, most, tasks = 0, 0, 0

    async def watched(_call: ToolCall) -> Outcome:
        nonlocal running, most, tasks
        running += 1
        most, tasks = max(most, running), max(tasks, len(asyncio.all_tasks()))
        await turns()
        running -= 1
        return ok()

    assert Session(watched).run(WIDE, max_parallel=3).status == "success"
    assert most == 3
    assert tasks < 20
