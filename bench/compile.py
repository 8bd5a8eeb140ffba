"""Compiling, and loading with verification, beside linting the same playbook of about a thousand steps."""

from __future__ import annotations

import sys
from pathlib import Path

from bench.generate_playbooks import playbook
from bench.measurement import Contestant, Goal, Row, at_most, best_of
from bench.workplace import Workplace, noetlc

_LINES, _QUICK_LINES = 32_000, 1_500
"""About 1,000 steps, and about 50."""
_COMPILE = at_most(2)
_LOAD = Goal("a tenth of its time", 0.1)
_OTHER = "lint of the same file"


def measure(workplace: Workplace) -> list[Row]:
    """Time lint and compile as a user would, in turns, and loading inside a process."""
    file = workplace.folder / "large.yaml"
    file.write_text(playbook(1, _QUICK_LINES if workplace.quick else _LINES), encoding="utf-8")
    bundle = file.with_suffix(".nbc")
    lint = Contestant("lint", lambda: workplace.run(noetlc("lint", "--no-cache", file)))
    compile = Contestant("compile", lambda: workplace.run(noetlc("compile", "--quiet", file)))
    lint.run()  # builds the parse tables, which is nobody's time
    best = best_of([lint, compile], workplace.rounds)
    load = min(_load_seconds(workplace, bundle) for _ in range(workplace.rounds))
    steps = file.read_text(encoding="utf-8").count("\n  - step: ")
    return [
        Row(
            f"compile {steps:,} steps", best["compile"], _OTHER, best["lint"], _COMPILE, _sizes(workplace, file, bundle)
        ),
        Row("load and verify what it made", load, _OTHER, best["lint"], _LOAD, "inside a process"),
    ]


def _load_seconds(workplace: Workplace, bundle: Path) -> float:
    return float(workplace.run([sys.executable, "-m", "bench.load_once", bundle]))


def _sizes(workplace: Workplace, file: Path, bundle: Path) -> str:
    stripped = bundle.with_name("stripped.nbc")
    workplace.run(noetlc("strip", bundle, "-o", stripped))
    shares = [made.stat().st_size / file.stat().st_size for made in (bundle, stripped)]
    return f"bundle {shares[0]:.2f} of the YAML's size, stripped {shares[1]:.2f}"
