"""Pausing, resuming and cancelling an execution from another process, and without any process that runs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from noetlvm.store.interface import StoreError
from noetlvm.store.sqlite import SqliteReader
from tests.commands import Command
from tests.waiting import wait_until

ROOT = Path(__file__).parents[3]
PATIENCE_SECONDS = 60

PLAYBOOK = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: waiting, path: waiting }
workload: { gate: "" }
workflow:
  - step: first
    tool:
      - wait_for_file:
          kind: shell
          command: [sh, -c, 'touch "$0.begun"; while ! test -e "$0"; do sleep 0.02; done', "{{ workload.gate }}"]
    next: { arcs: [{ step: second }] }
  - step: second
    tool: { kind: noop }
"""


def _receive_hangup() -> None:
    """The tests themselves may run under `nohup`."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class Running:
    """A process that runs a playbook which waits until its gate opens."""

    def __init__(self, folder: Path, *, ignores_hangup: bool = False) -> None:
        self.gate = folder / "gate"
        self.database = folder / "executions.db"
        self.errors = folder / "errors.txt"
        (folder / "waiting.yaml").write_text(PLAYBOOK)
        command = [sys.executable, "-m", "noetlvm", "run", "waiting.yaml", "--set", f"gate={self.gate}", "--json"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "NOETLVM_DB": str(self.database)}
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=self.errors.open("w"),
            text=True,
            cwd=folder,
            env=environment,
            preexec_fn=None if ignores_hangup else _receive_hangup,
        )
        # That a task has started is in the log before its tool begins: a signal between the two would leave it out.
        wait_until(Path(f"{self.gate}.begun").exists)
        self.wait_for(lambda names: "task.started" in names)

    def names(self) -> list[str]:
        try:
            reader = SqliteReader(self.database)
        except StoreError:  # it is not there yet
            return []
        try:
            rows = reader.executions()
            return [one.event.name for row in rows for one in reader.events(row.execution_id)]
        finally:
            reader.close()

    def wait_for_a_signal(self) -> None:
        """Wait until the process has received a signal."""
        wait_until(lambda: "stopping:" in self.errors.read_text() or self.process.poll() is not None)

    def wait_for(self, holds: Callable[[list[str]], bool]) -> None:
        wait_until(lambda: holds(self.names()))

    def ended(self) -> dict[str, Any]:
        out, _ = self.process.communicate(timeout=PATIENCE_SECONDS)
        found = json.loads(out)
        assert isinstance(found, dict)
        return found


@pytest.fixture
def running(noetlvm: Command, tmp_path: Path) -> Iterator[Running]:
    made = Running(tmp_path)
    yield made
    made.gate.touch()
    if made.process.poll() is None:
        made.process.kill()
    made.process.wait(PATIENCE_SECONDS)


def test_another_process_can_cancel(running: Running, noetlvm: Command) -> None:
    id = json.loads(noetlvm("list", "--json").out)["execution_id"]
    answer = noetlvm("cancel", id)
    assert (answer.code, "the process that runs it will cancel it" in answer.err) == (0, True)
    assert running.ended()["status"] == "cancelled"
    assert running.process.returncode == 1


def test_another_process_can_pause_and_resume(running: Running, noetlvm: Command) -> None:
    id = json.loads(noetlvm("list", "--json").out)["execution_id"]
    noetlvm("pause", id)
    running.wait_for(lambda names: "execution.paused" in names)
    running.gate.touch()
    running.wait_for(lambda names: "step.done" in names)
    assert noetlvm("show", id, "--json").data["status"] == "paused"
    assert noetlvm("resume", id).code == 0
    assert running.ended()["status"] == "success"


def test_a_second_process_is_refused_and_says_who_has_the_database(running: Running, noetlvm: Command) -> None:
    answer = noetlvm("run", "waiting.yaml")
    assert answer.code == 2
    assert f"in use by process {running.process.pid}" in answer.err


def test_ctrl_c_waits_for_the_task_and_a_second_one_does_not(running: Running, noetlvm: Command) -> None:
    running.process.send_signal(signal.SIGINT)
    running.wait_for_a_signal()
    assert running.process.poll() is None
    running.process.send_signal(signal.SIGINT)
    assert running.ended()["status"] == "running"
    assert running.process.returncode == 130
    assert "task.done" not in running.names()
    running.gate.touch()
    assert noetlvm("resume", "--json").data["status"] == "success"


def test_a_terminal_that_is_closed_stops_a_run_in_good_order(running: Running, noetlvm: Command) -> None:
    running.process.send_signal(signal.SIGHUP)
    running.wait_for_a_signal()
    running.gate.touch()
    assert running.ended()["status"] == "running"
    assert running.process.returncode == 130
    assert "task.done" in running.names()
    assert noetlvm("resume", "--json").data["status"] == "success"


def test_nohup_lets_a_run_outlive_its_terminal(noetlvm: Command, tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        running = Running(tmp_path, ignores_hangup=True)
    finally:
        signal.signal(signal.SIGHUP, before)
    running.process.send_signal(signal.SIGHUP)
    running.gate.touch()
    assert running.ended()["status"] == "success"


def test_what_nobody_runs_is_cancelled_on_the_spot(running: Running, noetlvm: Command) -> None:
    running.process.kill()
    running.process.wait(PATIENCE_SECONDS)
    id = json.loads(noetlvm("list", "--json").out)["execution_id"]
    assert noetlvm("pause", id[-12:]).err == f"{id}: paused\n"
    assert noetlvm("cancel", id).err == f"{id}: cancelled\n"
    assert noetlvm("show", id, "--json").data["status"] == "cancelled"
    assert noetlvm("resume").code == 0
