"""`file`: secrets in a YAML, JSON or dotenv file. Every value is text: a password `0123` is not the number 83.

Errors name file and line, and never quote the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from noetlvm.keychain.source import Environment, ProviderError, SecretSource, text_setting

MAX_BYTES = 1024 * 1024

_ASSIGNMENT = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)\s*=\s*(.*)")
_QUOTED = re.compile(r"""'([^']*)'\s*(?:#.*)?|"((?:[^"\\]|\\.)*)"\s*(?:#.*)?""")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


class Documents:
    """A mapping by name, as deep as it may be: `tenants.acme` and `tenants/acme` lead to `acme` in `tenants`."""

    def __init__(self, content: Mapping[str, Any], path: Path, key: str | None = None) -> None:
        self._content = content
        self._path = path
        self._key = key

    def find(self, name: str, fields: tuple[str, ...]) -> Any:
        key = self._key or name
        if key in self._content:
            return self._content[key]
        found: Any = self._content
        for part in re.split(r"[./]", key):
            found = found.get(part) if isinstance(found, Mapping) else None
        return found

    def where(self, name: str) -> str:
        return f"the file {self._path} (`{self._key or name}`)"


def open_file(settings: Mapping[str, Any]) -> SecretSource:
    """Return what a file holds; `key` names the secret in it if the entry's name does not."""
    path = text_setting(settings, "path")
    if path is None:
        raise ProviderError("`path` is missing: write the path of the file")
    return read_file(Path(path).expanduser(), text_setting(settings, "key"))


def read_file(path: Path, key: str | None = None) -> SecretSource:
    """Return a file's secrets. Raises ProviderError."""
    form = ".env" if path.name.startswith(".env") else path.suffix.lower()
    if form == ".env":
        return Environment(_dotenv(_text(path), path), key, f"the file {path}")
    if form not in _READERS:
        raise ProviderError(f"{path}: its name must end in {', '.join(_READERS)} or .env")
    content = _READERS[form](_text(path), path)
    if not isinstance(content, Mapping):
        raise ProviderError(f"{path} must contain a mapping of names to secrets")
    return Documents(content, path, key)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as problem:
        raise ProviderError(f"{path} cannot be read: {problem.strerror}") from None
    if len(data) > MAX_BYTES:
        raise ProviderError(f"{path} is larger than {MAX_BYTES} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ProviderError(f"{path} is not UTF-8 text") from None


def _json(text: str, path: Path) -> Any:
    try:
        return json.loads(text, parse_int=str, parse_float=str)
    except json.JSONDecodeError as problem:
        raise ProviderError(f"{path}:{problem.lineno}: not JSON: {problem.msg}") from None
    except RecursionError:
        raise ProviderError(f"{path} is nested too deeply") from None


def _yaml(text: str, path: Path) -> Any:
    import yaml

    try:
        # The loader that makes nothing but texts, lists and mappings.
        return yaml.load(text, Loader=yaml.BaseLoader)
    except yaml.MarkedYAMLError as problem:
        line = problem.problem_mark.line + 1 if problem.problem_mark else 1
        raise ProviderError(f"{path}:{line}: not YAML") from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise ProviderError(f"{path} is not YAML") from None


def _dotenv(text: str, path: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        assignment = _ASSIGNMENT.fullmatch(line)
        if assignment is None:
            raise ProviderError(f"{path}:{number}: write NAME=value")
        found[assignment[1]] = _dotenv_value(assignment[2], f"{path}:{number}")
    return found


def _dotenv_value(written: str, place: str) -> str:
    if not written.startswith(("'", '"')):
        return _COMMENT.sub("", written).rstrip()
    quoted = _QUOTED.fullmatch(written)
    if quoted is None:
        raise ProviderError(f"{place}: the quote is not closed at the end of the line")
    if quoted[1] is not None:
        return quoted[1]
    return re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), quoted[2])


_READERS: dict[str, Callable[[str, Path], Any]] = {".yaml": _yaml, ".yml": _yaml, ".json": _json}
