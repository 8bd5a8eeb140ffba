"""`make chaos`: python -m tests.whole.chaos [--seconds 300] [--seed 1] [--out FILE]."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from tests.whole.chaos.campaign import run


def main() -> int:
    parser = argparse.ArgumentParser("chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("bench/results/chaos.json"))
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        report = run(Path(folder), wanted.seconds, wanted.seed)
    wanted.out.parent.mkdir(parents=True, exist_ok=True)
    wanted.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(report, indent=2))
    return 1 if report["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
