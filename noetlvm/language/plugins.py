"""Plugins: the entry points that installed packages declare for tool kinds and for keychain providers.

Importing `importlib.metadata` takes longer than linting a file, and most installations have no plugin. So the files in
which packages declare their entry points are searched first, as bytes.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_METADATA = (".dist-info", ".egg-info", ".egg")


@cache
def entry_points_of(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group; the same package twice on the path is one plugin."""
    if not _is_declared(group):
        return ()
    from importlib.metadata import entry_points

    return tuple({(entry.name, entry.value): entry for entry in entry_points(group=group)}.values())


def _is_declared(group: str) -> bool:
    """Return whether a package may declare the group: one does, or lies where only `importlib` can look."""
    if sum(hasattr(finder, "find_distributions") for finder in sys.meta_path) > 1:
        return True
    for folder in dict.fromkeys(sys.path):
        try:
            packages = [entry for entry in os.scandir(folder or os.curdir) if entry.name.endswith(_METADATA)]
        except NotADirectoryError:
            return True  # an archive
        except OSError:
            continue
        if any(entry.name.endswith(".egg") or _mentions(entry.path, group) for entry in packages):
            return True
    return False


def _mentions(package: str, group: str) -> bool:
    try:
        return group.encode() in Path(package, "entry_points.txt").read_bytes()
    except OSError:
        return False
