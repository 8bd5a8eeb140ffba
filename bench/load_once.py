"""Loads one bundle in a fresh process, and prints the seconds that decoding and verifying it took.

Usage: python -m bench.load_once BUNDLE
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from noetlvm.bytecode.verify.verifier import load


def load_once(path: Path) -> float:
    """Load a bundle as a machine does, without its debug map; the second load counts, so that nothing is imported."""
    data = path.read_bytes()
    load(data, debug=False)
    began = time.perf_counter()
    load(data, debug=False)
    return time.perf_counter() - began


if __name__ == "__main__":
    print(load_once(Path(sys.argv[1])))
