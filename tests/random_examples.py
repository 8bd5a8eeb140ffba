"""Run the tests of Hypothesis with random examples: `python -m tests.random_examples --seconds 120`.

Each round has a seed, which is printed. With `--seed`, only the round of that seed runs.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent
SEEDS = 2**32


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the tests of Hypothesis with random examples.")
    parser.add_argument("--seconds", type=float, default=120.0, help="begin no round after this time")
    parser.add_argument("--seed", type=int, help="run the round of this seed, and no other")
    given = parser.parse_args()
    files = [str(file) for file in sorted(ROOT.rglob("test_*.py")) if "hypothesis import" in file.read_text("utf-8")]
    began, rounds, longest = time.monotonic(), 0, 0.0
    while not rounds or (given.seed is None and time.monotonic() - began + longest < given.seconds):
        seed, round_began = random.randrange(SEEDS) if given.seed is None else given.seed, time.monotonic()
        print(f"random examples of seed {seed}; to repeat them: make test-random SEED={seed}", flush=True)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-n",
            "auto",
            "-m",
            "hypothesis",
            f"--hypothesis-seed={seed}",
            *files,
        ]
        code = subprocess.run(command, env=os.environ | {"NOETL_EXAMPLES": "random"}, check=False).returncode
        if code:
            return code
        rounds, longest = rounds + 1, max(longest, time.monotonic() - round_began)
    return 0


if __name__ == "__main__":
    sys.exit(main())
