"""Where a benchmark runs: a temporary folder, a cache of its own, and processes in an environment that is ours.

Bytecode must be written, whatever the caller's shell says: start-up without `.pyc` files is another measurement.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_DISTURBING = ("PYTHONDONTWRITEBYTECODE", "PYTHONPROFILEIMPORTTIME", "PYTHONDEVMODE", "NOETLC_DEBUG")
_RESULTS = "lint-*.json"
ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = Path(sys.executable).parent


@dataclass(frozen=True, slots=True)
class Workplace:
    """The folder of one benchmark, and how often it repeats what it times."""

    folder: Path
    rounds: int
    quick: bool = False

    @property
    def cache(self) -> Path:
        """Return the cache folder of our own processes."""
        return self.folder / "cache"

    def run(self, command: Sequence[str | Path], folder: Path | None = None, codes: Sequence[int] = (0,)) -> str:
        """Run a command to its end and return what it printed. An unexpected exit code stops the benchmark."""
        done = subprocess.run(
            [str(word) for word in command],
            cwd=folder or self.folder,
            env=self._environment(),
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )
        if done.returncode not in codes:
            said = (done.stderr or done.stdout).strip()[-2000:]
            raise RuntimeError(f"exit code {done.returncode} of {' '.join(map(str, command))}\n{said}")
        return done.stdout

    def forget_results(self) -> None:
        """Remove lint's cached results, and keep the parse tables."""
        for file in self.cache.glob(_RESULTS):
            file.unlink()

    def require_results(self) -> None:
        """Stop if lint has cached nothing: then `forget_results` forgets nothing either, and times mean nothing."""
        if not any(self.cache.glob(_RESULTS)):
            raise RuntimeError(f"lint kept no results as {_RESULTS} in {self.cache}")

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in _DISTURBING}
        return kept | {"NOETLC_CACHE": str(self.cache), "PYTHONPATH": str(ROOT)}


def noetlc(*arguments: str | Path) -> list[str | Path]:
    """Return the command that runs our compiler: the console script where it is installed, else the module."""
    script = console_script()
    return [script, *arguments] if script else [sys.executable, "-m", "noetlc", *arguments]


def console_script() -> Path | None:
    """Return the installed `noetlc` of this environment."""
    script = SCRIPTS / "noetlc"
    return script if script.exists() else None
