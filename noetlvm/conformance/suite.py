"""Reads the conformance suite: its cases and its table of requirements."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

_PACKAGE = Path(__file__).resolve().parent.parent
_SHIPPED = _PACKAGE / "_conformance"
_CHECKOUT = _PACKAGE.parent / "conformance"

FILES = {
    "parse": "yaml",
    "lint": "yaml",
    "canon": "yaml",
    "compile": "yaml",
    "verify": "asm",
    "run": "yaml",
    "replay": "jsonl",
    "graph": "yaml",
    "migrate": "yaml",
}
"""The stages that have cases, and how the name of a case's file ends."""


class Spot(NamedTuple):
    """A finding or a problem as the protocol reports it. Line and column 0 stand for any position."""

    what: str
    """A finding's code, or a problem's kind."""
    line: int
    column: int
    severity: str

    @classmethod
    def of(cls, reported: Mapping[str, Any]) -> Spot:
        """Return the position of what an implementation reports, or of what a case lists."""
        what = reported["code"] if "code" in reported else reported["kind"]
        return cls(what, reported.get("line", 0), reported.get("column", 0), reported.get("severity", "error"))


class Case(NamedTuple):
    """One file and the expected result."""

    stage: str
    id: str
    path: Path
    expect: dict[str, Any]

    @property
    def data(self) -> bytes:
        return self.path.read_bytes()

    @property
    def given(self) -> dict[str, Any]:
        """What the expectation gives a run."""
        given: dict[str, Any] = self.expect.get("given", {})
        return given

    @property
    def companions(self) -> list[Path]:
        """Other playbooks of the case: the children that it runs."""
        return sorted(self.path.parent.glob(f"{self.id}.*.yml"))

    @property
    def texts(self) -> list[str]:
        """The playbooks of the case, the main one first."""
        return [path.read_text(encoding="utf-8") for path in (self.path, *self.companions)]

    def spots(self, field: str) -> set[Spot]:
        """Return the findings that the expectation lists under `field`."""
        return {Spot.of(listed) for listed in self.expect[field]}


class Requirement(NamedTuple):
    """One row of the table."""

    id: str
    document: str
    section: str
    level: str
    requirement: str
    stage: str
    cases: str
    unbreakable: str = ""
    """Why no break of an implementation makes a case of this row fail; empty for nearly all."""

    @property
    def case_ids(self) -> list[str]:
        return self.cases.split()


class Suite:
    """A folder with cases by stage and the table of requirements."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def found(cls) -> Suite | None:
        """Return the suite of the checkout, or the one that the wheel ships."""
        return next((cls(folder) for folder in (_CHECKOUT, _SHIPPED) if (folder / "requirements.csv").is_file()), None)

    def cases(self, stage: str) -> list[Case]:
        return [
            Case(stage, path.stem, path, json.loads(path.with_suffix(".expect.json").read_text(encoding="utf-8")))
            for path in sorted((self.folder / stage).glob(f"*.{FILES[stage]}"))
        ]

    def requirements(self) -> list[Requirement]:
        """Return the rows of the table in order."""
        with (self.folder / "requirements.csv").open(encoding="utf-8", newline="") as file:
            return [Requirement(**row) for row in csv.DictReader(file, restval="")]

    def rows_without_case(self) -> list[str]:
        """Return the ids of rows that no case of their stage checks; `process` rows are for a review."""
        known = {stage: {case.id for case in self.cases(stage)} for stage in FILES}
        return [
            row.id for row in self.requirements() if row.stage in known and not known[row.stage] & set(row.case_ids)
        ]


def as_listed(found: set[Spot], listed: set[Spot]) -> set[Spot]:
    """Return what was found without the positions of those findings that are listed without one."""
    anywhere = {spot.what for spot in listed if not spot.line}
    return {spot._replace(line=0, column=0) if spot.what in anywhere else spot for spot in found}


def unmet(listed: Iterable[Mapping[str, Any]], reported: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield which listed findings lack what they must have besides a position: words in message or help, or a fix."""
    known = list(reported)
    for wanted in listed:
        says, is_fixed = wanted.get("says", ""), wanted.get("fix", False)
        alike = [one for one in known if Spot.of(one) == Spot.of(wanted)] if says or is_fixed else ()
        fixed = [one for one in alike if one["fix"] or not is_fixed]
        if alike and not any(says in f"{one['message']} {one['help']}" for one in fixed):
            yield f"{wanted['code']} at line {wanted['line']} does not say `{says}`, or has no fix"


def selected(cases: Sequence[Case], names: Sequence[str]) -> list[Case]:
    """Return the cases of these ids; no ids: all."""
    return [case for case in cases if not names or case.id in names]
