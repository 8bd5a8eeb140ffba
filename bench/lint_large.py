"""One file of 20,000 lines beside yamllint, and whether the time for 1,000 lines stays the same from 100 lines on."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from bench.generate_playbooks import playbook
from bench.measurement import Contestant, Row, at_most, best_of, faster
from bench.peers import yamllint
from bench.workplace import Workplace, noetlc

_SIZES, _QUICK_SIZES = (100, 1_000, 10_000, 20_000), (100, 1_000, 2_000)
_LINEAR = at_most(1.2)
"""What 1,000 lines of a longer file may cost, beside 1,000 lines of the shortest."""
_PATIENCE = 3
"""How many times as often the sizes take turns: a short file is checked in milliseconds, which are easily disturbed."""
_OURS = "noetlc"


def measure(workplace: Workplace) -> list[Row]:
    """Time the largest file as a user would, and every size inside a process."""
    files = large_files(workplace)
    return [_beside_yamllint(workplace, *list(files.items())[-1]), *_linearity(workplace, files)]


def large_files(workplace: Workplace) -> dict[int, Path]:
    """Write one file of each size, smallest first."""
    files = {lines: workplace.folder / f"large_{lines}.yaml" for lines in sizes(workplace)}
    for lines, file in files.items():
        file.write_text(playbook(1, lines), encoding="utf-8")
    return files


def sizes(workplace: Workplace) -> tuple[int, ...]:
    """Return the lengths of the files, in lines."""
    return _QUICK_SIZES if workplace.quick else _SIZES


def checked_seconds(workplace: Workplace, file: Path, *options: str) -> dict[str, float]:
    """Check a file in a fresh process and return the seconds of processor time of each stage."""
    said = workplace.run([sys.executable, "-m", "bench.check_once", str(file), *options])
    seconds: dict[str, float] = json.loads(said)
    return seconds


def _beside_yamllint(workplace: Workplace, lines: int, file: Path) -> Row:
    job, goal, peer = f"lint one file of {lines:,} lines", faster(3), yamllint()
    ours = Contestant(_OURS, lambda: workplace.run(noetlc("lint", file)), workplace.forget_results)
    ours.run()
    workplace.require_results()
    if peer is None:
        return Row(job, best_of([ours], workplace.rounds)[_OURS], "yamllint", None, goal)
    theirs = Contestant(peer.title, lambda: workplace.run(peer.on(file), codes=peer.codes))
    times = best_of([ours, theirs], workplace.rounds)
    return Row(job, times[_OURS], peer.title, times[peer.title], goal)


def _linearity(workplace: Workplace, files: dict[int, Path]) -> list[Row]:
    cost = dict.fromkeys(files, float("inf"))
    for _ in range(workplace.rounds * _PATIENCE):
        for lines, file in files.items():
            cost[lines] = min(cost[lines], _cost(workplace, file))
    shortest = min(files)
    note = f"processor time inside a process, start-up not counted; best of {workplace.rounds * _PATIENCE}"
    return [
        Row(
            f"1,000 lines of a file of {lines:,}",
            seconds,
            f"of a file of {shortest:,} lines",
            cost[shortest],
            _LINEAR,
            note,
        )
        for lines, seconds in cost.items()
        if lines != shortest
    ]


def _cost(workplace: Workplace, file: Path) -> float:
    """Return the seconds for 1,000 lines of a file."""
    lines = file.read_text(encoding="utf-8").count("\n")
    return sum(checked_seconds(workplace, file).values()) / lines * 1_000
