"""Results as files in one folder, each named by its key.

A file gets its name only once its bytes are synced, so a name always stands for a whole result.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator
from hashlib import sha256
from pathlib import Path

from noetlvm.results.interface import Collected, ResultDamaged, ResultMissing
from noetlvm.store.interface import Durability

_KEY = re.compile(r"[0-9a-f]{64}")
_UNFINISHED = ".part"


class FileResults:
    """Results in a folder, which is made when the first result comes."""

    def __init__(self, folder: Path, durability: Durability = "full") -> None:
        self.folder = folder
        self._syncs = durability == "full"

    def put(self, blobs: Iterable[tuple[str, bytes]]) -> None:
        wanted = list(blobs)
        if not wanted:
            return
        self._make_folder()
        for key, data in wanted:
            path = self._path(key)
            if not _has_size(path, len(data)):
                self._write(path, data)
        # Also for files that were there: whoever wrote them may have died before this.
        self._sync_folder(self.folder)

    def get(self, key: str) -> bytes:
        path = self._path(key)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise ResultMissing(f"there is no file {path}") from None
        if sha256(data).hexdigest() != key:
            raise ResultDamaged(f"{path} does not hold what was written to it: its checksum differs")
        return data

    def keys(self) -> Iterator[str]:
        return (path.name for path in self._files() if _KEY.fullmatch(path.name))

    def collect_garbage(self, referenced: Collection[str]) -> Collected:
        removed = freed = 0
        for path in self._files():
            is_orphan = bool(_KEY.fullmatch(path.name)) and path.name not in referenced
            if is_orphan or path.name.endswith(_UNFINISHED):
                freed += path.stat().st_size
                removed += 1
                path.unlink()
        return Collected(removed, freed)

    def _path(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise ResultMissing(f"{key!r} is no key of a result: a key has 64 hexadecimal digits")
        return self.folder / key

    def _files(self) -> Iterator[Path]:
        if self.folder.is_dir():
            yield from list(self.folder.iterdir())

    def _make_folder(self) -> None:
        if not self.folder.is_dir():
            self.folder.mkdir(parents=True, exist_ok=True)
            self._sync_folder(self.folder.parent)

    def _write(self, path: Path, data: bytes) -> None:
        unfinished = path.with_name(f"{path.name}.{os.getpid()}{_UNFINISHED}")
        with unfinished.open("wb") as file:
            file.write(data)
            file.flush()
            if self._syncs:
                os.fsync(file.fileno())
        unfinished.replace(path)

    def _sync_folder(self, folder: Path) -> None:
        """Make the names in a folder durable: syncing a file does not."""
        if not self._syncs:
            return
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _has_size(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except FileNotFoundError:
        return False
