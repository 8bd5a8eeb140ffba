"""The configuration: `noetlc.toml`, or `[tool.noetlc]` in `pyproject.toml`, with the command line's options over it.

The file is the nearest one at or above the folder that contains all given paths. An unknown key or a wrong type stops
the command: a setting that silently does nothing is worse than none. No other module reads configuration.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from noetlc.files import matches
from noetlc.finding import Severity, current_codes
from noetlc.syntax.input import DEFAULT_LIMITS, ReadLimits
from noetlvm.command_line.process import CommandError
from noetlvm.nearest import suggestion

if TYPE_CHECKING:
    from noetlc.report.located_finding import LocatedFinding

FILE_NAMES = ("noetlc.toml", "pyproject.toml")
UNREADABLE = ("P002", "P003", "P004", "P005")
"""Findings after which a file has not been checked: reported whatever is selected, unless ignored by name."""


class FailOn(StrEnum):
    """The lowest severity that makes lint fail."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
    NEVER = "never"

    @property
    def severity(self) -> Severity | None:
        return None if self is FailOn.NEVER else Severity(self.value)


class DialectChoice(StrEnum):
    """The dialect that lint checks a file in."""

    AUTO = "auto"
    """Canonical v10; a file of another dialect gets one finding that reports it."""
    V10 = "v10"
    IO = "io"
    EVAL = "eval"
    CASE = "case"


class Settings(NamedTuple):
    """What is checked, which findings count, and how severe they are. Codes may be prefixes: the longest wins."""

    file: str | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fail_on: FailOn = FailOn.ERROR
    min_severity: Severity = Severity.NOTE
    """Findings below it are not reported."""
    exclude: tuple[str, ...] = ()
    baseline: str | None = None
    severity: Mapping[str, Severity] = {}
    per_file_ignores: Mapping[str, tuple[str, ...]] = {}
    max_document_bytes: int | None = None
    tool_kinds: tuple[str, ...] = ()
    """Tool kinds that the project's workers have and the compiler has no definition of."""
    allow_unknown_kinds: bool = False
    dialect: DialectChoice = DialectChoice.AUTO

    @property
    def folder(self) -> str:
        """The folder that patterns and paths of the file are relative to."""
        return str(Path(self.file).absolute().parent if self.file else Path.cwd())

    @property
    def limits(self) -> ReadLimits:
        return ReadLimits(document_bytes_max=self.max_document_bytes) if self.max_document_bytes else DEFAULT_LIMITS

    @property
    def identity(self) -> str:
        """A text that differs whenever the rules could find something else in the same file."""
        return repr((self.limits, sorted(self.tool_kinds), self.allow_unknown_kinds, self.dialect))

    def apply(self, rows: Iterable[LocatedFinding]) -> list[LocatedFinding]:
        """Return the findings to report, with the configured severities."""
        judged = ((row, self.judge(row.code, row.severity, row.path)) for row in rows)
        return [
            row if severity is row.severity else row._replace(severity=severity)
            for row, severity in judged
            if severity is not None
        ]

    def judge(self, code: str, severity: Severity, path: str) -> Severity | None:
        """Return the severity of a finding in a file, or None if it is not reported."""
        if not self._selects(code) or self._ignored_in(path, code):
            return None
        prefix = _longest(code, self.severity)
        severity = self.severity[prefix] if prefix else severity
        return severity if severity.rank >= self.min_severity.rank else None

    def require_known_codes(self, rule_names: Callable[[], Mapping[str, str]]) -> None:
        """Stop the command if a code fits no rule: it would silently select or ignore nothing."""
        per_file = [code for codes in self.per_file_ignores.values() for code in codes]
        given = (*self.select, *self.ignore, *self.severity, *per_file)
        names = rule_names() if given else {}
        for code in given:
            if not code or not any(known.startswith(code) for known in names):
                raise CommandError(f"unknown rule code `{code}`.{_hint(code, names)} `noetlc explain` lists all rules")

    def _selects(self, code: str) -> bool:
        ignored = len(_longest(code, self.ignore))
        if not ignored and (not self.select or code.startswith(UNREADABLE)):
            return True
        return len(_longest(code, self.select)) > ignored

    def _ignored_in(self, path: str, code: str) -> bool:
        if not self.per_file_ignores:
            return False
        relative = relative_path(path, self.folder)
        return any(matches(glob, relative) and code.startswith(codes) for glob, codes in self.per_file_ignores.items())


def relative_path(path: str, folder: str) -> str:
    """Return `path` relative to `folder`, with forward slashes, for patterns and for baselines."""
    return os.path.relpath(path, folder).replace(os.sep, "/")


def _longest(code: str, prefixes: Iterable[str]) -> str:
    return max((prefix for prefix in prefixes if code.startswith(prefix)), key=len, default="")


def _hint(code: str, names: Mapping[str, str]) -> str:
    for known, name in names.items():
        if code == name:
            return f" Did you mean `{known}`, the code of {name}?"
    return suggestion(code, names)


# ---- the file


