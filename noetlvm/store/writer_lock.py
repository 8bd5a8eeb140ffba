"""Lets one process write to a database: a lock on the database file itself, which the kernel drops with the process.

SQLite would let two processes take turns. Two engines over the same executions would each run every task.

The lock belongs to the inode, so it holds whatever path leads there, and no other file can be removed to get around it.
SQLite's own locks vanish when the process closes any descriptor of the file (POSIX says so), therefore a descriptor of
ours stays open as long as this process has the database open at all.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from noetlvm.store.interface import LockedError, StoreError

PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
"""Databases hold payloads and results: only their owner may read them."""

_PATIENCE_SECONDS = 5.0
"""How long to wait for a lock whose holder is dead. It survives in a child that the holder had just forked, until that
starts its own program."""
_POLL_SECONDS = 0.01

Inode: TypeAlias = tuple[int, int]

_OPEN: dict[Inode, int] = {}
"""How many connections and locks of this process use a file."""
_DESCRIPTORS: dict[Inode, int] = {}
_LOCKED: set[Inode] = set()
_REGISTRY = threading.Lock()


def use(path: Path) -> Inode:
    """Note that this process opens a database file, until `leave`."""
    with _REGISTRY:
        inode = _inode(path.stat())
        _OPEN[inode] = _OPEN.get(inode, 0) + 1
    return inode


def leave(inode: Inode) -> None:
    """Note that one user of a database file is done; with the last one its descriptor is closed."""
    with _REGISTRY:
        _OPEN[inode] -= 1
        if not _OPEN[inode]:
            del _OPEN[inode]
            if inode in _DESCRIPTORS:
                os.close(_DESCRIPTORS.pop(inode))


def is_locked(database: Path) -> bool:
    """Return whether a process has a database open for writing; one that cannot be examined may have."""
    try:
        inode = use(database)
    except OSError:
        return False
    try:
        with _REGISTRY:
            if inode in _LOCKED:
                return True
            if inode not in _DESCRIPTORS:
                _DESCRIPTORS[inode] = os.open(database, os.O_RDONLY)
            fcntl.flock(_DESCRIPTORS[inode], fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(_DESCRIPTORS[inode], fcntl.LOCK_UN)
    except OSError:
        return True
    finally:
        leave(inode)
    return False


class WriterLock:
    """Held from its making until `release`. Makes the database file, empty, where there is none."""

    def __init__(self, database: Path) -> None:
        # SQLite puts its log beside the file that a symbolic link leads to.
        self._path = database.resolve()
        self._name = str(self._path)
        self._holder = Path(f"{self._path}.lock")
        """Names the holder of the lock, for the error message."""
        self._inode, descriptor = self._opened()
        give_up = time.monotonic() + _PATIENCE_SECONDS
        while not self._is_taken(descriptor):
            holder = self._read_holder()
            if _may_live(holder) or time.monotonic() > give_up:
                leave(self._inode)
                raise LockedError(
                    f"{database} is in use by process {holder or 'of unknown number'}; wait for it, "
                    "or give another database (list, show, events, pause and cancel work meanwhile)"
                )
            time.sleep(_POLL_SECONDS)
        self._is_held = True
        try:
            self.check()
            links = self._path.stat().st_nlink
            if links > 1:
                raise StoreError(
                    f"{self._path} has {links} hard links, and SQLite would write a separate log for each name: "
                    "remove the other links, or copy the file"
                )
            self._write_holder()
        except (OSError, StoreError):
            self.release()
            raise

    def check(self) -> None:
        """Raise StoreError if the path no longer leads to the locked file: what is written would be lost."""
        try:
            found = os.stat(self._name)  # noqa: PTH116 - before each commit, and Path.stat takes three times as long
        except FileNotFoundError:
            raise StoreError(f"{self._path} was removed while it was in use; the run stops") from None
        if _inode(found) != self._inode:
            raise StoreError(f"{self._path} was replaced while it was in use; the run stops")

    def release(self) -> None:
        """Release the lock. Idempotent."""
        if not self._is_held:
            return
        self._is_held = False
        with _REGISTRY:
            _LOCKED.discard(self._inode)
            fcntl.flock(_DESCRIPTORS[self._inode], fcntl.LOCK_UN)
        leave(self._inode)

    def _opened(self) -> tuple[Inode, int]:
        """Return the file's inode, in use by us, and the one descriptor that this process has of it."""
        with _REGISTRY:
            inode = _inode(self._path.stat()) if self._path.exists() else (0, 0)
            if inode not in _DESCRIPTORS:
                descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
                inode = _inode(os.fstat(descriptor))
                _DESCRIPTORS[inode] = descriptor
            _OPEN[inode] = _OPEN.get(inode, 0) + 1
            return inode, _DESCRIPTORS[inode]

    def _is_taken(self, descriptor: int) -> bool:
        with _REGISTRY:
            if self._inode in _LOCKED:
                return False
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            _LOCKED.add(self._inode)
        return True

    def _read_holder(self) -> str:
        try:
            return self._holder.read_bytes()[:32].decode("ascii", "replace").strip()
        except OSError:
            return ""

    def _write_holder(self) -> None:
        with suppress(OSError):  # it only makes a message better
            descriptor = os.open(self._holder, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, PRIVATE_FILE)
            try:
                os.write(descriptor, f"{os.getpid()}\n".encode())
            finally:
                os.close(descriptor)


def _inode(found: os.stat_result) -> Inode:
    return found.st_dev, found.st_ino


def _may_live(holder: str) -> bool:
    """Return whether a process may still exist; so may one that cannot be examined."""
    try:
        os.kill(int(holder), 0)
    except ProcessLookupError:
        return False
    except (ValueError, OverflowError, PermissionError):
        return True
    return True
