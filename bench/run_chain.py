"""A chain of durable no-op steps, each committed before the next starts, beside bare commits and workflow engines."""

from __future__ import annotations

from bench.contest import OURS, bare_sqlite, best_costs, ours
from bench.measurement import Cost, Goal, Row, faster, within
from bench.noop_playbooks import chain
from bench.workflow_peers import BURR, DBOS, LANGGRAPH, PREFECT, RESTATE, machines_of
from bench.workplace import Workplace

_STEPS, _QUICK_STEPS = 100, 20
_RELAXED = "relaxed"
_OF_THE_FLOOR = Goal("60 % of its rate", 1 / 0.6)
_GOALS = {DBOS: faster(5), RESTATE: faster(2.5), BURR: faster(1), LANGGRAPH: faster(1), PREFECT: faster(1)}


def measure(workplace: Workplace) -> list[Row]:
    """Time the chain with both durabilities, and count its commits."""
    steps = _QUICK_STEPS if workplace.quick else _STEPS
    floor = bare_sqlite(steps, 1)
    machines = [
        floor,
        ours(workplace, chain(steps)),
        ours(workplace, chain(steps), durability="relaxed", name=_RELAXED),
        *machines_of(workplace, _GOALS, "chain", steps),
    ]
    costs = best_costs(workplace, machines)
    job, done = f"run {steps} steps, synchronous=FULL", costs[OURS]
    rows = [Row(job, done.seconds, floor.name, costs[floor.name].seconds, _OF_THE_FLOOR, _note(done, steps))]
    if not workplace.quick:
        rows += [peer.row(job, done, costs, goal) for peer, goal in _GOALS.items()]
    relaxed = costs[_RELAXED]
    return [
        *rows,
        Row(f"run {steps} steps, relaxed", relaxed.seconds, job, done.seconds, faster(10), _note(relaxed, steps)),
        # Each step's end is the next one's beginning, and one more begins the first.
        within(f"commits of {steps} steps", done.commits, steps + 1, "commits"),
    ]


def _note(cost: Cost, steps: int) -> str:
    return f"{steps / cost.seconds:,.0f} steps/s, {cost.cpu / steps * 1000:.2f} ms of processor a step"