def settings_for(paths: tuple[str, ...], config: str | None = None) -> Settings:
    """Return the settings of the file that `--config` names, else of the nearest file above the given paths."""
    if config is not None:
        return _load(Path(config))
    folder = _folder_of_all(paths)
    for ancestor in (folder, *folder.parents):
        for name in FILE_NAMES:
            settings = _settings_in(ancestor / name)
            if settings is not None:
                return settings
    return Settings()


def _load(file: Path) -> Settings:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise CommandError(f"cannot read the configuration file {file}: {error.strerror}") from error
    return _parse(file, data) or Settings(file=str(file))


def _folder_of_all(paths: tuple[str, ...]) -> Path:
    places = [Path(_before_wildcards(path)).absolute() for path in paths if path != "-"]
    if not places:
        return Path.cwd()
    common = Path(os.path.commonpath(places))
    return common if common.is_dir() else common.parent


def _before_wildcards(path: str) -> str:
    """Return the folder before the first wildcard of a glob."""
    first = next((index for index, char in enumerate(path) if char in "*?["), None)
    if first is None or Path(path).exists():
        return path
    return path[:first].rpartition("/")[0] or ("/" if path.startswith("/") else ".")


def _settings_in(file: Path) -> Settings | None:
    try:
        data = file.read_bytes()
    except OSError:  # absent or unreadable: look further up
        return None
    if file.name == "pyproject.toml" and b"noetlc" not in data:  # the usual case: do not parse TOML
        return None
    return _parse(file, data)


def _parse(file: Path, data: bytes) -> Settings | None:
    import tomllib  # only needed with a configuration file

    try:
        table: Any = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CommandError(f"{file}: not TOML: {error}") from error
    if file.name == "pyproject.toml":
        tools = table.get("tool")
        table = tools.get("noetlc") if isinstance(tools, dict) else None
    if table is None:
        return None
    if not isinstance(table, dict):
        raise CommandError(f"{file}: `tool.noetlc` must be a table: write `[tool.noetlc]` and the keys below it")
    return Settings(file=str(file), **{key.replace("-", "_"): _read(file, key, value) for key, value in table.items()})


def _read(file: Path, key: str, value: Any) -> Any:
    known = KEYS.get(key)
    if known is None:
        raise CommandError(f"{file}: unknown key `{key}`.{suggestion(key, KEYS)} Known: {', '.join(KEYS)}")
    try:
        return known.read(value)
    except (TypeError, ValueError) as error:
        raise CommandError(f"{file}: `{key}` {error}") from error


def _strings(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TypeError('must be a list of strings, such as ["P103", "P5"]')
    return tuple(value)


def _codes(value: Any) -> tuple[str, ...]:
    return tuple(code for given in _strings(value) for code in current_codes(given))


def _that(is_valid: Callable[[Any], bool], message: str) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if not is_valid(value):
            raise TypeError(message)
        return value

    return read


_string = _that(lambda value: isinstance(value, str), "must be a string")
_boolean = _that(lambda value: isinstance(value, bool), "must be true or false")
_positive = _that(lambda value: type(value) is int and value > 0, "must be a whole number greater than zero")


def _one_of(choices: type[StrEnum]) -> Callable[[Any], StrEnum]:
    def read(value: Any) -> StrEnum:
        if value not in list(choices):
            raise ValueError("must be " + _choice(choices))
        return choices(value)

    return read


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


class Key(NamedTuple):
    """A key of the configuration file: what converts its value or raises, and its documentation."""

    read: Callable[[Any], Any]
    default: str
    about: str


KEYS: dict[str, Key] = {
    "select": Key(_codes, "all rules", "Codes or prefixes (`P103`, `P5`) of rules to report; the longest fit wins."),
    "ignore": Key(_codes, "none", "Codes or prefixes of rules not to report."),
    "severity": Key(_severities, "each rule's own", "Severity by code or prefix: `error`, `warning` or `note`."),
    "per-file-ignores": Key(_ignores_by_glob, "none", "Codes not to report in the files that a pattern matches."),
    "min-severity": Key(_one_of(Severity), "`note`", "Findings below this severity are not reported."),
    "fail-on": Key(_one_of(FailOn), "`error`", "Lowest severity that makes `lint` exit with 1; `never` for none."),
    "exclude": Key(_strings, "none", "Patterns of files and folders to skip; does not apply to named files."),
    "baseline": Key(_string, "none", "File of accepted findings; only others are reported."),
    "max-document-bytes": Key(_positive, f"{DEFAULT_LIMITS.document_bytes_max}", "Larger files are refused (P004)."),
    "dialect": Key(
        _one_of(DialectChoice), "`auto`", "Dialect of the files; `auto` gives a file of an older one a single finding."
    ),
    "tool-kinds": Key(_strings, "none", "Tool kinds that your workers have and this installation does not."),
    "allow-unknown-kinds": Key(_boolean, "`false`", "Accept tool kinds that nothing here knows."),
}
"""Every key of the configuration file."""
