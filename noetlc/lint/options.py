"""What one run of `noetlc lint` was asked to do: the command line, as a value. It decides nothing."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from noetlc.report.formats import Format


class FailOn(StrEnum):
    """The lowest severity that makes lint fail."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
    NEVER = "never"


class Color(StrEnum):
    """When to colour text."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class Options(NamedTuple):
    """One command line. `None` means that the configuration file, or else the default, decides."""

    paths: tuple[str, ...] = ()
    format: Format = Format.TEXT
    output: str | None = None
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    fail_on: FailOn | None = None
    fix: bool = False
    unsafe_fixes: bool = False
    diff: bool = False
    baseline: str | None = None
    write_baseline: bool = False
    config: str | None = None
    cache: bool = True
    jobs: int | None = None
    statistics: bool = False
    quiet: bool = False
    color: Color = Color.AUTO
    max_document_bytes: int | None = None
    stdin_filename: str | None = None
