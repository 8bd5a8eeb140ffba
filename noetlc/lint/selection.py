"""Which findings a run reports, and how severe they are: codes selected and ignored, by file and by configuration.

It works on rows that have been found already, so that one cached result serves every selection.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from noetlc.finding import Severity
from noetlc.lint.cannot_run import CannotRun, suggestion
from noetlc.lint.globs import matches
from noetlc.lint.options import Options
from noetlc.lint.settings import Settings
from noetlc.report.row import Row

UNREADABLE = ("P002", "P003", "P004", "P005")
"""Findings after which a file has not really been checked: reported whatever is selected, unless ignored by name."""


class Selection(NamedTuple):
    """Codes are given whole (`P103`) or as a prefix (`P1`); where several apply, the longest decides."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    severity: Mapping[str, Severity] = MappingProxyType({})
    per_file_ignores: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    folder: str = "."

    def apply(self, rows: Iterable[Row]) -> list[Row]:
        """Return the rows to report, with the severities that the configuration gives them."""
        return [self._with_severity(row) for row in rows if self.wants(row.code) and not self._ignored_here(row)]

    def wants(self, code: str) -> bool:
        """Say whether findings of this code are reported at all."""
        ignored = _longest(code, self.ignore)
        if not ignored and (not self.select or code.startswith(UNREADABLE)):
            return True
        return _longest(code, self.select) > ignored

    def _with_severity(self, row: Row) -> Row:
        prefix = max((prefix for prefix in self.severity if row.code.startswith(prefix)), key=len, default=None)
        return row if prefix is None else row._replace(severity=self.severity[prefix])

    def _ignored_here(self, row: Row) -> bool:
        if not self.per_file_ignores:
            return False
        path = relative_path(row.path, self.folder)
        return any(matches(glob, path) and row.code.startswith(codes) for glob, codes in self.per_file_ignores.items())


def select_for(options: Options, settings: Settings) -> Selection:
    """Combine the command line with the configuration. `--select` starts afresh; `--ignore` replaces `ignore`."""
    select, ignore = settings.select, settings.ignore
    if options.select is not None:
        select, ignore = options.select, ()
    if options.ignore is not None:
        ignore = options.ignore
    return Selection(select, ignore, settings.severity, settings.per_file_ignores, settings.folder)


def require_known(selection: Selection, rule_names: Callable[[], Mapping[str, str]]) -> None:
    """Stop the run if a code or prefix fits no rule: it would silently select or ignore nothing."""
    per_file = [code for codes in selection.per_file_ignores.values() for code in codes]
    given = (*selection.select, *selection.ignore, *selection.severity, *per_file)
    names_by_code = rule_names() if given else {}
    for code in given:
        if not code or not any(known.startswith(code) for known in names_by_code):
            raise CannotRun(f"unknown rule code `{code}`.{_hint(code, names_by_code)} `noetlc explain` lists all rules")


def relative_path(path: str, folder: str) -> str:
    """Return `path` as seen from `folder`, with forward slashes, for patterns and for files that others read."""
    return os.path.relpath(path, folder).replace(os.sep, "/")


def _longest(code: str, prefixes: Iterable[str]) -> int:
    return max((len(prefix) for prefix in prefixes if code.startswith(prefix)), default=0)


def _hint(code: str, names_by_code: Mapping[str, str]) -> str:
    for known, name in names_by_code.items():
        if code == name:
            return f" Did you mean `{known}`, the code of {name}?"
    return suggestion(code, names_by_code)
