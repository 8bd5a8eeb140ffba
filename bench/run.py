"""Runs the benchmarks, prints one table, and writes the figures to `bench/results/figures.json`.

Usage: python bench/run.py [--only NAME] [--quick] [--json] [--profile]

All contestants of a job run in the same minutes on inputs of the same size, taking turns; the best time of each
counts. Figures of two machines, or of two days, are not comparable: the shares are. A goal that is missed is a
figure like any other, not a failure of the run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # run as a file, `bench` is no package yet

from bench import compile as compiling
from bench import (
    evaluate,
    graph_scale,
    lint_folder,
    lint_large,
    lint_second_run,
    migrate_folder,
    real_tools,
    run_chain,
    run_events,
    run_loop,
    run_many,
    run_service,
    run_startup,
    startup,
)
from bench.front_end_profile import profile
from bench.measurement import SECONDS, Row
from bench.workplace import ROOT, Workplace

JOBS: dict[str, Callable[[Workplace], list[Row]]] = {
    "startup": startup.measure,
    "lint-folder": lint_folder.measure,
    "lint-large": lint_large.measure,
    "lint-second-run": lint_second_run.measure,
    "migrate-folder": migrate_folder.measure,
    "graph-scale": graph_scale.measure,
    "compile": compiling.measure,
    "evaluate": evaluate.measure,
    "run-startup": run_startup.measure,
    "run-events": run_events.measure,
    "run-chain": run_chain.measure,
    "run-loop": run_loop.measure,
    "run-many": run_many.measure,
    "run-service": run_service.measure,
    "real-tools": real_tools.measure,
}
RESULTS = ROOT / "bench" / "results" / "figures.json"
_ROUNDS, _QUICK_ROUNDS = 3, 1
_HEADINGS = ("job", "ours", "beside", "theirs", "ours/theirs", "goal", "met", "")
_MET = {True: "yes", False: "NO", None: "-"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for."""
    asked = _parser().parse_args(arguments)
    rounds = _QUICK_ROUNDS if asked.quick else _ROUNDS
    rows: list[Row] = []
    for name in asked.only or JOBS:
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix="noetlc-bench-") as folder:
            rows += JOBS[name](Workplace(Path(folder), rounds, asked.quick))
    figures = _figures(rows, rounds)
    if not asked.quick and not asked.only:
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        RESULTS.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(figures, indent=2) if asked.json else _report(rows, figures))
    if asked.profile:
        with tempfile.TemporaryDirectory(prefix="noetlc-bench-") as folder:
            print(profile(Workplace(Path(folder), rounds, asked.quick)))
    return 0


def table(rows: Sequence[Row]) -> str:
    """Lay out rows in columns as wide as they need."""
    lines = [_HEADINGS, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADINGS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Measure speed beside peers.")
    parser.add_argument("--only", action="append", choices=JOBS, metavar="NAME", help=f"one of {', '.join(JOBS)}")
    parser.add_argument(
        "--quick", action="store_true", help="small inputs, one round: shows that it works, not whether goals are met"
    )
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--profile", action="store_true", help="also show where the time goes in one large file")
    return parser


def _cells(row: Row) -> tuple[str, ...]:
    theirs = "missing" if row.theirs is None else _quantity(row.theirs, row.unit)
    share = "-" if row.share is None else f"{row.share:.2f}"
    goal = row.goal.text if row.goal else "-"
    return (row.job, _quantity(row.ours, row.unit), row.other, theirs, share, goal, _MET[row.met], row.note)


def _quantity(value: float, unit: str) -> str:
    if unit != SECONDS:
        return f"{value:,.4g} {unit}"
    if value < 0.001:
        return f"{value * 1e6:.1f} µs"
    return f"{value * 1000:.1f} ms" if value < 1 else f"{value:.2f} s"


def _figures(rows: Sequence[Row], rounds: int) -> dict[str, Any]:
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    return {"machine": machine, "rounds": rounds, "rows": [_as_data(row) for row in rows]}


def _as_data(row: Row) -> dict[str, Any]:
    return {
        "job": row.job,
        "ours": row.ours,
        "beside": row.other,
        "theirs": row.theirs,
        "unit": row.unit,
        "share": row.share,
        "goal": row.goal.text if row.goal else None,
        "met": row.met,
        "note": row.note,
    }


def _report(rows: Sequence[Row], figures: dict[str, Any]) -> str:
    head = f"{figures['machine']}; best of {figures['rounds']} (start-up: four times as many)"
    judged = [row.met for row in rows if row.met is not None]
    return f"{head}\n\n{table(rows)}\n\n{sum(judged)} of {len(judged)} goals met"


if __name__ == "__main__":
    sys.exit(main())
