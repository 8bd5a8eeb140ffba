"""A baseline: findings that a project accepts for now. Later runs report only new ones.

A finding is identified by its file, its code, the label path of its position, and how many of these there are; never
by its line, so that edits elsewhere in the file do not bring it back.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from noetlc.finding import current_codes
from noetlc.report.located_finding import LocatedFinding, with_ordinals
from noetlc.settings import relative_path
from noetlvm.atomic_file import write_atomically
from noetlvm.command_line.process import CommandError
from noetlvm.record import Record

_VERSION = 1
Key = tuple[str, str, str]
"""Path relative to the baseline's folder, code, label path."""


class Baseline(Record):
    """How many findings of each key are accepted."""

    folder: str
    accepted: dict[Key, int]

    def new(self, rows: Iterable[LocatedFinding]) -> list[LocatedFinding]:
        return [row for row, ordinal in with_ordinals(rows) if ordinal > self.accepted.get(_key(row, self.folder), 0)]


def read_baseline(file: Path) -> Baseline:
    """Read a baseline file; anything that is not one stops the run."""
    try:
        data: Any = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        hint = " Write one with `--write-baseline`." if isinstance(error, FileNotFoundError) else ""
        raise CommandError(f"cannot read the baseline {file}: {error.strerror}.{hint}") from error
    except (ValueError, RecursionError) as error:
        raise CommandError(f"the baseline {file} is not JSON: {error}. {_AGAIN}") from error
    try:
        if data["version"] != _VERSION:
            raise CommandError(f"the baseline {file} has version {data['version']!r}, not {_VERSION}. {_AGAIN}")
        accepted = {
            (_text(e["path"]), current_codes(_text(e["code"]))[0], _text(e["label"])): _count(e["count"])
            for e in data["findings"]
        }
    except (KeyError, TypeError, ValueError) as error:
        raise CommandError(f"the baseline {file} is damaged: {type(error).__name__}: {error}. {_AGAIN}") from error
    return Baseline(_folder(file), accepted)


def write_baseline(file: Path, rows: Iterable[LocatedFinding], linted: Iterable[str]) -> int:
    """Record the current findings. Entries of other files that still exist stay in the baseline."""
    folder = _folder(file)
    checked = {relative_path(path, folder) for path in linted}
    accepted = Counter(_key(row, folder) for row in rows)
    count = accepted.total()
    if file.exists():
        earlier = read_baseline(file).accepted.items()
        accepted.update({key: n for key, n in earlier if key[0] not in checked and Path(folder, key[0]).exists()})
    findings = [
        {"path": p, "code": c, "label": label, "count": accepted[p, c, label]} for p, c, label in sorted(accepted)
    ]
    try:
        text = json.dumps({"version": _VERSION, "findings": findings}, indent=2) + "\n"
        write_atomically(str(file), text.encode())
    except OSError as error:
        raise CommandError(f"cannot write the baseline {file}: {error.strerror}") from error
    return count


_AGAIN = "Write it again with `--write-baseline` after removing it, or name another file."


def _key(row: LocatedFinding, folder: str) -> Key:
    return relative_path(row.path, folder), row.code, row.label


def _folder(file: Path) -> str:
    return str(file.absolute().parent)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value


def _count(value: Any) -> int:
    if not isinstance(value, int) or value < 1:
        raise ValueError(f"{value!r} is not a count")
    return value
