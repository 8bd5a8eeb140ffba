"""The same work on server and worker processes over PostgreSQL, beside engines that keep their state there.

Ours goes over HTTP and WebSocket between processes; DBOS and PgQueuer run in the process that asks.
"""

from __future__ import annotations

import sys

from bench.contest import OURS, Machine, best_costs
from bench.measurement import Cost, Goal, Row, faster
from bench.workflow_peers import DBOS_ON_POSTGRES, PGQUEUER, RESTATE, WorkflowPeer, machines_of
from bench.workplace import Workplace

_STEPS, _QUICK_STEPS = 100, 20
_ITEMS, _QUICK_ITEMS = 1_000, 100
_EXECUTIONS, _QUICK_EXECUTIONS, _SHORT = 200, 20, 5
_CHAIN = {DBOS_ON_POSTGRES: faster(2), RESTATE: faster(1)}
_LOOP = {DBOS_ON_POSTGRES: faster(10), RESTATE: faster(3), PGQUEUER: faster(1)}
_MANY = {DBOS_ON_POSTGRES: faster(10), RESTATE: faster(1)}


def measure(workplace: Workplace) -> list[Row]:
    """Time a chain on one worker, and a loop and many executions on two."""
    quick = workplace.quick
    steps, items = (_QUICK_STEPS, _QUICK_ITEMS) if quick else (_STEPS, _ITEMS)
    executions = _QUICK_EXECUTIONS if quick else _EXECUTIONS
    return [
        *_rows(workplace, f"service: {steps} steps, one worker", _CHAIN, "chain", steps, 1, 1),
        *_rows(workplace, f"service: {items:,} items, two workers", _LOOP, "loop", items, 1, 2),
        *_rows(workplace, f"service: {executions} x {_SHORT} steps", _MANY, "chain", _SHORT, executions, 2),
    ]


def _rows(
    workplace: Workplace,
    title: str,
    goals: dict[WorkflowPeer, Goal],
    job: str,
    tasks: int,
    executions: int,
    workers: int,
) -> list[Row]:
    machines = [_service(job, tasks, executions, workers), *machines_of(workplace, goals, job, tasks, executions)]
    costs: dict[str, Cost] = best_costs(workplace, machines)
    done = costs[OURS]
    note = f"{tasks * executions / done.seconds:,.0f} tasks/s"
    if workplace.quick:
        return [Row(title, done.seconds, "nobody", None, None, note)]
    return [peer.row(title, done, costs, goal) for peer, goal in goals.items()]


def _service(job: str, tasks: int, executions: int, workers: int) -> Machine:
    counts = (str(tasks), str(executions), str(workers))
    return Machine(OURS, lambda folder: [sys.executable, "-m", "bench.service_once", job, folder, *counts])
