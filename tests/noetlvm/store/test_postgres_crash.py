"""A PostgreSQL that is killed under load: no acknowledged write is lost, and none is there in part."""

from __future__ import annotations

import threading
import time
from contextlib import closing

from noetlvm.conformance.databases import PostgresProcess
from noetlvm.store.interface import StoreError
from noetlvm.store.postgres import PostgresStore
from tests.noetlvm.store.records import append, events, execution
from tests.waiting import wait_until

NAMES = ("a", "b", "c")
EVENTS_OF_A_DECISION = 7
KILLS = 3


class Writer(threading.Thread):
    """Writes to all executions as fast as it can, from what the store says, whatever happens to the store."""

    def __init__(self, store: PostgresStore) -> None:
        super().__init__(daemon=True)
        self.store = store
        self.acknowledged = dict.fromkeys(NAMES, 0)
        self.failures = 0
        self.is_over = False

    def run(self) -> None:
        while not self.is_over:
            try:
                self.write()
            except StoreError:
                self.failures += 1
                time.sleep(0.02)  # between two tries

    def write(self) -> None:
        batch = []
        for name in NAMES:
            row = self.store.execution(name)
            known = row.seq if row else 0
            batch.append(append(execution(name), known, events(range(known + 1, known + EVENTS_OF_A_DECISION + 1))))
        conflicts = self.store.write(batch)
        for written in batch:
            if written.execution.execution_id not in conflicts:
                self.acknowledged[written.execution.execution_id] = written.execution.seq


def test_killing_the_database_under_load_loses_no_acknowledged_write() -> None:
    with (
        closing(PostgresProcess()) as server,
        closing(PostgresStore(server.address)) as first,
        closing(PostgresStore(server.address)) as second,
    ):
        writers = [Writer(first), Writer(second)]
        for writer in writers:
            writer.start()
        for _ in range(KILLS):
            reached = max(writer.acknowledged["a"] for writer in writers)
            enough = reached + 20 * EVENTS_OF_A_DECISION
            wait_until(lambda enough=enough: max(writer.acknowledged["a"] for writer in writers) >= enough)  # type: ignore[misc]
            server.kill()
            server.start()
        for writer in writers:
            writer.is_over = True
            writer.join(60)
            assert not writer.is_alive()
        assert all(writer.failures for writer in writers)
        for name in NAMES:
            seqs = [recorded.seq for recorded in first.events(name)]
            assert seqs == list(range(1, len(seqs) + 1))
            assert len(seqs) % EVENTS_OF_A_DECISION == 0
            assert len(seqs) >= max(writer.acknowledged[name] for writer in writers)
