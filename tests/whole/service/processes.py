"""Real servers and workers as processes, to be run, killed and started again."""

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
from typing import Any

from noetlvm.client import Client, ServiceError

ROOT = Path(__file__).parents[3]
PATIENCE_SECONDS = 120


class Cluster:
    """Servers and workers over one store."""

    def __init__(self, store: str, folder: Path, wake: str | None = None, lease: int = 15) -> None:
        self.store = store
        self.folder = folder
        self._options = ["--lease", str(lease), *(["--wake", wake] if wake else [])]
        self._count = 0
        self.token = ""
        made = self.command("token", "create", "--store", store, "--scope", "admin,worker", "--json")
        self.token = str(json.loads(made)["token"])
        self.servers: list[tuple[subprocess.Popen[bytes], str]] = []
        self.workers: list[subprocess.Popen[bytes]] = []

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {"PYTHONPATH": str(ROOT), "NOETLVM_TOKEN": self.token, "HOME": str(self.folder)}

    def command(self, *words: str) -> str:
        """Run a command of `noetlvm` and return what it prints."""
        environment = os.environ | {"PYTHONPATH": str(ROOT), "NOETLVM_TOKEN": self.token}
        done = subprocess.run(
            [sys.executable, "-m", "noetlvm", *words], capture_output=True, text=True, env=environment, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _spawn(self, *words: str) -> tuple[subprocess.Popen[bytes], Path]:
        self._count += 1
        out = self.folder / f"{words[0]}-{self._count}.out"
        with out.open("wb") as stdout, out.with_suffix(".err").open("wb") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-m", "noetlvm", *words], stdout=stdout, stderr=stderr, env=self.environment
            )
        return process, out

    def add_server(self, listen: str = "127.0.0.1:0") -> str:
        """Start a server, wait until it is ready, and return its URL."""
        process, out = self._spawn("server", "--store", self.store, "--listen", listen, "--json", *self._options)
        url = json.loads(_first_line(process, out))["url"]
        self.servers.append((process, url))
        return str(url)

    def add_worker(self, server: str, slots: int = 4) -> subprocess.Popen[bytes]:
        process, _ = self._spawn("worker", "--server", server, "--slots", str(slots))
        self.workers.append(process)
        return process

    def restart_server(self, number: int) -> None:
        """Kill a server and start it again at the same address."""
        process, url = self.servers[number]
        process.kill()
        process.wait()
        again, out = self._spawn(
            "server", "--store", self.store, "--listen", url.removeprefix("http://"), "--json", *self._options
        )
        _first_line(again, out)
        self.servers[number] = again, url

    def restart_worker(self, number: int, server: str) -> None:
        self.workers[number].kill()
        self.workers[number].wait()
        process, _ = self._spawn("worker", "--server", server, "--slots", "4")
        self.workers[number] = process

    def client(self, number: int = 0) -> Client:
        return Client(self.servers[number][1], self.token)

    def stop(self) -> None:
        for process in (*self.workers, *(process for process, _ in self.servers)):
            process.send_signal(signal.SIGTERM)
        for process in (*self.workers, *(process for process, _ in self.servers)):
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _first_line(process: subprocess.Popen[bytes], out: Path) -> str:
    give_up = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < give_up:
        text = out.read_text(encoding="utf-8")
        if "\n" in text:
            return text.splitlines()[0]
        assert process.poll() is None, out.with_suffix(".err").read_text(encoding="utf-8")
        time.sleep(0.05)
    raise AssertionError("the server did not become ready")


@contextmanager
def cluster(
    store: str, folder: Path, *, servers: int = 1, workers: int = 2, wake: str | None = None, lease: int = 15
) -> Iterator[Cluster]:
    """Start servers and workers, the workers spread over the servers."""
    made = Cluster(store, folder, wake, lease)
    try:
        urls = [made.add_server() for _ in range(servers)]
        for number in range(workers):
            made.add_worker(urls[number % servers])
        yield made
    finally:
        made.stop()


def run_to_end(client: Client, playbooks: Sequence[bytes], payload: dict[str, Any] | None = None) -> dict[str, Any]:
    """Register and run a playbook, however often the server is away meanwhile."""
    registered = [persistently(client.register, playbook) for playbook in playbooks]
    id = persistently(client.start, bundle=registered[0]["bundle"], payload=payload or {}, key=os.urandom(8).hex())
    return wait_for(client, id)


def wait_for(client: Client, id: str) -> dict[str, Any]:
    """Return how an execution ended."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < give_up:
        if persistently(client.execution, id)["ended"] is not None:
            ending: dict[str, Any] = persistently(client.ending, id)
            return ending
        time.sleep(0.05)
    events = [event["name"] for event in persistently(lambda: list(client.events(id)))]
    raise AssertionError(f"{id} does not end; its last events are {events[-8:]}")


def persistently(call: Any, *arguments: Any, **options: Any) -> Any:
    """Call until the server answers."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return call(*arguments, **options)
        except ServiceError as error:
            if error.status not in (0, 503) or time.monotonic() > give_up:
                raise
            time.sleep(0.1)
