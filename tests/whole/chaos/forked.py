"""Servers and workers that start in milliseconds: forked from a process that has imported everything.

A killed one is a killed process like any other; only its start is cheap, so that thousands of kills take minutes.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import cast

from noetlvm.conformance.cluster import Cluster

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        "noetlvm.service.app",
        "noetlvm.service.process",
        "noetlvm.worker.remote_worker",
        "noetlvm.cli.server",
        "noetlvm.cli.worker",
        "noetlvm.bridge",
        "noetlvm.store.sqlite",
        "noetlvm.store.postgres",
        "noetlvm.results.files",
        "noetlvm.results.postgres",
        "noetlvm.tools.runner",
        "noetlvm.tools.shell",
        "noetlvm.wake.nats",
        "noetlvm.wake.notify",
        "uvicorn",
        "websockets.asyncio.client",
        "uvicorn.protocols.websockets.websockets_sansio_impl",
    ]
)


def _run(words: tuple[str, ...], environment: dict[str, str], out: str, folder: str, limits: dict[int, int]) -> None:
    """Be a command of `noetlvm`."""
    import resource

    os.setpgid(0, 0)
    os.chdir(folder)
    os.environ.update(environment)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    for descriptor, suffix in ((1, ".out"), (2, ".err")):
        opened = os.open(Path(out).with_suffix(suffix), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(opened, descriptor)
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115 - for as long as the process lives
    sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
    for kind, limit in limits.items():
        resource.setrlimit(kind, (limit, resource.getrlimit(kind)[1]))
    sys.argv = ["noetlvm", *words]
    from noetlvm.__main__ import main

    code = main()
    sys.stdout.flush()
    os._exit(code)


class ForkedProcess:
    """A forked process, with the methods of `subprocess.Popen` that a cluster uses."""

    def __init__(self, process: BaseProcess) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return cast("int", self._process.pid)

    def poll(self) -> int | None:
        return self._process.exitcode

    def kill(self) -> None:
        """Kill it with what it started: tools of a dead worker must not outlive the test."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.kill()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("noetlvm", timeout or 0.0)
        return self._process.exitcode


class ForkedCluster(Cluster):
    """A cluster of forked processes."""

    limits: dict[int, int] = {}
    """Resource limits of processes that start from now on."""

    def _spawn(self, *words: str) -> tuple[subprocess.Popen[bytes], Path]:
        self._count += 1
        out = self.folder / f"{words[0]}-{self._count}.out"
        out.touch()
        environment = {"NOETLVM_TOKEN": self.token, "HOME": str(self.folder)}
        process = _CONTEXT.Process(
            target=_run, args=(words, environment, str(out), str(self.folder), dict(self.limits)), daemon=True
        )
        process.start()
        return cast("subprocess.Popen[bytes]", ForkedProcess(process)), out
