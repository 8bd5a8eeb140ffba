"""Start-up: how long a process takes that has almost nothing to do, beside `python -c pass`.

Bytecode and parse tables are warm; cached lint results are not, so that the small file is really linted.
"""

from __future__ import annotations

import sys
from pathlib import Path

from bench.generate_playbooks import playbook
from bench.measurement import Contestant, Goal, Row, at_most, best_of
from bench.peers import PYTHON
from bench.workplace import Workplace, console_script

_SMALL_LINES = 40
_VERSION, _LINT = at_most(6), at_most(14)
_CALLS: tuple[tuple[str, tuple[str, ...], Goal], ...] = (
    ("--version", ("--version",), _VERSION),
    ("lint small.yaml", ("lint", "small.yaml"), _LINT),
    ("lint --no-cache small.yaml", ("lint", "--no-cache", "small.yaml"), _LINT),
    (
        "lint --select E,W --format json small.yaml",
        ("lint", "--select", "E,W", "--format", "json", "small.yaml"),
        _LINT,
    ),
)


def measure(workplace: Workplace) -> list[Row]:
    """Time each call, by the console script and by `python -m`."""
    (workplace.folder / "small.yaml").write_text(playbook(0, _SMALL_LINES), encoding="utf-8")
    goals = {}
    contestants = [_contestant(workplace, PYTHON.title, list(PYTHON.command))]
    for title, starter in _starters().items():
        for call, arguments, goal in _CALLS:
            name = f"{title} {call}"
            goals[name] = goal
            contestants.append(_contestant(workplace, name, [*starter, *arguments]))
    for contestant in contestants:
        contestant.run()
    workplace.require_results()
    times = best_of(contestants, workplace.rounds * 4)
    floor = times.pop(PYTHON.title)
    return [Row(name, seconds, PYTHON.title, floor, goals[name]) for name, seconds in times.items()]


def _starters() -> dict[str, list[str | Path]]:
    script = console_script()
    starters: dict[str, list[str | Path]] = {"noetlc": [script]} if script else {}
    return starters | {"python -m noetlc": [sys.executable, "-m", "noetlc"]}


def _contestant(workplace: Workplace, name: str, command: list[str | Path]) -> Contestant:
    return Contestant(name, lambda: workplace.run(command), workplace.forget_results)
