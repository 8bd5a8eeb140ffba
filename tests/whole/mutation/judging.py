"""Judges mutants: each in a forked process, by the tests that reach its lines and then by seeds of the simulator.

The tests are collected, and run once to see what each reaches, before the first fork.
"""

from __future__ import annotations

import gc
import os
import pickle
import resource
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import Phase, settings

from noetlvm.sim.campaign import run_seed
from tests.whole.mutation.operators import Mutation, mutations
from tests.whole.mutation.planting import plant_source, source_of

MACHINE = Path(__file__).parents[3] / "noetlvm" / "machine"
REACH = Path(tempfile.gettempdir()) / f"noetlvm-mutation-{os.getuid()}.pickle"
"""What tests reach, from earlier runs."""
SURVIVED, KILLED = 0, 1
_SLOWER = 10
"""A test that takes so many times its time does not end: its mutant is noticed."""
_SECONDS_LEAST = 1.5
_SECONDS_BLOCKED = 60
_BYTES_MAX = 4 << 30


class Mutant(NamedTuple):
    """One mutant of one module."""

    module: str
    text: str
    """The line that it begins in."""
    mutation: Mutation

    @property
    def identity(self) -> tuple[str, ...]:
        """What it is, wherever its line has moved."""
        return self.module, self.mutation.function, self.text, self.mutation.old, self.mutation.new


class _Reach(NamedTuple):
    """What a test does."""

    seconds: float
    """Of CPU, traced."""
    places: tuple[tuple[str, int], ...]
    """Modules and lines."""


class Verdict(NamedTuple):
    """What became of a mutant."""

    mutant: Mutant
    is_killed: bool
    by: str
    tests: int
    """That reach it."""
    seconds: float
    """Of CPU."""

    def to_data(self) -> dict[str, Any]:
        module, function, text, old, new = self.mutant.identity
        verdict = "killed" if self.is_killed else "survived"
        line = self.mutant.mutation.lines[0]
        data = {"module": module, "function": function, "line": line, "text": text, "old": old, "new": new}
        return data | {"verdict": verdict, "by": self.by, "tests": self.tests, "seconds": round(self.seconds, 2)}


def all_mutants(modules: list[str]) -> list[Mutant]:
    """Return every mutant of some modules, by the order of the text."""
    found: list[Mutant] = []
    for name in modules:
        source = source_of(import_module(f"noetlvm.machine.{name}"))
        lines = source.encode().splitlines()
        for one in mutations(source):
            number = source.encode()[: one.start].count(b"\n")
            found.append(Mutant(name, lines[number].decode().strip(), one))
    return found


