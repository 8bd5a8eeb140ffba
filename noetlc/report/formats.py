"""The table of output formats. A new format is a file beside this one with a `render`, and a line in each table."""

from __future__ import annotations

from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from noetlc.report.report import Report


class Format(StrEnum):
    """The output formats, as the user names them."""

    TEXT = "text"
    CONCISE = "concise"
    JSON = "json"
    JSONL = "jsonl"
    SARIF = "sarif"
    GITHUB = "github"
    GITLAB = "gitlab"
    JUNIT = "junit"


FORMATS: dict[Format, str] = {
    Format.TEXT: "noetlc.report.text",
    Format.CONCISE: "noetlc.report.concise",
    Format.JSON: "noetlc.report.json_array",
    Format.JSONL: "noetlc.report.json_lines",
    Format.SARIF: "noetlc.report.sarif",
    Format.GITHUB: "noetlc.report.github",
    Format.GITLAB: "noetlc.report.gitlab",
    Format.JUNIT: "noetlc.report.junit",
}
"""Where each format's `render(report) -> str` lives; only the one asked for is imported."""


def render(format: Format, report: Report) -> str:
    """Return the report in one format, ending with a line break unless it is empty."""
    text: str = import_module(FORMATS[format]).render(report)
    return text
