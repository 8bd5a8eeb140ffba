"""What the linter says about a playbook: one finding, its place, its remedy and, where there is one, its fix."""

from __future__ import annotations

from enum import StrEnum

from noetlc.syntax.span import Span
from noetlvm.record import Record


class Severity(StrEnum):
    """How bad a finding is. Only findings at or above the failing severity (`--fail-on`) make lint fail."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        return ("note", "warning", "error").index(self.value)


class Related(Record):
    """A second place that explains the finding: the other definition, the arc that shadows this one."""

    span: Span
    message: str


class Edit(Record):
    """Replace the text at `span` by `text`; an empty span inserts."""

    span: Span
    text: str


class Fix(Record):
    """Edits that remove the finding. A safe fix changes no meaning; an unsafe one wants a person's eye."""

    description: str
    edits: tuple[Edit, ...]
    safe: bool


class Finding(Record):
    """One thing that is wrong, at one place of one source."""

    code: str
    severity: Severity
    span: Span
    message: str
    help: str
    related: tuple[Related, ...] = ()
    fix: Fix | None = None
