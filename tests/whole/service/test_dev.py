"""`noetlvm dev` as a process: what it starts works, and ends with it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from noetlvm.client import Client
from tests.waiting import wait_until
from tests.whole.service.processes import wait_for

PATIENCE_SECONDS = 120
PLAYBOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: hello, path: tests/hello }
workflow:
  - step: start
    tool: { kind: python, code: "result = 42" }
"""


class Dev:
    """The process. It writes to files, so that it never waits for a reader."""

    def __init__(self, folder: Path) -> None:
        (folder / "hello.yaml").write_text(PLAYBOOK, encoding="utf-8")
        command = [sys.executable, "-P", "-m", "noetlvm", "dev", str(folder)]
        self._out, self._err = folder / "out", folder / "err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)

    def wait_until_registered(self) -> tuple[str, str]:
        """Return URL and token once the folder's playbook is registered; the workers have started by then."""
        wait_until(lambda: self.has_ended or "registered as tests/hello" in self._err.read_text(), PATIENCE_SECONDS)
        assert not self.has_ended, self._err.read_text()
        url, token = (line.partition("=")[2] for line in self._out.read_text().splitlines())
        return url, token

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def close(self) -> None:
        """Kill it; what it started ends with it, or is killed too."""
        started = [] if self.has_ended else psutil.Process(self.process.pid).children()
        self.process.kill()
        self.process.wait(PATIENCE_SECONDS)
        for child in psutil.wait_procs(started, 10)[1]:
            child.kill()


@pytest.fixture
def dev(tmp_path: Path) -> Iterator[Dev]:
    made = Dev(tmp_path)
    try:
        yield made
    finally:
        made.close()


def is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_a_playbook_of_the_folder_runs(dev: Dev) -> None:
    url, token = dev.wait_until_registered()
    with Client(url, token) as client:
        assert wait_for(client, client.start("tests/hello"))["result"] == 42


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL], ids=lambda s: s.name)
def test_server_and_workers_end_with_it(dev: Dev, ending: signal.Signals) -> None:
    dev.wait_until_registered()
    started = psutil.Process(dev.process.pid).children()
    assert len(started) == 3
    commands = {child.pid: " ".join(child.cmdline()) for child in started}
    dev.process.send_signal(ending)
    dev.process.wait(PATIENCE_SECONDS)
    left: list[str] = []

    def all_have_ended() -> bool:
        left[:] = [commands[child.pid] for child in started if is_alive(child)]
        return not left

    wait_until(all_have_ended)
