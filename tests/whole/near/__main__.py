"""Runs the tests that reach what a change touches: `make test-near`, or `python -m tests.whole.near --since COMMIT`.

Without a record it runs the test files that import a changed module, and says so.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

from tests.whole.near.changes import Change, base, changes, importers
from tests.whole.near.record import MODULE, ROOT, Record

SECONDS = 60.0
"""Of recorded time for the chosen tests, on all workers: under a minute on two cores, with collection."""
_SECONDS_UNKNOWN = 0.1
"""Of a test that has no row."""


def reaching(change: Change, record: Record) -> set[str]:
    """Return the tests that reach a change.

    A table, a class or a new function has no test of its own: then all count that reach anything in its file.
    """
    known = set(record.functions)
    wanted: set[str] = set()
    for name in change.functions:
        file, _, function = name.partition(":")
        wanted |= {name} if name in known and function != MODULE else record.functions_of(file)
    return set(record.tests_of(wanted))


def chosen(tests: set[str], record: Record, seconds: float) -> list[str]:
    """Return as many tests as fit into a time.

    Those come first that reach little else, a test of every file before the second of any.
    """
    by_file: defaultdict[str, list[str]] = defaultdict(list)
    for test in sorted(tests, key=lambda one: (record.rows[one].reached.bit_count(), one)):
        by_file[test.partition("::")[0]].append(test)
    turns = (
        (turn, record.rows[test].reached.bit_count(), test) for its in by_file.values() for turn, test in enumerate(its)
    )
    found: list[str] = []
    for _, _, test in sorted(turns):
        if record.rows[test].seconds <= seconds:
            seconds -= record.rows[test].seconds
            found.append(test)
    return found


def select(change: Change, record: Record | None, seconds: float) -> tuple[list[str], list[str]]:
    """Return test ids and test files to run, and print what is left out."""
    modules = sorted({name.partition(":")[0] for name in change.functions})
    print(f"changed: {len(change.functions)} functions in {len(modules)} modules, {len(change.tests)} test files")
    if change.others:
        print(f"no record says which tests read these: {', '.join(change.others)}")
    if record is None or not record.rows:
        print("there is no record (`make test-record` makes one): the test files that import a changed module run")
        return [], sorted({*change.tests, *(test for name in modules for test in importers(name))})
    if outdated := set(record.changed_files()) - set(modules):
        print(f"the record is older than {len(outdated)} other modules; `make test-record` renews it")
    unknown = [name for name in modules if not record.functions_of(name)]
    files = sorted({*change.tests, *(test for name in unknown for test in importers(name))})
    reached = {test for test in reaching(change, record) if test.partition("::")[0] not in files}
    tests = chosen(reached, record, seconds)
    if left := reached.difference(tests):
        places = Counter(test.rpartition("/")[0] for test in left).most_common(4)
        shown = ", ".join(f"{count} in {place}" for place, count in places)
        print(
            f"left out: {len(left)} of {len(reached)} tests that reach the change ({shown}, …); `make test` runs them"
        )
    processes = sum(row.starts_processes for test, row in record.rows.items() if test not in reached)
    print(f"not looked into: {processes} tests that start processes, whose calls are not recorded")
    return tests, files


def run(tests: list[str], files: list[str]) -> int:
    """Run the tests in two processes."""
    paths = sorted({*files, *(test.partition("::")[0] for test in tests)})
    words = [sys.executable, "-m", "pytest", "-n", "2" if len(tests) > 20 or files else "0", "-m", "not long"]
    environment = {**os.environ}
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder) / "tests"
        if tests:
            listed.write_text("\n".join([*tests, *files]) + "\n", encoding="utf-8")
            environment["NEAR_TESTS"] = str(listed)
        done = subprocess.run([*words, "-p", "tests.whole.near.plugin", *paths], cwd=ROOT, env=environment, check=False)
    return done.returncode


def main() -> int:
    """Choose tests, run them, and say how long it took."""
    parser = argparse.ArgumentParser(prog="python -m tests.whole.near")
    parser.add_argument("--since", help="a commit; default: where this branch left main")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of tests, as they were recorded")
    parser.add_argument("--list", action="store_true", help="only print the tests")
    options = parser.parse_args()
    began = time.perf_counter()
    change = changes(options.since or base())
    tests, files = select(change, Record.read(), options.seconds)
    if options.list or not (tests or files):
        print(*files, *tests, sep="\n")
        return 0
    code = run(tests, files)
    print(f"test-near: {len(tests)} tests and {len(files)} files, {time.perf_counter() - began:.0f} s")
    return code


if __name__ == "__main__":
    sys.exit(main())
