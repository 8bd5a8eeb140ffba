"""The values of `--keychain`: `env`, `file:PATH`, `cmd:COMMAND`, a plugin's `PROVIDER:…`, each also as `NAME=…`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from noetlvm.keychain.command import NAME

_ENTRY = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_PROVIDER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


class KeychainOptionError(ValueError):
    """An option that cannot be read."""


class ProviderChoice(NamedTuple):
    provider: str
    settings: dict[str, Any]


class Options(NamedTuple):
    """The sources that the options name."""

    everywhere: tuple[ProviderChoice, ...]
    """Sources for every entry, in this order."""
    by_name: dict[str, ProviderChoice]


def read_options(texts: Iterable[str]) -> Options:
    """Read the options of a command line. Raises KeychainOptionError."""
    everywhere: list[ProviderChoice] = []
    by_name: dict[str, ProviderChoice] = {}
    for text in texts:
        entry = _ENTRY.fullmatch(text)
        if entry is None:
            everywhere.append(_place(text, for_one=False))
        elif entry[1] in by_name:
            raise KeychainOptionError(f"--keychain names two sources of `{entry[1]}`")
        else:
            by_name[entry[1]] = _place(entry[2], for_one=True)
    return Options(tuple(everywhere), by_name)


def _place(text: str, *, for_one: bool) -> ProviderChoice:
    word, colon, rest = text.partition(":")
    if not _PROVIDER.fullmatch(word):
        # Not the text itself: it may be a secret, written here by mistake.
        raise KeychainOptionError("--keychain takes env, file:PATH, cmd:COMMAND, or NAME= and one of these")
    provider, read = _FORMS.get(word, (word, _argument))
    return ProviderChoice(provider, read(rest, for_one) if colon else {})


def _variable(text: str, for_one: bool) -> dict[str, Any]:
    if not for_one:
        raise KeychainOptionError("--keychain env: a variable belongs to one entry: write NAME=env:VARIABLE")
    return {"variable": text}


def _path(text: str, for_one: bool) -> dict[str, Any]:
    path, hash, key = text.partition("#")
    if hash and not for_one:
        raise KeychainOptionError("--keychain file: a key belongs to one entry: write NAME=file:PATH#KEY")
    return {"path": path, "key": key} if hash else {"path": path}


def _command(text: str, for_one: bool) -> dict[str, Any]:
    try:
        argv = shlex.split(text)
    except ValueError:
        raise KeychainOptionError("--keychain cmd: a quote is not closed") from None
    if not argv:
        raise KeychainOptionError("--keychain cmd: there is no command")
    if not for_one and not any(NAME in part for part in argv):
        raise KeychainOptionError(
            f"--keychain cmd: write {NAME} in place of the entry's name, as in cmd:pass show {NAME}"
        )
    return {"command": argv}


def _argument(text: str, for_one: bool) -> dict[str, Any]:
    return {"argument": text}


_FORMS: dict[str, tuple[str, Callable[[str, bool], dict[str, Any]]]] = {
    "env": ("environment", _variable),
    "environment": ("environment", _variable),
    "file": ("file", _path),
    "cmd": ("command", _command),
    "command": ("command", _command),
}
