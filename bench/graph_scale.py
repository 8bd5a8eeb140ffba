"""All analyses over nets of 1,000, 10,000 and 100,000 steps, beside the reachability graphs of pm4py and SNAKES.

The peers list markings, of which a net with a few tokens has very many, so they get a time limit; ours answers about
markings without listing them.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from importlib.metadata import version

from bench.measurement import Row, at_most, faster
from bench.workplace import ROOT, Workplace

_SIZES, _QUICK_SIZES = (1_000, 10_000, 100_000), (100, 1_000)
_PEER_SIZES, _QUICK_PEER_SIZES = (10, 100, 1_000), (10,)
_PATIENCE_S, _QUICK_PATIENCE_S = 60, 5
_LINEAR = at_most(1.5)
"""What 1,000 steps of a larger net may cost, beside 1,000 steps of the smallest."""
_PEERS = {"pm4py": "pm4py", "snakes": "SNAKES"}
"""Module and name."""


def measure(workplace: Workplace) -> list[Row]:
    """Time every size in a process of its own, the best of the rounds."""
    sizes, peer_sizes = (_QUICK_SIZES, _QUICK_PEER_SIZES) if workplace.quick else (_SIZES, _PEER_SIZES)
    return [*_linearity(workplace, sizes), *(row for size in peer_sizes for row in _beside_peers(workplace, size))]


def _linearity(workplace: Workplace, sizes: tuple[int, ...]) -> list[Row]:
    seconds = {size: _best(workplace, size) for size in sizes}
    smallest = sizes[0]
    rows = [Row(f"graph: a net of {smallest:,} steps", seconds[smallest], "-", None)]
    for size in sizes[1:]:
        cost, base = seconds[size] / size * 1_000, seconds[smallest] / smallest * 1_000
        title = f"graph: 1,000 steps of a net of {size:,}"
        rows.append(Row(title, cost, f"of a net of {smallest:,}", base, _LINEAR, f"{seconds[size]:.1f} s in all"))
    return rows


def _beside_peers(workplace: Workplace, size: int) -> list[Row]:
    ours = _best(workplace, size)
    return [_beside(workplace, size, ours, module) for module in _PEERS]


def _beside(workplace: Workplace, size: int, ours: float, module: str) -> Row:
    job, name = f"graph: every answer for {size:,} steps", _PEERS[module]
    if importlib.util.find_spec(module) is None:
        return Row(job, ours, f"{name}: reachability", None, faster(1))
    title = f"{name} {version(name)}: reachability"
    limit = _QUICK_PATIENCE_S if workplace.quick else _PATIENCE_S
    theirs = _seconds(module, size, limit)
    if theirs is None:
        return Row(job, ours, title, float(limit), faster(1), f"it did not finish in {limit} s")
    return Row(job, ours, title, theirs, faster(1))


def _best(workplace: Workplace, size: int) -> float:
    found = [_seconds("noetlc", size, None) for _ in range(workplace.rounds)]
    return min(seconds for seconds in found if seconds is not None)


def _seconds(contestant: str, size: int, limit: float | None) -> float | None:
    """Return the seconds that a contestant takes, without its start-up; None if it does not finish in time."""
    command = [sys.executable, "-m", "bench.graph_once", contestant, str(size)]
    try:
        said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=limit, check=True).stdout
    except subprocess.TimeoutExpired:
        return None
    return float(json.loads(said.splitlines()[-1])["seconds"])
