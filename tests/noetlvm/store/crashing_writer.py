"""Writes to a database until it is killed, and prints what is durable: one line `EXECUTION SEQ` after each write.

Usage: python -m tests.noetlvm.store.crashing_writer DATABASE

It continues the executions that it finds, so that each life of it builds on the ruins of the last.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

from noetlvm.store.interface import Snapshot
from noetlvm.store.sqlite import SqliteStore
from tests.noetlvm.store.records import append, events, execution

EXECUTIONS = ("a", "b", "c")
EVENTS_OF_A_DECISION = 7


def main(database: Path) -> None:
    store = SqliteStore(database)
    heads = dict.fromkeys(EXECUTIONS, 0) | {found.execution_id: found.seq for found in store.unfinished()}
    for turn in itertools.count():
        batch = []
        for name in EXECUTIONS[: 1 + turn % len(EXECUTIONS)]:
            known, last = heads[name], heads[name] + EVENTS_OF_A_DECISION
            snapshot = Snapshot("sha256:b", last, {"at": last})
            batch.append(append(execution(name), known, events(range(known + 1, last + 1)), snapshot=snapshot))
            heads[name] = last
        assert not store.write(batch)
        print("".join(f"{name} {seq}\n" for name, seq in heads.items()), end="", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
