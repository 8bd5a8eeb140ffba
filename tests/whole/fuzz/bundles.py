"""The fuzzer's command: `python tests/whole/fuzz/bundles.py --count 20000 --seed 1`. It fails if it finds a defect."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def main() -> int:
    """Run and report."""
    parser = argparse.ArgumentParser(description="Change valid bundles at random and load them.")
    parser.add_argument("--count", type=int, default=20_000, help="how many cases (default 20000)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (default 1)")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))  # a script's own folder is on the path, the project is not
    from tests.whole.fuzz.campaign import run

    findings = run(options.count, options.seed)
    for name, count in sorted(findings.counts.items()):
        print(f"{count:>8}  {name}")
    for defect in findings.defects[:10]:
        print(f"\n{defect}")
    print(f"{len(findings.defects)} defects in {options.count} cases")
    return 1 if findings.defects else 0


if __name__ == "__main__":
    sys.exit(main())
