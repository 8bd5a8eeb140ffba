"""What checking the files gave, and the facts of the run that it was done for. Values only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from noetlc.lint.cache import Cache, read_bounded
from noetlc.lint.options import FailOn, Options
from noetlc.lint.selection import Selection
from noetlc.lint.settings import Settings
from noetlc.lint.terms import Terms
from noetlc.report.row import Row

Reported = Callable[[Iterable[Row]], list[Row]]
"""Picks, from all rows of one file, those that this run reports."""


class Run(NamedTuple):
    """The fixed facts of one run."""

    options: Options
    settings: Settings
    terms: Terms
    selection: Selection
    cache: Cache
    stdin: bytes | None = None
    """What came in on standard input, if that is what is linted."""

    @property
    def fail_on(self) -> FailOn:
        return self.options.fail_on or self.settings.fail_on

    @property
    def baseline_file(self) -> Path | None:
        if self.options.baseline is not None:
            return Path(self.options.baseline)
        if self.settings.baseline is not None:
            return Path(self.settings.folder, self.settings.baseline)
        return None

    @property
    def stdin_name(self) -> str:
        return self.options.stdin_filename or "<stdin>"

    def read(self, path: str) -> bytes:
        """Return a linted file's content."""
        if self.stdin is not None:
            return self.stdin
        return read_bounded(path, self.terms.limits.document_bytes_max)


class Linted(NamedTuple):
    """The rows of each file that was linted, in order, and why other files were not."""

    rows: dict[str, tuple[Row, ...]]
    problems: tuple[str, ...] = ()

    def all_rows(self) -> tuple[Row, ...]:
        return tuple(row for rows in self.rows.values() for row in rows)

    def reported(self, reported: Reported) -> Linted:
        """Keep only what the run reports."""
        return self._replace(rows={path: tuple(reported(rows)) for path, rows in self.rows.items()})
