"""A parallel loop of durable no-op items: its rate beside bare rows and engines, and what a hundredfold costs."""

from __future__ import annotations

from bench.contest import OURS, bare_sqlite, best_costs, ours
from bench.measurement import Row, at_most, faster, within
from bench.noop_playbooks import IN_FLIGHT, loop
from bench.workflow_peers import DBOS, LANGGRAPH, PGQUEUER, PREFECT, RESTATE, machines_of
from bench.workplace import Workplace

_ITEMS, _QUICK_ITEMS = (1_000, 100_000), (200, 2_000)
_LONG = "long"
_FLAT = at_most(1.2)
_MEMORY_MB = 64
_GOALS = {DBOS: faster(25), RESTATE: faster(7), PGQUEUER: faster(1), LANGGRAPH: faster(1), PREFECT: faster(1)}


def measure(workplace: Workplace) -> list[Row]:
    """Time a short loop beside others, and a long one beside the short one."""
    short, long = _QUICK_ITEMS if workplace.quick else _ITEMS
    floor = bare_sqlite(short // IN_FLIGHT, IN_FLIGHT)
    machines = [
        floor,
        ours(workplace, loop(short)),
        ours(workplace, loop(long), name=_LONG, turns=1),
        *machines_of(workplace, _GOALS, "loop", short),
    ]
    costs = best_costs(workplace, machines)
    job, done, grown = f"run a loop of {short:,} items", costs[OURS], costs[_LONG]
    rows = [Row(job, done.seconds, floor.name, costs[floor.name].seconds, None, _rate(short, done.seconds))]
    if not workplace.quick:
        rows += [peer.row(job, done, costs, goal) for peer, goal in _GOALS.items()]
    of_the_short = f"an item of {short:,} (processor time)"
    return [
        *rows,
        Row(
            f"an item of {long:,}", grown.cpu / long, of_the_short, done.cpu / short, _FLAT, _rate(long, grown.seconds)
        ),
        within(f"memory growth, {long:,} items", grown.memory / 1e6, _MEMORY_MB, "MB"),
    ]


def _rate(items: int, seconds: float) -> str:
    return f"{items / seconds:,.0f} items/s"
