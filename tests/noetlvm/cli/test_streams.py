"""What becomes of a run whose output nobody takes: a closed stream, a reader that leaves, a full disk behind it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

PLAYBOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: plain, path: plain }
workflow:
  - step: first
    tool:
      - say: { kind: shell, command: [echo, hello] }
    next: { arcs: [{ step: second }] }
  - step: second
    tool: { kind: noop }
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    (tmp_path / "plain.yaml").write_text(PLAYBOOK)
    return Shell(tmp_path)


class Shell:
    """Runs lines of `sh` in which `noetlvm` and `noetlc` are the commands."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        named = line.replace("noetlvm", f"{sys.executable} -m noetlvm").replace("noetlc", f"{sys.executable} -m noetlc")
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "NOETLVM_DB": "runs.db"}
        return subprocess.run(["sh", "-c", named], cwd=self._folder, env=environment, capture_output=True, text=True)

    def statuses(self) -> list[str]:
        return [json.loads(line)["status"] for line in self.run("noetlvm list --json").stdout.splitlines()]


@pytest.mark.parametrize(
    "line",
    [
        "noetlvm run plain.yaml >&-",
        "noetlvm run plain.yaml 2>&-",
        "noetlvm run plain.yaml <&- >&- 2>&-",
        "noetlvm run plain.yaml 3>&1 2>&1 1>&3 | true; :",
        "noetlvm run plain.yaml 2>/dev/full",
    ],
)
def test_a_run_continues_though_its_output_is_not_read(shell: Shell, line: str) -> None:
    ended = shell.run(line)
    assert (ended.returncode, "Traceback" in ended.stderr + ended.stdout) == (0, False)
    assert shell.statuses() == ["success"]


@pytest.mark.parametrize("command", ["noetlvm list", "noetlvm tools", "noetlc lint plain.yaml", "noetlc explain"])
def test_a_closed_output_is_no_defect(shell: Shell, command: str) -> None:
    shell.run("noetlvm run plain.yaml -q")
    ended = shell.run(f"{command} >&-")
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("command", ["noetlvm run plain.yaml --json", "noetlvm tools", "noetlc explain"])
def test_an_output_that_cannot_be_written_is_reported_as_what_it_is(shell: Shell, command: str) -> None:
    ended = shell.run(f"{command} > /dev/full")
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1] == f"{command.split()[0]}: cannot read or write: No space left on device"
