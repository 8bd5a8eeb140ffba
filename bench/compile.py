"""Compiling, and loading with verification, beside linting the same playbook of about a thousand steps.

And how large bundles are beside their YAML, for that playbook and two small ones, whose framing weighs more.
"""

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
_SMALL = {"1 kB": 40, "2 kB": 80}
"""Lines of playbooks of about these sizes."""
_STRIPPED, _WHOLE = Goal("half its size", 0.5), Goal("1.5 times its size", 1.5)


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
        Row(f"compile {steps:,} steps", best["compile"], _OTHER, best["lint"], _COMPILE),
        Row("load and verify what it made", load, _OTHER, best["lint"], _LOAD, "inside a process"),
        *_sizes(workplace, f"{steps:,} steps", file),
        *(row for name, lines in _SMALL.items() for row in _sizes(workplace, name, _small(workplace, lines))),
    ]


def _small(workplace: Workplace, lines: int) -> Path:
    file = workplace.folder / f"small_{lines}.yaml"
    file.write_text(playbook(1, lines), encoding="utf-8")
    return file


def _load_seconds(workplace: Workplace, bundle: Path) -> float:
    return float(workplace.run([sys.executable, "-m", "bench.load_once", bundle]))


def _sizes(workplace: Workplace, name: str, file: Path) -> list[Row]:
    whole, stripped = file.with_suffix(".nbc"), file.with_suffix(".stripped.nbc")
    workplace.run(noetlc("compile", "--quiet", file, "-o", whole))
    workplace.run(noetlc("strip", whole, "-o", stripped))
    theirs = file.stat().st_size / 1000
    return [
        Row(f"bundle of {name}, {how}", made.stat().st_size / 1000, "its YAML", theirs, goal, unit="kB")
        for how, made, goal in (("stripped", stripped, _STRIPPED), ("with its debug map", whole, _WHOLE))
    ]
