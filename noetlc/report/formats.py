"""The table of output formats. A new format is a member of `Format` and a row of `FORMATS`."""

from __future__ import annotations

from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from noetlc.report.report import Report


class OutputFormat(StrEnum):
    """The output formats, as the user names them."""

    TEXT = "text"
    CONCISE = "concise"
    JSON = "json"
    JSONL = "jsonl"
    SARIF = "sarif"
    GITHUB = "github"
    GITLAB = "gitlab"
    JUNIT = "junit"


FORMATS: dict[OutputFormat, tuple[str, str]] = {
    OutputFormat.TEXT: ("text", "render"),
    OutputFormat.CONCISE: ("lines", "concise"),
    OutputFormat.JSON: ("json_formats", "array"),
    OutputFormat.JSONL: ("json_formats", "lines"),
    OutputFormat.SARIF: ("sarif", "render"),
    OutputFormat.GITHUB: ("lines", "github"),
    OutputFormat.GITLAB: ("json_formats", "gitlab"),
    OutputFormat.JUNIT: ("junit", "render"),
}
"""Module of `noetlc.report` and function `(report) -> str` of each format; only the one in use is imported."""


def render(format: OutputFormat, report: Report) -> str:
    """Return the report in one format, ending with a line break unless it is empty."""
    module, function = FORMATS[format]
    text: str = getattr(import_module(f"noetlc.report.{module}"), function)(report)
    return text
