"""Mutation testing of `noetlvm/machine`: `python -m tests.whole.mutation [MODULE…] [--jobs N] [--json FILE]`.

Every mutant runs in a forked process: first the tests that reach its line, the fastest first, then seeds of the
simulator. The first failure ends it. The tests are collected, and run once to see what each reaches, before that.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest
from _pytest.runner import runtestprotocol

from noetlvm.sim.campaign import run_seed
from tests.whole.mutation.operators import Mutation, mutations
from tests.whole.mutation.planting import plant_source, source_of

ROOT = Path(__file__).parents[3]
MACHINE = ROOT / "noetlvm" / "machine"
TESTS = (
    "tests/noetlvm/machine",
    "tests/whole/conformance/test_run_cases.py",
    "tests/noetlvm/engine/test_retry.py",
    "tests/noetlvm/engine/test_resume.py",
    "tests/noetlvm/service/test_placement.py",
)
SECONDS_MAX = 90
"""A mutant that takes longer is noticed: nothing else here does."""
SURVIVED, KILLED = 0, 1


class Mutant(NamedTuple):
    """One mutant of one module."""

    module: str
    mutation: Mutation

    def to_data(self) -> dict[str, Any]:
        one = self.mutation
        return {"module": self.module, "function": one.function, "line": one.lines[0], "old": one.old, "new": one.new}


class MutationRun:
    """A plugin of pytest: instead of running the tests once, it runs them over every mutant."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._items: list[pytest.Item] = []
        self._reach: dict[tuple[str, int], list[int]] = defaultdict(list)
        """Tests by file and line, by their number."""
        self._seconds: list[float] = []
        self.results: list[dict[str, Any]] = []

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._items = session.items
        run_seed(0)  # everything is imported before processes are forked
        failing = [item.nodeid for number, item in enumerate(self._items) if not self._passes(number, item)]
        if failing:
            raise pytest.UsageError(f"these fail without a mutant: {failing}")
        print(f"{len(self._items)} tests in {sum(self._seconds):.0f} s", flush=True)
        gc.freeze()
        for number, result in enumerate(self._run(self._mutants())):
            self.results.append(result)
            if self._options.json:
                self._options.json.write_text(json.dumps(self.results, indent=1) + "\n", encoding="utf-8")
            if result["verdict"] != "killed" or not number % 100:
                print(number, json.dumps(result), flush=True)
        return True

    def _mutants(self) -> list[Mutant]:
        names = self._options.modules or sorted(path.stem for path in MACHINE.glob("*.py"))
        modules = [f"noetlvm.machine.{name}" for name in names if name != "__init__"]
        found = [Mutant(name, one) for name in modules for one in mutations(source_of(import_module(name)))]
        if self._options.again:
            before = json.loads(self._options.again.read_text(encoding="utf-8"))
            wanted = {_identity(result) for result in before if result["verdict"] == "survived"}
            found = [mutant for mutant in found if _identity(mutant.to_data()) in wanted]
        return found[:: self._options.every]

    # ---- what tests reach

    def _passes(self, number: int, item: pytest.Item) -> bool:
        reached: set[tuple[str, int]] = set()
        folder = f"{MACHINE}{os.sep}"

        def on_line(frame: FrameType, event: str, _value: Any) -> Any:
            if event == "line":
                reached.add((frame.f_code.co_filename, frame.f_lineno))
            return on_line

        def on_call(frame: FrameType, _event: str, _value: Any) -> Any:
            return on_line if frame.f_code.co_filename.startswith(folder) else None

        began = time.process_time()
        sys.settrace(on_call)
        passed = _passes(item)
        sys.settrace(None)
        self._seconds.append(time.process_time() - began)
        for place in reached:
            self._reach[place].append(number)
        return passed

    def _tests_of(self, mutant: Mutant) -> list[pytest.Item]:
        """Return the tests that reach the lines of a mutant, the fastest first, up to a number of seconds."""
        file = import_module(mutant.module).__file__ or ""
        first, last = mutant.mutation.lines
        numbers = {number for line in range(first, last + 1) for number in self._reach[file, line]}
        chosen: list[pytest.Item] = []
        left: float = self._options.seconds
        for number in sorted(numbers, key=self._seconds.__getitem__):
            left -= self._seconds[number]
            if left > 0 or not chosen:
                chosen.append(self._items[number])
        return chosen

    # ---- mutants

    def _run(self, mutants: list[Mutant]) -> Iterator[dict[str, Any]]:
        running: dict[int, tuple[Mutant, int, int]] = {}
        waiting = iter(mutants)
        while True:
            while len(running) < self._options.jobs and (mutant := next(waiting, None)) is not None:
                tests = self._tests_of(mutant)
                reader, writer = os.pipe()
                child = os.fork()
                if not child:
                    self._judge(mutant, tests, writer)
                os.close(writer)
                running[child] = mutant, len(tests), reader
            if not running:
                return
            child, status = os.wait()
            mutant, number, reader = running.pop(child)
            with os.fdopen(reader, "rb") as pipe:
                by = pipe.read().decode()
            code = os.waitstatus_to_exitcode(status)
            verdict = "survived" if code == SURVIVED else "killed"
            yield mutant.to_data() | {
                "verdict": verdict,
                "by": by or ("" if code == SURVIVED else f"exit {code}"),
                "tests": number,
            }

    def _judge(self, mutant: Mutant, tests: list[pytest.Item], writer: int) -> None:
        """Plant a mutant and look for it, in a process of its own, which ends here."""
        code, by = SURVIVED, ""
        try:
            silence = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silence, 1)
            os.dup2(silence, 2)
            signal.alarm(SECONDS_MAX)
            module = import_module(mutant.module)
            if not plant_source(module, mutant.mutation.apply(source_of(module))):
                by = "not planted"
            for item in tests if not by else ():
                if not _passes(item):
                    code, by = KILLED, item.nodeid
                    break
            else:
                for seed in range(self._options.seeds) if not by else ():
                    if run_seed(seed).violations:
                        code, by = KILLED, f"seed {seed}"
                        break
        except BaseException as error:  # a mutant that ends the run is noticed
            code, by = KILLED, repr(error)[:200]
        os.write(writer, by.encode())
        os._exit(code)


def _identity(result: dict[str, Any]) -> tuple[str, ...]:
    """Return what a mutant is, wherever its line has moved."""
    return result["module"], result["function"], result["old"], result["new"]


def _passes(item: pytest.Item) -> bool:
    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=None))


def main() -> int:
    """Run all mutants and print the survivors."""
    parser = argparse.ArgumentParser(prog="python -m tests.whole.mutation")
    parser.add_argument("modules", nargs="*", help="modules of noetlvm/machine; default: all")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--seconds", type=float, default=10.0, help="of tests for one mutant, as slow as they are when traced"
    )
    parser.add_argument("--seeds", type=int, default=30, help="of the simulator for one mutant that passes the tests")
    parser.add_argument("--every", type=int, default=1, help="run every so many-th mutant only")
    parser.add_argument("--again", type=Path, help="results of a run: only what survived it")
    parser.add_argument("--json", type=Path, help="file for the results")
    options = parser.parse_args()
    run = MutationRun(options)
    words = ["-q", "-s", "-p", "no:xdist", "-p", "no:cacheprovider"]
    code = pytest.main([*words, "-o", "timeout=0", "-o", "session_timeout=0", *TESTS], plugins=[run])
    counts = Counter(result["verdict"] for result in run.results)
    print(dict(counts))
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
