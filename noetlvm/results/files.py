"""Results as files in one folder, each named by its key.

A file gets its name only once its bytes are synced, so a name always stands for a whole result.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from math import inf
from pathlib import Path
from typing import Self

from noetlvm.atomic_file import write_atomically
from noetlvm.results.interface import Collected, ResultMissingError, checked, is_key, require_key
from noetlvm.store.interface import Durability

_UNFINISHED = ".part"
_PRIVATE_FILE, _PRIVATE_FOLDER = 0o600, 0o700
"""Results hold what tools returned: only their owner may read them."""


class FileResults:
    """Results in a folder, which the first put creates."""

    def __init__(self, folder: Path, durability: Durability = "full") -> None:
        self.folder = folder
        self._syncs = durability == "full"

    @classmethod
    def of_database(cls, path: Path, durability: Durability = "full") -> Self:
        return cls(path.with_name(f"{path.name}.results"), durability)

    def put(self, blobs: Iterable[tuple[str, bytes]]) -> None:
        wanted = list(blobs)
        if not wanted:
            return
        self._make_folder()
        for key, data in wanted:
            path = self._path(key)
            if not _is_renewed(path, len(data)):
                self._write(path, data)
        # Also for files that exist: their writer may have crashed before it synced the folder.
        self._sync_folder(self.folder)

    def get(self, key: str) -> bytes:
        path = self._path(key)
        try:
            return checked(key, path.read_bytes(), str(path))
        except FileNotFoundError:
            raise ResultMissingError(f"there is no file {path}") from None

    def keys(self) -> Iterator[str]:
        return (path.name for path in self._files() if is_key(path.name))

    def collect_garbage(self, referenced: Collection[str], before: float = inf) -> Collected:
        removed = freed = 0
        for path in self._files():
            is_orphan = is_key(path.name) and path.name not in referenced
            if not (is_orphan or path.name.endswith(_UNFINISHED)):
                continue
            found = path.stat()
            if found.st_mtime < before:
                freed += found.st_size
                removed += 1
                path.unlink()
        return Collected(removed, freed)

    def _path(self, key: str) -> Path:
        return self.folder / require_key(key)

    def _files(self) -> Iterator[Path]:
        if self.folder.is_dir():
            yield from list(self.folder.iterdir())

    def _make_folder(self) -> None:
        if not self.folder.is_dir():
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            self.folder.mkdir(_PRIVATE_FOLDER, exist_ok=True)
            self._sync_folder(self.folder.parent)

    def _write(self, path: Path, data: bytes) -> None:
        write_atomically(path, data, mode=_PRIVATE_FILE, ending=_UNFINISHED, syncs=self._syncs)

    def _sync_folder(self, folder: Path) -> None:
        """Make the names in a folder durable: syncing a file does not."""
        if not self._syncs:
            return
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _is_renewed(path: Path, size: int) -> bool:
    """Return whether a file of this size exists; it then counts as put now."""
    try:
        if path.stat().st_size != size:
            return False
        os.utime(path)
    except FileNotFoundError:
        return False
    return True
