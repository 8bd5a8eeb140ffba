"""Shows that tests notice as much at one commit as at another: `python -m tests.whole.mutation.power BEFORE [AFTER]`.

A fixed seed chooses mutants of eight packages that are the same at both commits, wherever their file is. Each is
written into a checkout of a commit, and the tests that reach it run there until one fails. What kills a mutant after is
tried first before, so that most mutants cost one test there.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from tests.whole.mutation.operators import Mutation, mutations
from tests.whole.near.changes import git, importers
from tests.whole.near.record import Record

PACKAGES = (
    "noetlvm/machine",
    "noetlvm/rounds",
    "noetlvm/engine",
    "noetlvm/store",
    "noetlvm/service",
    "noetlvm/worker",
    "noetlc/lint",
    "noetlc/codegen",
)
_SECONDS_MAX = 240
"""Of tests that run at once; their time-out kills no mutant, because the machine may only be busy."""
_TESTS_AT_ONCE, _FILES_AT_ONCE = 40, 4
_NOT_FOUND = re.compile(r"^ERROR: not found: (.*)$", re.MULTILINE)
_PYTEST = ("-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not long", "--tb=no", "-o", "timeout=60")


class Place(NamedTuple):
    """A mutant in a file of one commit."""

    file: str
    text: str
    """The line that it begins in."""
    mutation: Mutation

    @property
    def identity(self) -> tuple[str, ...]:
        """What it is, wherever its file and its line have moved."""
        return self.mutation.function, self.text, self.mutation.old, self.mutation.new


def places(folder: Path, packages: tuple[str, ...]) -> Iterator[Place]:
    """Yield the mutants of some packages, by file and text."""
    for package in packages:
        for path in sorted((folder / package).rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            lines = source.encode().splitlines()
            for one in mutations(source):
                number = source.encode()[: one.start].count(b"\n")
                yield Place(str(path.relative_to(folder)), lines[number].decode().strip(), one)


Places: TypeAlias = dict[tuple[str, ...], Place]
"""By identity."""


def by_identity(found: Iterator[Place]) -> Places:
    """Return the mutants that are the only ones of their kind."""
    groups: defaultdict[tuple[str, ...], list[Place]] = defaultdict(list)
    for one in found:
        groups[one.identity].append(one)
    return {identity: group[0] for identity, group in groups.items() if len(group) == 1}


def chosen(before: Places, after: Places, count: int, seed: int) -> list[Place]:
    """Return mutants of the later commit that the earlier has too, as many of one package as of another."""
    groups: dict[str, list[Place]] = {package: [] for package in PACKAGES}
    for identity, place in after.items():
        if identity in before:
            groups[next(package for package in PACKAGES if place.file.startswith(f"{package}/"))].append(place)
    source = random.Random(seed)
    shuffled = (source.sample(group, len(group)) for group in groups.values())
    return [one for one in chain.from_iterable(zip_longest(*shuffled)) if one is not None][:count]


def tests_of(place: Place, record: Record | None) -> list[str]:
    """Return the tests that reach a mutant, the narrowest first; without a record, the files that import its module."""
    name = f"{place.file}:{place.mutation.function}"
    if record is not None and name in record.functions:
        found = record.tests_of([name])
        return sorted(found, key=lambda one: (record.rows[one].seconds * record.rows[one].reached.bit_count(), one))
    parts = place.file.split("/")
    return sorted(importers(place.file), key=lambda one: (f"/{parts[1]}/" not in one, "/whole/" in one, one))


class Checkout:
    """A commit in a folder of its own, whose tests run with the environment of this one."""

    def __init__(self, commit: str, folder: Path) -> None:
        self.folder = folder
        git("worktree", "add", "--detach", "--force", str(folder), commit)

    def close(self) -> None:
        git("worktree", "remove", "--force", str(self.folder))

    def killer(self, place: Place, tests: list[str]) -> str:
        """Return the first test that fails with a mutant; empty: none does."""
        path = self.folder / place.file
        source = path.read_text(encoding="utf-8")
        path.write_text(place.mutation.apply(source), encoding="utf-8")
        try:
            found = self._failing(tests)
        finally:
            path.write_text(source, encoding="utf-8")
        return found if found and not self._first_failure([found]) else ""

    def _failing(self, tests: list[str]) -> str:
        there = [known for test in tests if (known := self._known(test))]
        number = _TESTS_AT_ONCE if any("::" in test for test in there) else _FILES_AT_ONCE
        parts = (there[first : first + number] for first in range(0, len(there), number))
        return next((found for part in parts if (found := self._first_failure(part))), "")

    def _known(self, test: str) -> str:
        """Return a test as this commit names it, whose file may be in another folder; empty: there is no such file."""
        file, colons, name = test.partition("::")
        if (self.folder / file).is_file():
            return test
        same = list((self.folder / "tests").rglob(Path(file).name))
        return f"{same[0].relative_to(self.folder)}{colons}{name}" if len(same) == 1 else ""

    def _first_failure(self, tests: list[str]) -> str:
        words = [sys.executable, "-m", "pytest", *_PYTEST]
        while tests:
            try:
                done = subprocess.run(
                    [*words, *tests], cwd=self.folder, text=True, capture_output=True, check=False, timeout=_SECONDS_MAX
                )
            except subprocess.TimeoutExpired:
                return ""
            missing = set(_NOT_FOUND.findall(done.stderr))
            known = [test for test in tests if f"{self.folder}/{test}" not in missing]
            if known == tests:
                lines = (line.partition(" ") for line in done.stdout.splitlines())
                return next((test.partition(" - ")[0] for word, _, test in lines if word in ("FAILED", "ERROR")), "")
            tests = known
        return ""


def power(place: Place, before: Place, checkouts: tuple[Checkout, Checkout], record: Record | None) -> dict[str, Any]:
    """Judge a mutant at both commits."""
    tests = tests_of(place, record)
    killer = checkouts[1].killer(place, tests)
    earlier = (killer and checkouts[0].killer(before, [killer])) or checkouts[0].killer(before, tests)
    function, text, old, new = place.identity
    mutant = {"file": place.file, "function": function, "text": text, "old": old, "new": new}
    return mutant | {"tests": len(tests), "before": earlier, "after": killer}


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "| # | file | function | change | before | after, by |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for number, row in enumerate(rows, 1):
        change = " → ".join(f"`{' '.join(row[key].split())[:40]}`".replace("|", "\\|") for key in ("old", "new"))
        before, after = ("killed" if row[key] else "survived" for key in ("before", "after"))
        by = f": `{row['after'].rpartition('/')[2][:90]}`".replace("|", "\\|") if row["after"] else ""
        yield f"| {number} | `{row['file']}` | `{row['function']}` | {change} | {before} | {after}{by} |"


def main() -> int:
    """Judge mutants at two commits and print a table; the exit code is 1 if one is killed before and not after."""
    parser = argparse.ArgumentParser(prog="python -m tests.whole.mutation.power")
    parser.add_argument("before")
    parser.add_argument("after", nargs="?", default="HEAD")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=32)
    parser.add_argument("--json", type=Path, help="results; those that it has are not made again")
    options = parser.parse_args()
    rows = json.loads(options.json.read_text(encoding="utf-8")) if options.json and options.json.exists() else []
    with tempfile.TemporaryDirectory() as folder:
        checkouts = Checkout(options.before, Path(folder, "before")), Checkout(options.after, Path(folder, "after"))
        try:
            before, after = (by_identity(places(one.folder, (*PACKAGES, "noetlvm/server"))) for one in checkouts)
            record = Record.read()
            for place in chosen(before, after, options.count, options.seed)[len(rows) :]:
                rows.append(power(place, before[place.identity], checkouts, record))
                print(
                    len(rows),
                    *(rows[-1][key] for key in ("file", "function", "before", "after")),
                    sep=" | ",
                    flush=True,
                )
                if options.json:
                    options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        finally:
            for one in checkouts:
                one.close()
    print(*table(rows), sep="\n")
    return int(any(row["before"] and not row["after"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
