"""Commits small rows to bare SQLite in a fresh process and prints the seconds as JSON: what durability costs at least.

The settings are those of our store: a write-ahead log and `synchronous=FULL`.

Usage: python -m bench.commit_once FOLDER COMMITS ROWS
"""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from pathlib import Path

from bench.measurement import Cost


def commit_once(folder: Path, commits: int, rows: int) -> Cost:
    """Commit so many times so many rows, in a file made before the clock starts."""
    connection = sqlite3.connect(folder / "floor.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE steps (number INTEGER PRIMARY KEY, said TEXT)")
    said = [("done",)] * rows
    began, cpu = time.perf_counter(), time.process_time()
    for _ in range(commits):
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO steps (said) VALUES (?)", said)
        connection.execute("COMMIT")
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    connection.close()
    return Cost(seconds, cpu, commits)


if __name__ == "__main__":
    print(json.dumps(commit_once(Path(sys.argv[1]), *map(int, sys.argv[2:4]))._asdict()))
