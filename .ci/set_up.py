"""Makes the virtual environment of this checkout, and prints what it is doing: `python .ci/set_up.py FOLDER`.

Before that there is nothing but Python, so it needs no package.
"""

from __future__ import annotations

import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SECONDS_BETWEEN_LINES = 5
"""Where output is no terminal, so that a log stays short."""


def main() -> None:
    folder = Path(sys.argv[1])
    began = time.monotonic()
    say(f"Setting up {folder} for Python {sys.version.split()[0]}: once, a minute or two.")
    say("  creating the environment")
    venv.create(folder, with_pip=True)
    place = next(path for path in (folder / "bin" / "python", folder / "Scripts" / "python.exe") if path.exists())
    install(place.absolute(), began)
    say(f"  done in {time.monotonic() - began:.0f} s")


def install(python: Path, began: float) -> None:
    """Install the checkout with what its tests need, in the versions of constraints.txt."""
    command = [python, "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off"]
    command += ["--root-user-action=ignore", "-c", "constraints.txt", "-e", ".[test,check]"]
    pip = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert pip.stdout is not None
    lines: list[str] = []
    collected, shown, is_last = 0, began, False
    for line in pip.stdout:
        lines.append(line)
        if is_last:
            continue
        collected += line.lstrip().startswith("Collecting ")
        is_last = line.startswith("Installing collected packages")
        text = f"installing {collected} packages" if is_last else f"collecting packages: {collected}"
        now = time.monotonic()
        if sys.stdout.isatty():
            print(f"\r  {text}, {now - began:.0f} s\033[K", end="\n" if is_last else "", flush=True)
        elif is_last or now - shown > SECONDS_BETWEEN_LINES:
            say(f"  {text}, {now - began:.0f} s")
            shown = now
    if pip.wait():
        say("\n" + "".join(lines[-30:]))
        sys.exit("pip could not install the packages; its last lines are above")


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
