"""Lets machines do the same work in turns, each in a fresh process and a folder of its own, and keeps the best of each.

A contestant times itself, so that starting its process and its server costs it nothing here, and prints what it found
as one line of JSON, the last of its output.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from uuid import uuid4

from bench.measurement import Cost
from bench.workplace import Workplace
from noetlvm.bridge import compile_texts
from noetlvm.store.interface import Durability

Command: TypeAlias = list[str | Path]
OURS = "ours"
TURNS = 4
"""Of what takes only moments."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Something that can do the work, given an empty folder."""

    name: str
    command: Callable[[Path], Command]
    turns: int = 1
    """In a round. What takes only moments may have more of them: a busy machine then spoils fewer."""


def best_costs(workplace: Workplace, machines: Sequence[Machine]) -> dict[str, Cost]:
    """Let everyone have its turns, and return of each the one that took the least time."""
    turns: dict[str, list[Cost]] = {machine.name: [] for machine in machines}
    for turn in range(workplace.rounds * max(machine.turns for machine in machines)):
        for machine in machines:
            if turn < workplace.rounds * machine.turns:
                turns[machine.name].append(_cost(workplace, machine))
    return {name: min(costs) for name, costs in turns.items()}


def _cost(workplace: Workplace, machine: Machine) -> Cost:
    folder = workplace.folder / uuid4().hex
    folder.mkdir()
    said = workplace.run(machine.command(folder), folder)
    return Cost(**json.loads(said.splitlines()[-1]))


def ours(
    workplace: Workplace,
    playbook: str,
    executions: int = 1,
    durability: Durability = "full",
    name: str = OURS,
    turns: int = TURNS,
    *,
    is_warm: bool = False,
) -> Machine:
    """Return our machine, which runs a playbook so many times at once; `is_warm`: not for the first time."""
    bundle = workplace.folder / f"{uuid4().hex}.nbc"
    bundle.write_bytes(compile_texts([playbook]))
    options = (str(executions), durability, *(["--warm"] if is_warm else []))
    return Machine(name, lambda folder: [sys.executable, "-m", "bench.run_once", bundle, folder, *options], turns)


def bare_sqlite(commits: int, rows: int) -> Machine:
    """Return the floor: nothing but rows and commits with a sync."""
    grouped = "a commit with sync per row" if rows == 1 else f"{rows} rows a commit"
    name = f"sqlite {sqlite3.sqlite_version}, {grouped}"
    return Machine(
        name, lambda folder: [sys.executable, "-m", "bench.commit_once", folder, str(commits), str(rows)], TURNS
    )
