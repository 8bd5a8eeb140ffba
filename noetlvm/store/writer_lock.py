"""Lets one process write to a database: a lock on a file beside it, which the kernel gives back when the process dies.

SQLite would let two processes take turns. Two engines over the same executions would each run every task.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from noetlvm.store.interface import LockedError

_PATIENCE_SECONDS = 5.0
"""How long to wait for a lock whose holder is dead. It lives on in a child that the holder had just forked, until that
begins its own program."""
_POLL_SECONDS = 0.01


class WriterLock:
    """Held from its making until `release`."""

    def __init__(self, database: Path) -> None:
        # The file stays when the lock is given back: removing it would let two processes lock two files of one name.
        self._file = Path(f"{database}.lock").open("a+", encoding="ascii", errors="replace")  # noqa: SIM115 - until release
        give_up = time.monotonic() + _PATIENCE_SECONDS
        while not self._take():
            holder = self._holder()
            if _may_live(holder) or time.monotonic() > give_up:
                self._file.close()
                raise LockedError(
                    f"{database} is in use by process {holder or 'of unknown number'}; wait for it, "
                    "or give another --db (list, show, events, pause and cancel work meanwhile)"
                )
            time.sleep(_POLL_SECONDS)
        self._file.truncate(0)
        self._file.write(f"{os.getpid()}\n")
        self._file.flush()

    def release(self) -> None:
        """Give the lock back; again, it is nothing."""
        self._file.close()

    def _take(self) -> bool:
        """Try to have it, and tell whether that went well."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _holder(self) -> str:
        self._file.seek(0)
        return self._file.read(32).strip()


def _may_live(holder: str) -> bool:
    """Tell whether a process may still be there; one that cannot be asked may."""
    try:
        os.kill(int(holder), 0)
    except ProcessLookupError:
        return False
    except (ValueError, OverflowError, PermissionError):
        return True
    return True
