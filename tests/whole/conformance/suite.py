"""Reads the conformance suite: its cases and its table of requirements. It judges nothing."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

SUITE = Path(__file__).parents[3] / "conformance"
FILES = {
    "parse": "yaml",
    "lint": "yaml",
    "canon": "yaml",
    "compile": "yaml",
    "verify": "asm",
    "run": "yaml",
    "replay": "jsonl",
    "graph": "yaml",
}
"""The stages that have cases, and how the name of a case's file ends."""
STAGES_WITH_CASES = tuple(FILES)


class Place(NamedTuple):
    """A finding or a problem as the protocol tells it. Line and column 0 stand for any place."""

    what: str
    """A finding's code, or a problem's kind."""
    line: int
    column: int
    severity: str


def place(told: Mapping[str, Any]) -> Place:
    """Return the place of what an implementation tells, or of what a case lists."""
    what = told["code"] if "code" in told else told["kind"]
    return Place(what, told.get("line", 0), told.get("column", 0), told.get("severity", "error"))


@dataclass(frozen=True, slots=True)
class Case:
    """One playbook and what must come back for it."""

    stage: str
    id: str
    path: Path
    expect: dict[str, Any]

    @property
    def data(self) -> bytes:
        return self.path.read_bytes()

    @property
    def companions(self) -> list[Path]:
        """Other playbooks of the case: the children that it runs."""
        return sorted(self.path.parent.glob(f"{self.id}.*.yml"))

    def places(self, field: str) -> set[Place]:
        """Return the findings that the expectation lists under `field`."""
        return {place(told) for told in self.expect[field]}


def as_listed(found: set[Place], listed: set[Place]) -> set[Place]:
    """Return what was found without the places of those findings that are listed without one."""
    anywhere = {place.what for place in listed if not place.line}
    return {place._replace(line=0, column=0) if place.what in anywhere else place for place in found}


@dataclass(frozen=True, slots=True)
class Requirement:
    """One row of the table."""

    id: str
    document: str
    section: str
    level: str
    requirement: str
    stage: str
    cases: str

    @property
    def case_ids(self) -> list[str]:
        return self.cases.split()


def read_cases(stage: str) -> list[Case]:
    """Return the cases of a stage, by id."""
    return [
        Case(stage, path.stem, path, json.loads(path.with_suffix(".expect.json").read_text(encoding="utf-8")))
        for path in sorted((SUITE / stage).glob(f"*.{FILES[stage]}"))
    ]


def read_all_cases() -> list[Case]:
    """Return the cases of all stages that have some."""
    return [case for stage in STAGES_WITH_CASES for case in read_cases(stage)]


def read_requirements() -> list[Requirement]:
    """Return the rows of the table in order."""
    with (SUITE / "requirements.csv").open(encoding="utf-8", newline="") as file:
        return [Requirement(**row) for row in csv.DictReader(file)]
