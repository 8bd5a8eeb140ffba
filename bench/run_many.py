"""Many short executions at once: they share commits, where bare rows and other engines commit for each step."""

from __future__ import annotations

from bench.contest import OURS, bare_sqlite, best_costs, ours
from bench.measurement import Row, faster
from bench.noop_playbooks import chain
from bench.workflow_peers import BURR, DBOS, LANGGRAPH, RESTATE, machines_of
from bench.workplace import Workplace

_EXECUTIONS, _QUICK_EXECUTIONS = 200, 20
_STEPS = 5
_GOALS = {DBOS: faster(20), RESTATE: faster(10), BURR: faster(1), LANGGRAPH: faster(1)}


def measure(workplace: Workplace) -> list[Row]:
    """Time executions that are all asked for before the first one runs."""
    executions = _QUICK_EXECUTIONS if workplace.quick else _EXECUTIONS
    floor = bare_sqlite(executions * _STEPS, 1)
    peers = machines_of(workplace, _GOALS, "chain", _STEPS, executions)
    costs = best_costs(workplace, [floor, ours(workplace, chain(_STEPS), executions), *peers])
    job, done = f"run {executions} executions of {_STEPS} steps", costs[OURS]
    note = f"{executions / done.seconds:,.0f} executions/s, {done.commits} commits"
    rows = [Row(job, done.seconds, floor.name, costs[floor.name].seconds, faster(1), note)]
    if not workplace.quick:
        rows += [peer.row(job, done, costs, goal) for peer, goal in _GOALS.items()]
    return rows
