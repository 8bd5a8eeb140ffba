"""Runs the short tests with every other Python of this machine, and with the lowest versions of packages.

`python .ci/versions.py [3.12 3.13 3.14 lowest]`. The lowest versions are those that pyproject.toml allows. uv, which is
installed in build/versions, makes the environments there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "versions"
TESTS = ROOT / "tests" / "short.txt"
OLDEST, LATER = "3.11", ("3.12", "3.13", "3.14")
LOWEST = "lowest"
"""The lowest versions of packages, on the oldest Python: there is a wheel of each for that."""


def main() -> None:
    wanted = sys.argv[1:] or [*LATER, LOWEST]
    own = ".".join(map(str, sys.version_info[:2]))
    failed = []
    for name in wanted:
        version = OLDEST if name == LOWEST else name
        if name == own:
            print(f"Python {name}: `make test` runs on it, not tested again", flush=True)
        elif (interpreter := find_interpreter(version)) is None:
            print(f"Python {version}: no interpreter on this machine, {name} not tested", flush=True)
        elif not is_green(name, interpreter):
            failed.append(name)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def find_interpreter(version: str) -> str | None:
    """Return a Python of that version: this one, one on the path, or one of pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    named = shutil.which(f"python{version}")
    for path in (sys.executable, named, *sorted(map(str, pyenv.glob(f"{version}.*/bin/python")))):
        if path is not None and version_of(path) == version:
            return path
    return None


def version_of(path: str) -> str:
    """Return the version of an interpreter; empty for a command of pyenv that selects none."""
    code = "import sys; print('.'.join(map(str, sys.version_info[:2])))"
    return subprocess.run([path, "-c", code], capture_output=True, text=True, check=False).stdout.strip()


def is_green(name: str, interpreter: str) -> bool:
    began = time.monotonic()
    place = FOLDER / name
    title = "lowest versions of packages" if name == LOWEST else f"Python {name}"
    print(f"{title}: installing", flush=True)
    run(uv(), "venv", "--quiet", "--clear", "--python", interpreter, place)
    python = place / "bin" / "python"
    versions = ["--resolution", "lowest-direct"] if name == LOWEST else ["-c", ROOT / "constraints.txt"]
    run(uv(), "pip", "install", "--quiet", "--python", python, *versions, "-e", f"{ROOT}[test]")
    print(f"{title}: testing", flush=True)
    command = [python, "-m", "pytest", "-n", "auto", "-q", "-m", "not long", "-p", "no:cacheprovider", f"@{TESTS}"]
    code = subprocess.run(list(map(str, command)), cwd=ROOT, check=False).returncode
    print(f"{title}: {'passed' if code == 0 else 'FAILED'} in {time.monotonic() - began:.0f} s", flush=True)
    return code == 0


def uv() -> Path:
    """Return the path of uv; install it when needed."""
    place = FOLDER / "uv"
    path = place / "bin" / "uv"
    if not path.exists():
        venv.create(place, with_pip=True)
        run(place / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "uv")
    return path


def run(*words: str | Path) -> None:
    done = subprocess.run(list(map(str, words)), cwd=ROOT, text=True, capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    main()
