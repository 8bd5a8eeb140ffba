"""`make demo`: lints a playbook with mistakes; compiles, runs and shows one without.

It works on a copy and starts its own server, so it needs no network and can be repeated.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import server

EXAMPLES = Path(__file__).resolve().parent


def show(program: str, *arguments: str, cwd: Path, expect: int = 0) -> None:
    print(f"\n$ {program} {' '.join(arguments)}", flush=True)
    environment = os.environ | {"NOETLVM_DB": str(cwd / "demo.db")}
    done = subprocess.run([sys.executable, "-m", program, *arguments], cwd=cwd, check=False, env=environment)
    if done.returncode != expect:
        sys.exit(f"expected exit code {expect}, got {done.returncode}")


def main() -> None:
    running = server.start()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for path in EXAMPLES.glob("*.yaml"):
            shutil.copy(path, place)
        show("noetlc", "lint", "mistakes.yaml", "--format", "concise", cwd=place, expect=1)
        show("noetlc", "explain", "P601", cwd=place)
        show("noetlc", "lint", "pagination.yaml", cwd=place)
        show("noetlc", "compile", "pagination.yaml", cwd=place)
        show("noetlvm", "run", "pagination.nbc", "--set", f"api_url=http://127.0.0.1:{running.server_port}", cwd=place)
        show("noetlvm", "show", cwd=place)
    running.shutdown()


if __name__ == "__main__":
    main()
