"""What the linter reports about a playbook: a finding, its code, its place, its remedy, and its fix if any."""

from __future__ import annotations

import re
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
    """Edits that remove the finding. A safe fix changes no meaning; an unsafe one needs review."""

    description: str
    edits: tuple[Edit, ...]
    safe: bool

    def __hash__(self) -> int:
        """Return the same for the same edits, without looking at all of them: thousands of findings may share a fix."""
        return hash((self.description, self.edits[:1]))


class Finding(Record):
    """One thing that is wrong, at one place of one source."""

    code: str
    severity: Severity
    span: Span
    message: str
    help: str
    related: tuple[Related, ...] = ()
    fix: Fix | None = None


TOPICS = {
    "P0": "YAML and structure",
    "P1": "References, labels and inputs",
    "P2": "Expressions and scopes",
    "P3": "Policies and control",
    "P4": "Flow",
    "P5": "Data flow and races",
    "P6": "Safety and secrets",
    "P7": "Code inside playbooks",
    "P9": "The older dialect",
}
"""What the first digit means."""


_OLD_LETTERS = {"E": ("P0", "P1", "P2", "P3"), "W": ("P4", "P5", "P6"), "L": ("P9",)}


_OLD_CODE = re.compile(r"(?:E(?=[0-3])|W(?=[4-6])|L(?=9))(?P<digits>[0-9]{1,3})")


def current_codes(code: str) -> tuple[str, ...]:
    """Return today's form of a code or prefix. Only a letter alone (`W`) stands for several prefixes."""
    if code in _OLD_LETTERS:
        return _OLD_LETTERS[code]
    old = _OLD_CODE.fullmatch(code)
    return (f"P{old['digits']}",) if old else (code,)
