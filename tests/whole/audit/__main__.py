"""The whole audit: `python -m tests.whole.audit [--only NAME]… [--times N]`.

Every part also runs in the tests, with a smaller share. The exit code is 1 if any part finds something.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[3]
PYTEST = ("-m", "pytest", "-q", "-n", "auto")


class Part(NamedTuple):
    """One part of the audit, as a command of this interpreter."""

    what: str
    command: tuple[str, ...]
    count: str = ""
    """Option that says how many; `--times` multiplies it."""
    most: int = 0
    variable: str = ""
    """Environment variable that says how many, where there is no option."""


PARTS = {
    "predicted": Part("playbooks with a predicted end", (*PYTEST, "tests/whole/audit/test_predicted.py")),
    "walls": Part("attempts on the python task's sandbox", (*PYTEST, "tests/whole/audit/test_walls.py")),
    "hostile": Part("hostile playbooks", (*PYTEST, "tests/whole/audit/test_hostile.py")),
    "secrets": Part("runs with planted secrets", ("-m", "tests.whole.audit.secrets")),
    "templates": Part("templates", ("-m", "tests.whole.oracle.expressions"), "--count", 70_000),
    "mutants": Part("mutated bundles", ("-m", "tests.whole.fuzz.bundles"), "--count", 147_800),
    "kills": Part("kill -9", (*PYTEST, "tests/whole/kill"), most=52, variable="KILL_SEEDS"),
}


def run(part: Part, times: int) -> bool:
    """Run a part; return whether it found nothing."""
    command = [sys.executable, *part.command]
    environment = dict(os.environ)
    if part.count:
        command += [part.count, str(part.most * times)]
    if part.variable:
        environment[part.variable] = str(part.most * times)
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode == 0


def main() -> int:
    """Run the parts one after the other and print a summary."""
    parser = argparse.ArgumentParser(prog="python -m tests.whole.audit")
    parser.add_argument("--only", action="append", choices=PARTS, help="part to run; repeatable")
    parser.add_argument("--times", type=int, default=1, help="how many times as much, where a part has a count")
    options = parser.parse_args()
    rows = []
    for name in options.only or PARTS:
        print(f"\n== {name}: {PARTS[name].what}", flush=True)
        began = time.monotonic()
        is_clean = run(PARTS[name], options.times)
        rows.append((name, is_clean, time.monotonic() - began))
    print()
    for name, is_clean, seconds in rows:
        print(f"{name:10} {'nothing found' if is_clean else 'FOUND SOMETHING':16} {seconds:8.1f} s")
    return 0 if all(is_clean for _, is_clean, _ in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
