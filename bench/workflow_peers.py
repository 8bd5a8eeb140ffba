"""The workflow engines beside ours: each in an environment of its own, installed once in a run of the benchmarks.

A peer that cannot be installed is missing, never guessed. Each keeps its state in SQLite with its own settings, which
its title states. Their tasks do nothing, as ours do.
"""

from __future__ import annotations

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

# Arguments: job, folder, tasks of an execution, executions at once.
_DBOS = """\
import asyncio, json, sys, time
from dbos import DBOS

job, folder, tasks, executions = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
DBOS(config={"name": "bench", "system_database_url": f"sqlite:///{folder}/dbos.db", "log_level": "ERROR"})

@DBOS.step()
def work():
    pass

@DBOS.step()
async def work_on_item():
    pass

@DBOS.workflow()
def chain():
    for _ in range(tasks):
        work()

@DBOS.workflow()
async def loop():
    await asyncio.gather(*(work_on_item() for _ in range(tasks)))

def run_chains():
    for handle in [DBOS.start_workflow(chain) for _ in range(executions)]:
        handle.get_result()

DBOS.launch()
began = time.perf_counter()
run_chains() if job == "chain" else asyncio.run(loop())
print(json.dumps({"seconds": time.perf_counter() - began}))
DBOS.destroy()
"""

_PREFECT = """\
import json, os, sys, time

job, folder, tasks = sys.argv[1], sys.argv[2], int(sys.argv[3])
os.environ |= {
    "PREFECT_HOME": folder,
    "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "true",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
}
from prefect import flow, task

@task
def work():
    pass

@flow
def chain(tasks):
    for _ in range(tasks):
        work()

@flow
def loop(tasks):
    for future in [work.submit() for _ in range(tasks)]:
        future.result()

run = {"chain": chain, "loop": loop}[job]
run(1)  # starts its server, which is nobody's time
began = time.perf_counter()
run(tasks)
print(json.dumps({"seconds": time.perf_counter() - began}), flush=True)
"""


@dataclass(frozen=True, slots=True)
class WorkflowPeer:
    """A workflow engine that may be installed."""

    package: str
    version: str
    settings: str
    driver: str
    along: tuple[str, ...] = ()
    """What else must be installed, in versions that this one works with."""

    @property
    def title(self) -> str:
        """Return what the table calls it."""
        return f"{self.package} {self.version} ({self.settings})"

    def machine(self, job: str, tasks: int, executions: int = 1) -> Machine | None:
        """Return it at work on a job; None if it is missing."""
        python = _python_with(self.package, (f"{self.package}=={self.version}", *self.along))
        if python is None:
            return None
        driver = python.parent / f"bench_{self.package}.py"
        driver.write_text(self.driver, encoding="utf-8")
        return Machine(self.title, lambda folder: [python, driver, job, folder, str(tasks), str(executions)])

    def row(self, job: str, ours: Cost, costs: Mapping[str, Cost], goal: Goal) -> Row:
        """Return the line of the table that shows ours beside it."""
        theirs = costs.get(self.title)
        return Row(job, ours.seconds, self.title, theirs.seconds if theirs else None, goal)


DBOS = WorkflowPeer("dbos", "3.3.0", "sqlite, rollback journal, synchronous=FULL", _DBOS)
PREFECT = WorkflowPeer("prefect", "3.8.8", "its own server on sqlite", _PREFECT, ("fastapi==0.139.*",))


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


def _must_run(*command: str) -> None:
    subprocess.run(command, capture_output=True, timeout=INSTALL_SECONDS, check=True)
