"""Real servers for tests: PostgreSQL is one for a run, however many processes the tests are spread over."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from noetlvm.conformance.databases import PostgresProcess, nats_server, postgres_server

__all__ = ["nats_server", "new_database", "postgres_of_run", "postgres_server"]

MAIN = "/postgres?"
"""What names the database in the address of a server."""
END_SECONDS = 5


def new_database(server: str) -> str:
    """Make a database, and return its address."""
    name = f"test_{secrets.token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
    return server.replace(MAIN, f"/{name}?")


@contextmanager
def postgres_of_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the address of the run's PostgreSQL. The first process that needs it starts it, and the last one ends it."""
    base = tmp_path_factory.getbasetemp()
    file = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "postgres.json"
    address = _changed(file, _join)["address"]
    try:
        yield address
    finally:
        _changed(file, _leave)


_State = dict[str, Any]
_STOPPED: _State = {"users": 0}
_STARTED: list[PostgresProcess] = []
"""What this process has started; another may end it."""


def _changed(file: Path, change: Callable[[_State], _State]) -> _State:
    """Change what a file says, one process after the other."""
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        state = change(json.loads(file.read_text()) if file.exists() else _STOPPED)
        file.write_text(json.dumps(state))
    return state


def _join(state: _State) -> _State:
    if state["users"]:
        return state | {"users": state["users"] + 1}
    _STARTED.append(PostgresProcess())
    folder = Path(_STARTED[-1].socket).parent
    pid = int((folder / "postmaster.pid").read_text().split()[0])
    return {"users": 1, "address": _STARTED[-1].address, "pid": pid, "folder": str(folder)}


def _leave(state: _State) -> _State:
    if state["users"] > 1:
        return state | {"users": state["users"] - 1}
    with suppress(psutil.NoSuchProcess, psutil.TimeoutExpired):
        process = psutil.Process(state["pid"])
        process.send_signal(signal.SIGQUIT)
        process.wait(END_SECONDS)
    shutil.rmtree(state["folder"], ignore_errors=True)
    return _STOPPED
