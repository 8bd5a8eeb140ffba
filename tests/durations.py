"""Where the time of the tests goes, by folder and by kind: `python -m tests.durations junit.xml`.

The file comes from `python -m pytest -n auto -p tests.durations --junitxml=junit.xml`: with this module as a plugin it
also has the CPU time of each test and of the processes that the test has waited for.
"""

from __future__ import annotations

import argparse
import resource
import xml.etree.ElementTree as ET
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

CPU = "cpu_s"
SLOWEST = 20
KINDS = {
    "tests/whole/conformance": "conformance",
    "tests/whole/sim": "simulation",
    "tests/whole/mutation": "simulation",
    "tests/whole/fuzz": "random input",
    "tests/whole/oracle": "random input",
    "tests/whole/audit": "audit",
    "tests/whole": "whole programs and processes",
    "tests/noetlvm/service": "the service",
    "tests/noetlvm": "the machine and its parts",
    "tests/noetlc": "the compiler",
}
"""What tests are about, by folder; the longest one counts."""


class Test(NamedTuple):
    """One test of a run."""

    folder: str
    name: str
    seconds: float
    cpu: float

    @property
    def kind(self) -> str:
        parents = [self.folder, *map(str, Path(self.folder).parents)]
        return next((KINDS[one] for one in parents if one in KINDS), "the rest")


# ---- the plugin


def _cpu_seconds() -> float:
    used = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


_BEGAN = pytest.StashKey[float]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_BEGAN] = _cpu_seconds()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    try:
        return (yield)
    finally:
        item.user_properties.append((CPU, f"{_cpu_seconds() - item.stash[_BEGAN]:.3f}"))


# ---- the table


def read(file: Path) -> Iterator[Test]:
    for case in ET.parse(file).getroot().iter("testcase"):
        parts = case.get("classname", "").split(".")
        at = next((number for number, part in enumerate(parts) if part.startswith("test_")), len(parts))
        cpu = sum(float(one.get("value", 0)) for one in case.iter("property") if one.get("name") == CPU)
        name = "::".join(["/".join(parts[: at + 1]), *parts[at + 1 :], case.get("name", "")])
        yield Test("/".join(parts[:at]), name, float(case.get("time", 0)), cpu)


def table(tests: list[Test], title: str, key: Callable[[Test], str], rows: int | None = None) -> Iterator[str]:
    """Yield the lines of a Markdown table: the sums over the tests with one key, the largest first."""
    yield f"| {title} | tests | seconds | of them CPU |"
    yield "|---|--:|--:|--:|"
    sums: dict[str, list[float]] = {}
    for test in tests:
        row = sums.setdefault(key(test), [0, 0, 0])
        row[:] = row[0] + 1, row[1] + test.seconds, row[2] + test.cpu
    for name, (count, seconds, cpu) in sorted(sums.items(), key=lambda one: -one[1][1])[:rows]:
        yield f"| {name} | {count:.0f} | {seconds:.1f} | {cpu:.1f} |"


def main() -> None:
    """Print three tables: by kind, by folder, and the slowest tests."""
    parser = argparse.ArgumentParser(prog="python -m tests.durations", description=__doc__)
    parser.add_argument("junit", type=Path, help="what `--junitxml` wrote")
    tests = list(read(parser.parse_args().junit))
    print(*table(tests, "all", lambda _test: "all"), sep="\n", end="\n\n")
    print(*table(tests, "kind", lambda test: test.kind), sep="\n", end="\n\n")
    print(*table(tests, "folder", lambda test: test.folder), sep="\n", end="\n\n")
    print(*table(tests, "slowest", lambda test: test.name, SLOWEST), sep="\n")


if __name__ == "__main__":
    main()
