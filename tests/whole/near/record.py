"""Which functions of `noetlc` and `noetlvm` each test reaches, and how long it takes.

`make test-record` makes the record in one run of the tests; the record lies in the cache folder of pytest. A run of
some tests renews their rows. Functions are named, not lines, so that the record survives changes above them.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ("noetlc", "noetlvm")
RECORD = ROOT / ".pytest_cache" / "reach" / "record.pickle"
MODULE = "<module>"
"""Name of what a module does outside its functions."""


class Row(NamedTuple):
    """What one test does."""

    seconds: float
    """While it was recorded, which takes about twice its time."""
    starts_processes: bool
    """Nothing is known about what a process reaches."""
    reached: int
    """A bit for each function, by its number."""


@dataclass
class Record:
    """The tests, and the functions that their bits stand for."""

    functions: list[str] = field(default_factory=list)
    """As `noetlc/lint/run.py:LintRun.run`."""
    rows: dict[str, Row] = field(default_factory=dict)
    """By the id of the test."""
    files: dict[str, str] = field(default_factory=dict)
    """Digests of the production files when all tests were recorded."""

    @classmethod
    def read(cls, path: Path = RECORD) -> Record | None:
        return cls(*pickle.loads(path.read_bytes())) if path.is_file() else None

    def write(self, path: Path = RECORD) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps((self.functions, self.rows, self.files)))

    def add(self, other: Record) -> None:
        """Take the rows of another record over; they replace older ones."""
        numbers = {name: number for number, name in enumerate(self.functions)}
        places = [numbers.setdefault(name, len(numbers)) for name in other.functions]
        self.functions = list(numbers)
        for test, row in other.rows.items():
            self.rows[test] = row._replace(reached=sum(1 << places[bit] for bit in bits(row.reached)))

    def prune(self) -> None:
        """Forget the tests whose file is gone."""
        files = {name for name in {test.partition("::")[0] for test in self.rows} if (ROOT / name).is_file()}
        self.rows = {test: row for test, row in self.rows.items() if test.partition("::")[0] in files}

    def tests_of(self, functions: Iterable[str]) -> list[str]:
        """Return the tests that reach one of some functions."""
        wanted = set(functions)
        mask = sum(1 << number for number, name in enumerate(self.functions) if name in wanted)
        return [test for test, row in self.rows.items() if row.reached & mask]

    def functions_of(self, file: str) -> set[str]:
        return {name for name in self.functions if name.startswith(f"{file}:")}

    def changed_files(self) -> list[str]:
        """Return the production files that are no longer as they were when the record was made."""
        now = digests()
        return sorted(name for name in now.keys() | self.files.keys() if now.get(name) != self.files.get(name))


def bits(number: int) -> Iterator[int]:
    while number:
        low = number & -number
        yield low.bit_length() - 1
        number ^= low


def digests() -> dict[str, str]:
    """Return what the production files contain."""
    paths = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return {str(path.relative_to(ROOT)): sha256(path.read_bytes()).hexdigest()[:16] for path in paths}
