"""Results of earlier runs, so that an unchanged file is not checked again.

A result depends on the file's content, on the cache's key (the compiler's own files, installed packages, limits) and on
the files of loaded plugins; time stamps only save reading the file. Findings are stored before configuration and
baseline are applied, so one result serves every command line. The cache is one JSON file for each working folder,
replaced atomically: of two concurrent runs the later wins, and a damaged file counts as no cache.
"""

# Paths stay text here: as the user wrote them, and cheap when there are thousands.
# ruff: noqa: PTH100, PTH109, PTH110, PTH116
from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from noetlc.files import read_bounded
from noetlc.report.located_finding import LocatedFinding
from noetlc.settings import Settings
from noetlc.syntax.lalr import cache_folder
from noetlvm.atomic_file import write_atomically

_FORMAT = 1
_FRESH_NS = 2_000_000_000
"""A file changed this recently may change again within one tick of its time stamp, so the stamp proves nothing."""
_ROOT = Path(__file__).resolve().parent.parent.parent
_OWN_FOLDERS = ("noetlc", "noetlvm", "grammar")
_OWN_FILES = (".py", ".lark", ".json")
Stamp = tuple[int, int, int]
"""Modification time, change time and size."""


class Result(NamedTuple):
    """Whether a file looks like a playbook and, if it was checked, its findings."""

    digest: str
    is_playbook: bool
    rows: tuple[LocatedFinding, ...] | None
    plugins: tuple[str, ...] = ()
    """Files of the plugins that it may depend on."""


class Cache:
    """The results of one working folder, in memory between `open_cache` and `save`."""

    def __init__(self, file: Path | None, key: str, data: dict[str, Any]) -> None:
        self._file = file
        self._key = key
        self._files: dict[str, list[Any]] = data.get("files", {})
        self._rules: dict[str, str] = data.get("rules", {})
        self._plugins: dict[str, Stamp | None] = data.get("plugins", {})
        self._changed = False

    def recall(self, path: str, *, named: bool, limit: int) -> Result | None:
        """Return the result for a file that has not changed, or nothing."""
        entry = self._files.get(os.path.abspath(path))
        if entry is None:
            return None
        try:
            stamp, digest, is_playbook, rows = entry
            if not self._unchanged(path, tuple(stamp), digest, limit):
                return None
            if not named and not is_playbook:
                return Result(digest, is_playbook, None)
            if rows is None:
                return None
            return Result(digest, is_playbook, tuple(LocatedFinding.from_json(row, path) for row in rows))
        except (KeyError, TypeError, ValueError):  # the cache file was edited: check again
            return None

    def store(self, path: str, stamp: Stamp | None, result: Result) -> None:
        """Store a result; `stamp` was taken before the file was read."""
        rows = None if result.rows is None else [row.to_json() for row in result.rows]
        key = os.path.abspath(path)
        self._files[key] = [_settled(stamp), result.digest, result.is_playbook, rows]
        self._plugins |= {file: stamp_of(file) for file in result.plugins if file not in self._plugins}
        self._changed = True

    def rule_names(self) -> dict[str, str]:
        """Return the name of each rule by its code; the rules are imported only if the cache has none."""
        if not self._rules:
            from noetlc.rules.catalogue import all_rules

            self._rules = {rule.code: rule.name for rule in all_rules()}
            self._changed = True
        return self._rules

    def save(self) -> None:
        """Write new results. A cache that cannot be written is not an error: the next run takes longer."""
        if self._file is None or not self._changed:
            return
        files = {path: entry for path, entry in self._files.items() if os.path.exists(path)}
        data = {"key": self._key, "rules": self._rules, "plugins": self._plugins, "files": files}
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(str(self._file), json.dumps(data, separators=(",", ":")).encode())
        except OSError:
            return

    def _unchanged(self, path: str, stamp: Stamp, digest: str, limit: int) -> bool:
        now = stamp_of(path)
        if now is None:
            return False
        if now == stamp:
            return True
        try:
            same = content_digest(read_bounded(path, limit)) == digest
        except OSError:
            return False
        if same:
            self._files[os.path.abspath(path)][0] = _settled(now)
            self._changed = True
        return same


def open_cache(settings: Settings) -> Cache:
    key = _key(settings)
    scope = hashlib.sha256(os.getcwdb()).hexdigest()[:16]
    file = cache_folder() / f"lint-{scope}.json"
    try:
        data = json.loads(file.read_bytes())
        usable = data["key"] == key and isinstance(data["files"], dict) and isinstance(data["rules"], dict)
        usable &= all(stamp == list(stamp_of(file) or ()) for file, stamp in data["plugins"].items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):  # absent or damaged: start empty
        usable = False
    return Cache(file, key, data if usable else {})


def no_cache() -> Cache:
    """Return a cache that starts empty and is never written."""
    return Cache(None, "", {})


def stamp_of(path: str) -> Stamp | None:
    """Return the file's time stamps and size, by which an unchanged file is recognised without reading it."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size


def content_digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _settled(stamp: Stamp | None) -> Stamp:
    if stamp is None or max(stamp[0], stamp[1]) > time.time_ns() - _FRESH_NS:
        return (0, 0, 0)
    return stamp


def _key(settings: Settings) -> str:
    parts = [str(_FORMAT), sys.version, settings.identity]
    for folder in _OWN_FOLDERS:
        parts += _stamps_below(str(_ROOT / folder))
    for folder in sys.path:  # a tool kind that is installed or removed changes the folder it is installed in
        if folder and folder != os.getcwd():
            parts.append(f"{folder} {stamp_of(folder)}")
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def _stamps_below(folder: str) -> list[str]:
    stamps: list[str] = []
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:  # an installed package has no grammar folder beside it
        return stamps
    for entry in entries:
        if entry.is_dir():
            stamps += _stamps_below(entry.path) if entry.name != "__pycache__" else []
        elif entry.name.endswith(_OWN_FILES):
            status = entry.stat()
            stamps.append(f"{entry.path} {status.st_mtime_ns} {status.st_size}")
    return stamps
