"""Writes to a database until it is killed, and says what is durable: one line `EXECUTION SEQ` after each commit.

Usage: python -m tests.noetlvm.store.crashing_writer DATABASE

It goes on with the executions that it finds, so that each life of it builds on the ruins of the last.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

from noetlvm.store.interface import Snapshot
from noetlvm.store.sqlite import SqliteStore
from tests.noetlvm.store.records import events, execution

EXECUTIONS = ("a", "b", "c")
EVENTS_OF_A_DECISION = 7


def main(database: Path) -> None:
    store = SqliteStore(database)
    heads = dict.fromkeys(EXECUTIONS, 0) | {found.execution_id: found.seq for found in store.unfinished()}
    for turn in itertools.count():
        for name in EXECUTIONS[: 1 + turn % len(EXECUTIONS)]:
            last = heads[name] + EVENTS_OF_A_DECISION
            store.append(name, heads[name], events(range(heads[name] + 1, last + 1)), execution(name))
            store.put_snapshot(name, Snapshot("sha256:b", last, {"at": last}))
            heads[name] = last
        store.commit()
        print("".join(f"{name} {seq}\n" for name, seq in heads.items()), end="", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
