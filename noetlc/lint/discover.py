"""Expands files, folders and globs of the command line into an ordered list of files.

Only names count here; whether a YAML file found in a folder is a playbook is decided when it is read.
"""

# Paths stay text here: as the user wrote them, and cheap when there are thousands.
# ruff: noqa: PTH100, PTH112, PTH113, PTH118, PTH207
from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from noetlc.files import matches
from noetlc.settings import relative_path

_YAML = (".yaml", ".yml")
_SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})
_WILDCARDS = frozenset("*?[")


class Target(NamedTuple):
    """A file to lint. A named one is linted whatever it contains; one found in a folder must be a playbook."""

    path: str
    named: bool


class Found(NamedTuple):
    """The files to lint, in order, and a problem for each path that leads to none."""

    targets: tuple[Target, ...]
    problems: tuple[str, ...]


def discover(paths: Iterable[str], exclude: tuple[str, ...], folder: str) -> Found:
    """Expand paths. `exclude` patterns are relative to `folder` and do not apply to files named outright."""
    targets: dict[str, Target] = {}
    problems = []
    for path in paths:
        expanded = list(_expand(path, exclude, folder))
        if not expanded and not os.path.isdir(path):
            problems.append(f"{path}: no {'file matches' if _WILDCARDS.intersection(path) else 'such file or folder'}")
        for target in expanded:
            known = targets.get(os.path.abspath(target.path))
            if known is None or (target.named and not known.named):
                targets[os.path.abspath(target.path)] = target
    return Found(tuple(targets.values()), tuple(problems))


def _expand(path: str, exclude: tuple[str, ...], folder: str) -> Iterator[Target]:
    if os.path.isdir(path):
        yield from _below(path, exclude, folder)
    elif os.path.lexists(path):
        yield Target(os.path.normpath(path), named=True)
    elif _WILDCARDS.intersection(path):
        yield from _matching(path, exclude, folder)


def _below(top: str, exclude: tuple[str, ...], folder: str) -> Iterator[Target]:
    for parent, folders, names in os.walk(top):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and name not in _SKIPPED_FOLDERS
            and not _excluded(os.path.join(parent, name), exclude, folder)
        )
        for name in sorted(names):
            path = os.path.normpath(os.path.join(parent, name))
            if name.endswith(_YAML) and os.path.isfile(path) and not _excluded(path, exclude, folder):
                yield Target(path, named=False)


def _matching(pattern: str, exclude: tuple[str, ...], folder: str) -> Iterator[Target]:
    import glob  # the shell usually expands globs itself

    for path in sorted(glob.iglob(pattern, recursive=True)):
        if os.path.isfile(path) and not _excluded(path, exclude, folder):
            yield Target(os.path.normpath(path), named=False)


def _excluded(path: str, exclude: tuple[str, ...], folder: str) -> bool:
    return bool(exclude) and any(matches(pattern, relative_path(path, folder)) for pattern in exclude)