class Judge:
    """A plugin of pytest: instead of running the tests once, it runs them over every mutant."""

    def __init__(
        self,
        mutants: list[Mutant],
        on_verdict: Callable[[Verdict], None],
        *,
        jobs: int,
        seconds: float,
        seeds: int,
    ) -> None:
        self._mutants = mutants
        self._on_verdict = on_verdict
        self._jobs = jobs
        self._seconds_each = seconds
        self._seeds = seeds
        self._items: list[pytest.Item] = []
        self._reach: dict[tuple[str, int], list[int]] = defaultdict(list)
        """Tests by module and line, by their number."""
        self._seconds: list[float] = []
        self._kills: Counter[str] = Counter()

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        settings.register_profile("mutants", settings(), phases=[Phase.explicit, Phase.generate])
        settings.load_profile("mutants")
        self._items = session.items
        run_seed(0)  # everything is imported before processes are forked
        self._look_up_reach()
        print(f"{len(self._items)} tests in {sum(self._seconds):.0f} s of CPU", flush=True)
        gc.freeze()
        for verdict in self._run():
            self._kills[verdict.by] += 1
            self._on_verdict(verdict)
        return True

    # ---- what tests reach

    def _look_up_reach(self) -> None:
        """Find out what each test reaches; what is known from a run with the same files is not traced again."""
        machine = b"".join(path.read_bytes() for path in sorted(MACHINE.glob("*.py")))
        known: dict[str, _Reach] = pickle.loads(REACH.read_bytes()) if REACH.exists() else {}
        found: dict[str, _Reach] = {}
        for number, item in enumerate(self._items):
            digest = sha256(machine + item.path.read_bytes() + item.nodeid.encode()).hexdigest()
            one = found[digest] = known.get(digest) or self._traced(item)
            self._seconds.append(one.seconds)
            for place in one.places:
                self._reach[place].append(number)
        REACH.write_bytes(pickle.dumps(known | found))

    def _traced(self, item: pytest.Item) -> _Reach:
        left: dict[CodeType, set[int]] = {}
        """Lines of a code that the test has not reached: a code without any is traced no more."""
        folder = f"{MACHINE}{os.sep}"

        def on_line(frame: FrameType, event: str, _value: Any) -> Any:
            if event == "line":
                left[frame.f_code].discard(frame.f_lineno)
            return on_line

        def on_call(frame: FrameType, _event: str, _value: Any) -> Any:
            code = frame.f_code
            lines = left.get(code)
            if lines is None:
                if not code.co_filename.startswith(folder):
                    return None
                lines = left[code] = set(_lines_of(code))
            return on_line if lines else None

        began = time.process_time()
        sys.settrace(on_call)
        passed = _passes(item, None)
        sys.settrace(None)
        seconds = time.process_time() - began
        if not passed:
            raise pytest.UsageError(f"{item.nodeid} fails without a mutant")
        reached = (
            (Path(code.co_filename).stem, line) for code, lines in left.items() for line in _lines_of(code) - lines
        )
        return _Reach(seconds, tuple(sorted(set(reached))))

    def _tests_of(self, mutant: Mutant) -> list[int]:
        """Return the tests that reach the lines of a mutant, up to a number of seconds.

        The fastest come first, and those that have killed many.
        """
        first, last = mutant.mutation.lines
        numbers = {number for line in range(first, last + 1) for number in self._reach[mutant.module, line]}
        chosen: list[int] = []
        left = self._seconds_each
        for number in sorted(numbers, key=lambda one: self._seconds[one] / (1 + self._kills[self._items[one].nodeid])):
            if self._seconds[number] < left or not chosen:
                chosen.append(number)
                left -= self._seconds[number]
        return chosen

    # ---- mutants

    def _run(self) -> Iterator[Verdict]:
        running: dict[int, tuple[Mutant, int, int]] = {}
        waiting = iter(self._mutants)
        while True:
            while len(running) < self._jobs and (mutant := next(waiting, None)) is not None:
                tests = self._tests_of(mutant)
                reader, writer = os.pipe()
                child = os.fork()
                if not child:
                    self._judge(mutant, tests, writer)
                os.close(writer)
                running[child] = mutant, len(tests), reader
            if not running:
                return
            child, status, usage = os.wait3(0)
            mutant, number, reader = running.pop(child)
            with os.fdopen(reader, "rb") as pipe:
                by = pipe.read().decode()
            code = os.waitstatus_to_exitcode(status)
            by = by or ("" if code == SURVIVED else f"exit {code}")
            yield Verdict(mutant, code != SURVIVED, by, number, usage.ru_utime + usage.ru_stime)

    def _judge(self, mutant: Mutant, tests: list[int], writer: int) -> None:
        """Plant a mutant and look for it, in a process of its own, which ends here."""
        code, by = SURVIVED, ""
        try:
            silence = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silence, 1)
            os.dup2(silence, 2)
            resource.setrlimit(resource.RLIMIT_AS, (_BYTES_MAX, _BYTES_MAX))
            module = import_module(f"noetlvm.machine.{mutant.module}")
            if not plant_source(module, mutant.mutation.apply(source_of(module))):
                by = "not planted"
            elif by := self._catcher(tests):
                code = KILLED
        except BaseException as error:  # a mutant that ends the run is noticed
            code, by = KILLED, repr(error)[:200]
        os.write(writer, by.encode())
        os._exit(code)

    def _catcher(self, tests: list[int]) -> str:
        """Return what notices the mutant that this process has."""
        for number, following in zip(tests, [*tests[1:], None], strict=False):  # there may be no test
            _limit(self._seconds[number])
            if not _passes(self._items[number], None if following is None else self._items[following]):
                return self._items[number].nodeid
        for seed in range(self._seeds):
            _limit(1.0)
            if run_seed(seed).violations:
                return f"seed {seed}"
        return ""


def _lines_of(code: CodeType) -> set[int]:
    return {line for _, _, line in code.co_lines() if line}


def _limit(seconds: float) -> None:
    """End this process if what comes next needs much more CPU than usual, or waits forever."""
    signal.setitimer(signal.ITIMER_PROF, max(_SECONDS_LEAST, seconds * _SLOWER))
    signal.alarm(int(_SECONDS_BLOCKED + seconds * _SLOWER))


def _passes(item: pytest.Item, following: pytest.Item | None) -> bool:
    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=following))
