"""The configuration file: `noetlc.toml`, or `[tool.noetlc]` in `pyproject.toml`.

The file is the nearest one at or above the folder that holds everything that is linted. A key that is unknown or has
the wrong type stops the run: a setting that silently does nothing is worse than none. This is the only module that
reads configuration.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from noetlc.finding import Severity
from noetlc.lint.cannot_run import CannotRun, suggestion
from noetlc.lint.options import FailOn
from noetlc.rules.codes import current_codes

FILE_NAMES = ("noetlc.toml", "pyproject.toml")


class Settings(NamedTuple):
    """What the configuration file says; without a file, the defaults."""

    file: str | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fail_on: FailOn = FailOn.ERROR
    exclude: tuple[str, ...] = ()
    baseline: str | None = None
    severity: Mapping[str, Severity] = MappingProxyType({})
    per_file_ignores: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    max_document_bytes: int | None = None
    tool_kinds: tuple[str, ...] = ()
    """Tool kinds that this project's workers know and the compiler does not."""
    allow_unknown_kinds: bool = False

    @property
    def folder(self) -> str:
        """The folder that the file's patterns and paths are relative to."""
        return str(Path(self.file).absolute().parent if self.file else Path.cwd())


def find_settings(paths: tuple[str, ...]) -> Settings:
    """Return the settings for a run over `paths`."""
    folder = _folder_of_all(paths)
    for ancestor in (folder, *folder.parents):
        for name in FILE_NAMES:
            settings = _settings_in(ancestor / name)
            if settings is not None:
                return settings
    return Settings()


def load_settings(file: Path) -> Settings:
    """Return the settings of a file that was named with `--config`."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise CannotRun(f"cannot read the configuration file {file}: {error.strerror}") from error
    return _parse(file, data) or Settings(file=str(file))


def _folder_of_all(paths: tuple[str, ...]) -> Path:
    places = [Path(_before_wildcards(path)).absolute() for path in paths if path != "-"]
    if not places:
        return Path.cwd()
    common = Path(os.path.commonpath(places))
    return common if common.is_dir() else common.parent


def _before_wildcards(path: str) -> str:
    """Return the part of a glob that is a plain folder."""
    first = next((index for index, char in enumerate(path) if char in "*?["), None)
    if first is None or Path(path).exists():
        return path
    return path[:first].rpartition("/")[0] or ("/" if path.startswith("/") else ".")


def _settings_in(file: Path) -> Settings | None:
    try:
        data = file.read_bytes()
    except OSError:  # not there, or not ours to read: look further up
        return None
    if file.name == "pyproject.toml" and b"noetlc" not in data:  # the usual case, without reading TOML
        return None
    return _parse(file, data)


def _parse(file: Path, data: bytes) -> Settings | None:
    import tomllib  # a run without a configuration file does not pay for it

    try:
        table: Any = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CannotRun(f"{file}: not TOML: {error}") from error
    if file.name == "pyproject.toml":
        tools = table.get("tool")
        table = tools.get("noetlc") if isinstance(tools, dict) else None
    if table is None:
        return None
    if not isinstance(table, dict):
        raise CannotRun(f"{file}: `tool.noetlc` must be a table: write `[tool.noetlc]` and the keys below it")
    return Settings(file=str(file), **{_field(key): _read(file, key, value) for key, value in table.items()})


def _field(key: str) -> str:
    return key.replace("-", "_")


def _read(file: Path, key: str, value: Any) -> Any:
    reader = _READERS.get(key)
    if reader is None:
        raise CannotRun(f"{file}: unknown key `{key}`.{suggestion(key, _READERS)} Known: {', '.join(_READERS)}")
    try:
        return reader(value)
    except (TypeError, ValueError) as error:
        raise CannotRun(f"{file}: `{key}` {error}") from error


def _strings(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TypeError('must be a list of strings, such as ["P103", "P5"]')
    return tuple(value)


def _codes(value: Any) -> tuple[str, ...]:
    return tuple(code for given in _strings(value) for code in current_codes(given))


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("must be a string")
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError("must be true or false")
    return value


def _positive(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise TypeError("must be a whole number greater than zero")
    return value


def _fail_on(value: Any) -> FailOn:
    if value not in list(FailOn):
        raise ValueError("must be " + _choice(FailOn))
    return FailOn(value)


def _severities(value: Any) -> dict[str, Severity]:
    if not isinstance(value, dict):
        raise TypeError('must be a table, such as { P214 = "warning" }')
    for code, name in value.items():
        if name not in list(Severity):
            raise ValueError(f"gives {code} the severity {name!r}; it must be {_choice(Severity)}")
    return {code: Severity(name) for given, name in value.items() for code in current_codes(given)}


def _ignores_by_glob(value: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, dict):
        raise TypeError('must be a table, such as { "tests/**" = ["P501"] }')
    return {glob: _codes(codes) for glob, codes in value.items()}


def _choice(values: Any) -> str:
    return ", ".join(f'"{value}"' for value in values)


_READERS: dict[str, Callable[[Any], Any]] = {
    "select": _codes,
    "ignore": _codes,
    "fail-on": _fail_on,
    "exclude": _strings,
    "baseline": _string,
    "severity": _severities,
    "per-file-ignores": _ignores_by_glob,
    "max-document-bytes": _positive,
    "tool-kinds": _strings,
    "allow-unknown-kinds": _boolean,
}
"""Every key of the file, and what reads its value or says what it must be."""
