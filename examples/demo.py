"""`make demo`: lint a playbook full of mistakes, mend what is safe to mend, then compile a clean one and look inside.

Works on a copy, so it can be run again and again.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent


def show(*arguments: str, cwd: Path, expect: int) -> None:
    print(f"\n$ noetlc {' '.join(arguments)}", flush=True)
    done = subprocess.run([sys.executable, "-m", "noetlc", *arguments], cwd=cwd, check=False)
    if done.returncode != expect:
        sys.exit(f"expected exit code {expect}, got {done.returncode}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for path in EXAMPLES.glob("*.yaml"):
            shutil.copy(path, place)
        show("lint", "mistakes.yaml", cwd=place, expect=1)
        show("lint", "mistakes.yaml", "--diff", cwd=place, expect=1)
        show("explain", "W601", cwd=place, expect=0)
        show("lint", "pagination.yaml", "nested_loops.yaml", "sugar.yaml", "workbook.yaml", cwd=place, expect=0)
        show("canon", "sugar.yaml", cwd=place, expect=0)
        show("compile", "pagination.yaml", "-o", "pagination.nbc", cwd=place, expect=0)
        show("inspect", "pagination.nbc", cwd=place, expect=0)
        show("where", "pagination.nbc", "next_page", cwd=place, expect=0)


if __name__ == "__main__":
    main()
