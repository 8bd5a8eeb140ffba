"""The store beside bare SQLite: what durability costs at least, and what our tables and encoding add to it.

The floor is one small row and one commit with a sync, on the same disk, with the same settings. Ours writes what a
no-op step of one task leaves: five events and how the execution stands, in one commit. A loop's items share commits.

Usage: python -m bench.store_floor
"""

from __future__ import annotations

import sqlite3
import tempfile
from itertools import count, repeat
from pathlib import Path
from uuid import uuid4

from bench.measurement import Contestant, Goal, Row, at_most, best_of
from bench.workplace import Workplace
from noetlvm.data.event import Event, Recorded
from noetlvm.rounds.identity import new_ids
from noetlvm.store.interface import Append, Durability, Execution
from noetlvm.store.sqlite import SqliteStore

_STEPS, _QUICK_STEPS = 500, 50
_ITEMS, _QUICK_ITEMS = 20_000, 1_000
_ITEMS_OF_A_COMMIT = 250
_OUTCOME = {"status": "ok", "result": None, "meta": {"attempt": 1, "duration_ms": 0.02, "ts": 1_700_000_000.0}}
_TASK = Event("task.done", {"outcome": _OUTCOME, "do": "continue", "pc": 4}, 1, "", 1, "work", 1)
_STEP = (
    Event("step.scheduled", {"token": 17, "step": "step_17"}, 1),
    Event("step.started", {}, 1),
    _TASK,
    Event("step.done", {"result": None}, 1),
    Event("next.evaluated", {"arcs": [0]}, 1),
    Event("token.enqueued", {"token": 18, "step": "step_18", "args": {}}, 1),
)
_ITEM = (_TASK._replace(iteration="17"), Event("loop.iteration.done", {"result": None}, 1, "17"))
_EXECUTION = Execution("0190a6c0-8f7e-7cc3-98c4-dc0c0c07398f", "sha256:b", "chain", "bench/chain", "running", 0.0)


def measure(workplace: Workplace) -> list[Row]:
    """Time commits of steps and of loop items beside those of bare rows."""
    steps = _QUICK_STEPS if workplace.quick else _STEPS
    commits = (_QUICK_ITEMS if workplace.quick else _ITEMS) // _ITEMS_OF_A_COMMIT
    items = commits * _ITEMS_OF_A_COMMIT
    floor = _Bare(workplace.folder, f"sqlite {sqlite3.sqlite_version}, a commit with sync per row", steps, 1)
    group = _Bare(
        workplace.folder,
        f"sqlite {sqlite3.sqlite_version}, {2 * _ITEMS_OF_A_COMMIT} rows a commit",
        commits,
        2 * _ITEMS_OF_A_COMMIT,
    )
    chain = _Ours(workplace.folder, f"store: {steps} steps, a commit each", "full", _STEP, steps)
    relaxed = _Ours(workplace.folder, f"store: {steps} steps, relaxed durability", "relaxed", _STEP, steps)
    loop = _Ours(
        workplace.folder,
        f"store: {items} loop items, {_ITEMS_OF_A_COMMIT} a commit",
        "full",
        _ITEM * _ITEMS_OF_A_COMMIT,
        commits,
    )
    turns = (floor, chain, relaxed, group, loop)
    times = best_of([Contestant(turn.name, turn.run, turn.prepare) for turn in turns], workplace.rounds)
    size = _bytes_of_a_step(workplace.folder)
    return [
        _row(times, chain, floor, steps, at_most(1.4), f", {size:,.0f} B a step"),
        _row(times, relaxed, floor, steps),
        _row(times, loop, group, items),
    ]


def _row(
    times: dict[str, float], ours: _Ours, other: _Bare, count: int, goal: Goal | None = None, note: str = ""
) -> Row:
    seconds = times[ours.name]
    return Row(ours.name, seconds, other.name, times[other.name], goal, f"{count / seconds:,.0f}/s{note}")


class _Bare:
    """Rows of a few bytes, committed one by one or in groups, in a file made before the clock starts."""

    def __init__(self, folder: Path, name: str, commits: int, rows: int) -> None:
        self.name = name
        self._folder, self._commits, self._rows = folder, commits, [("done",)] * rows
        self._connection: sqlite3.Connection

    def prepare(self) -> None:
        self._connection = sqlite3.connect(_new_file(self._folder), isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("CREATE TABLE steps (number INTEGER PRIMARY KEY, said TEXT)")

    def run(self) -> None:
        connection = self._connection
        for _ in range(self._commits):
            connection.execute("BEGIN")
            connection.executemany("INSERT INTO steps (said) VALUES (?)", self._rows)
            connection.execute("COMMIT")
        connection.close()


class _Ours:
    """The same events again and again, committed by the store."""

    def __init__(
        self, folder: Path, name: str, durability: Durability, events: tuple[Event, ...], commits: int
    ) -> None:
        self.name = name
        self._folder, self._durability, self._events, self._commits = folder, durability, events, commits
        self.store: SqliteStore

    def prepare(self) -> None:
        self.store = SqliteStore(_new_file(self._folder), self._durability)

    def run(self) -> None:
        seq = 0
        for _ in range(self._commits):
            recorded = list(map(Recorded, count(seq + 1), new_ids(0.0, len(self._events)), repeat(0.0), self._events))
            self.store.write([Append(_EXECUTION._replace(seq=seq + len(recorded)), seq, recorded)])
            seq += len(recorded)
        self.store.close()


def _new_file(folder: Path) -> Path:
    """Return a path of its own for each turn: a grown file would be another measurement."""
    return folder / f"{uuid4()}.db"


def _bytes_of_a_step(folder: Path, steps: int = 2_000) -> float:
    """Return what a step adds to a file that holds many."""
    sizes: list[int] = []
    for commits in (1, steps):
        written = _Ours(folder, "size", "relaxed", _STEP, commits)
        written.prepare()
        written.run()
        sizes.append(written.store.path.stat().st_size)
    return (sizes[1] - sizes[0]) / (steps - 1)


def _main() -> None:
    with tempfile.TemporaryDirectory(prefix="noetlvm-bench-") as folder:
        for row in measure(Workplace(Path(folder), rounds=3)):
            share = "-" if row.share is None else f"{row.share:.2f}"
            print(f"{row.job}: {row.ours * 1000:,.0f} ms, {share} of {row.other}; {row.note}")


if __name__ == "__main__":
    _main()
