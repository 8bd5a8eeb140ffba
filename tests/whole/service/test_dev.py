"""`noetlvm dev` as a process: what it starts works, and ends with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from noetlvm.client import Client

SECONDS_MAX = 120.0
"""How long a test waits for a process to end: much longer than a slow machine needs."""

PLAYBOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: hello, path: tests/hello }
workflow:
  - step: start
    tool: { kind: python, code: "result = 42" }
"""


@pytest.fixture
def dev(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    (tmp_path / "hello.yaml").write_text(PLAYBOOK, encoding="utf-8")
    command = [sys.executable, "-P", "-m", "noetlvm", "dev", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.communicate()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().partition("=")[2].strip()


def registered(process: subprocess.Popen[str]) -> None:
    """Wait until the folder's playbook is registered; the workers have started by then."""
    assert process.stderr is not None
    for text in process.stderr:
        if "registered as tests/hello" in text:
            return
    raise AssertionError("it ended")


def children(process: subprocess.Popen[str]) -> list[int]:
    return [int(word) for word in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


def command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")


def is_alive(pid: int) -> bool:
    try:
        return "(zombie)" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def test_a_playbook_of_the_folder_runs(dev: subprocess.Popen[str]) -> None:
    url, token = line(dev), line(dev)
    registered(dev)
    with Client(url, token) as client:
        started = client.start("tests/hello")
        assert client.wait(started)["result"] == 42


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL], ids=lambda s: s.name)
def test_server_and_workers_end_with_it(dev: subprocess.Popen[str], ending: signal.Signals) -> None:
    line(dev)
    registered(dev)
    started = children(dev)
    assert len(started) == 3
    os.kill(dev.pid, ending)
    dev.wait(SECONDS_MAX)
    give_up = time.monotonic() + SECONDS_MAX
    while left := [pid for pid in started if is_alive(pid)]:
        assert time.monotonic() < give_up, f"still running: {[command(pid) for pid in left]}"
        time.sleep(0.05)
