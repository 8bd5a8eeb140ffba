"""Lets one process write to a database: a lock on a file beside it, which the kernel gives back when the process dies.

SQLite would let two processes take turns. Two engines over the same executions would each run every task.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from noetlvm.store.interface import LockedError


class WriterLock:
    """Held from its making until `release`."""

    def __init__(self, database: Path) -> None:
        # The file stays when the lock is given back: removing it would let two processes lock two files of one name.
        self._file = Path(f"{database}.lock").open("a+", encoding="ascii", errors="replace")  # noqa: SIM115 - until release
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.seek(0)
            holder = self._file.read(32).strip() or "of unknown number"
            self._file.close()
            raise LockedError(
                f"{database} is in use by process {holder}; wait for it, or give another --db "
                "(list, show, events, pause and cancel work meanwhile)"
            ) from None
        self._file.truncate(0)
        self._file.write(f"{os.getpid()}\n")
        self._file.flush()

    def release(self) -> None:
        """Give the lock back; again, it is nothing."""
        self._file.close()
