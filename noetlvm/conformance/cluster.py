"""Servers and workers as processes over one store."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from noetlvm.client.client import Client
from noetlvm.command_line.process import CommandError

START_SECONDS = 120
STOP_SECONDS = 30
COMMAND_SECONDS = 180
_ROOT = Path(__file__).resolve().parents[2]


class ServerProcess(NamedTuple):
    """A server that runs, and its address."""

    process: subprocess.Popen[bytes]
    url: str


class Cluster:
    """Any number of servers and workers; each can be killed and started again."""

    def __init__(
        self,
        store: str,
        folder: Path,
        *,
        module: str = "noetlvm",
        server_options: Sequence[str] = (),
        worker_options: Sequence[str] = (),
    ) -> None:
        """`module` has the commands `server` and `worker`, which get these options besides the usual ones."""
        self.store = store
        self.folder = folder
        self.servers: list[ServerProcess] = []
        self.workers: list[subprocess.Popen[bytes]] = []
        self._module = module
        self._server_options = server_options
        self._worker_options = worker_options
        self._count = 0
        self.token = ""
        made = self.command("token", "create", "--store", store, "--scope", "admin,worker", "--json")
        self.token = str(json.loads(made)["token"])

    def command(self, *words: str) -> str:
        """Run a command of `noetlvm` with the token, and return what it prints. Raises CommandError."""
        command = [sys.executable, "-P", "-m", "noetlvm", *words]
        environment = _environment() | {"NOETLVM_TOKEN": self.token}
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, env=environment, check=False, timeout=COMMAND_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise CommandError(f"`noetlvm {' '.join(words)}` did not end within {COMMAND_SECONDS} seconds") from None
        if done.returncode:
            raise CommandError(done.stderr.strip().removeprefix("noetlvm: "))
        return done.stdout

    def add_server(self, listen: str = "127.0.0.1:0") -> str:
        """Start a server, wait until it is ready, and return its URL."""
        self.servers.append(self._start_server(listen))
        return self.servers[-1].url

    def add_worker(self, server: str) -> subprocess.Popen[bytes]:
        self.workers.append(self._start_worker(server))
        return self.workers[-1]

    def restart_server(self, number: int) -> None:
        """Kill a server and start it again at the same address."""
        process, url = self.servers[number]
        process.kill()
        process.wait(STOP_SECONDS)
        self.servers[number] = self._start_server(url.removeprefix("http://"))

    def restart_worker(self, number: int, server: str) -> None:
        """Kill a worker and start another one."""
        self.workers[number].kill()
        self.workers[number].wait(STOP_SECONDS)
        self.workers[number] = self._start_worker(server)

    def client(self, number: int = 0) -> Client:
        return Client(self.servers[number].url, self.token)

    def stop(self) -> None:
        """Stop all processes, gracefully where possible."""
        processes = [*self.workers, *(server.process for server in self.servers)]
        for process in processes:
            process.send_signal(signal.SIGCONT)
            process.send_signal(signal.SIGTERM)
        for process in processes:
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(STOP_SECONDS)

    def _start_server(self, listen: str) -> ServerProcess:
        process, out = self._spawn("server", "--store", self.store, "--listen", listen, *self._server_options)
        try:
            return ServerProcess(process, str(json.loads(_first_line(process, out))["url"]))
        except BaseException:
            process.kill()
            raise

    def _start_worker(self, server: str) -> subprocess.Popen[bytes]:
        return self._spawn("worker", "--server", server, *self._worker_options)[0]

    def _spawn(self, *words: str) -> tuple[subprocess.Popen[bytes], Path]:
        self._count += 1
        out = self.folder / f"{words[0]}-{self._count}.out"
        environment = _environment() | {"NOETLVM_TOKEN": self.token, "HOME": str(self.folder)}
        with out.open("wb") as stdout, out.with_suffix(".err").open("wb") as stderr:
            command = [sys.executable, "-P", "-m", self._module, *words]
            return subprocess.Popen(command, stdout=stdout, stderr=stderr, env=environment, cwd=self.folder), out


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))}


def _first_line(process: subprocess.Popen[bytes], out: Path) -> str:
    give_up = time.monotonic() + START_SECONDS
    while time.monotonic() < give_up:
        text = out.read_text(encoding="utf-8")
        if "\n" in text:
            return text.splitlines()[0]
        if process.poll() is not None:
            break
        time.sleep(0.02)
    raise CommandError(f"a server did not start: {out.with_suffix('.err').read_text(encoding='utf-8')[-2000:]}")


@contextmanager
def running(made: Cluster, *, servers: int, workers: int) -> Iterator[Cluster]:
    """Start the processes of a cluster, the workers spread over the servers; stop them at the end."""
    try:
        urls = [made.add_server() for _ in range(servers)]
        for number in range(workers):
            made.add_worker(urls[number % servers])
        yield made
    finally:
        made.stop()
