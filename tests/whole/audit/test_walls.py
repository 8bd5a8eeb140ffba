"""No attempt of `walls.py` gets out of a python task."""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.whole.audit.cases import Data, playbook, step
from tests.whole.audit.walls import IPC_KEY, NETWORK, PRELUDE, PROCESSES, WRITES

ATTEMPTS = WRITES | NETWORK | PROCESSES


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Data]:
    """Make all attempts in one execution, beside a victim of each kind."""
    folder = tmp_path_factory.mktemp("walls")
    (folder / "victim").write_text("intact")
    (folder / "empty").mkdir()
    # It lasts until the test kills it.
    victim = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], env={"AUDIT_SECRET": "s"})
    unix = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    unix.bind(str(folder / "unix"))
    unix.setblocking(False)
    tcp = socket.create_server(("127.0.0.1", 0))
    tcp.setblocking(False)
    before = _view(folder, victim)
    given = {"victim": str(folder / "victim"), "folder": str(folder), "unix": str(folder / "unix")}
    given |= {"pid": victim.pid, "port": tcp.getsockname()[1]}
    work = tmp_path_factory.mktemp("work")
    file = work / "walls.yaml"
    file.write_text(json.dumps(_playbook(given)))
    command = [sys.executable, "-m", "noetlvm", "run", str(file), "--db", str(work / "walls.db"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"AUDIT_SECRET": "s"}, timeout=300)
    try:
        yield {
            "ended": json.loads(done.stdout or "{}"),
            "stderr": done.stderr,
            "before": before,
            "after": _view(folder, victim),
            "datagrams": _received(unix),
            "connections": _accepted(tcp),
        }
    finally:
        victim.kill()
        victim.wait(60)
        unix.close()
        tcp.close()


def _playbook(given: Data) -> Data:
    tasks = []
    for number, statement in enumerate(ATTEMPTS.values()):
        code = f"{PRELUDE}{statement}\nresult = 'ESCAPED'\n"
        then = {"do": "continue", "set_ctx": {f"t{number}": "{{ outcome.status }}"}}
        policy = {"policy": {"rules": [{"else": {"then": then}}]}}
        tasks.append({f"t{number}": {"kind": "python", "args": given, "code": code, "spec": policy | {"timeout": 20}}})
    return playbook(step("start", *tasks))


def _view(folder: Path, victim: subprocess.Popen[bytes]) -> Data:
    names = sorted(str(file.relative_to(folder)) for file in folder.rglob("*"))
    file = folder / "victim"
    stat = file.stat()
    return {
        "files": names,
        "text": file.read_text(),
        "mode": (stat.st_mode, stat.st_uid, stat.st_mtime),
        "alive": victim.poll() is None,
        "limits": [resource.prlimit(victim.pid, limit) for limit in (resource.RLIMIT_FSIZE, resource.RLIMIT_CPU)],
        "priority": os.getpriority(os.PRIO_PROCESS, victim.pid),
        "affinity": os.sched_getaffinity(victim.pid),
        "policy": os.sched_getscheduler(victim.pid),
        "shared memory, semaphores, messages": [_has_key(kind) for kind in ("shm", "sem", "msg")],
    }


def _has_key(kind: str) -> bool:
    """Return whether the object that the attempts try to make exists; databases of other tests come and go."""
    lines = Path("/proc/sysvipc", kind).read_text().splitlines()[1:]
    return str(IPC_KEY) in {line.split()[0] for line in lines}


def _received(unix: socket.socket) -> list[bytes]:
    try:
        return [unix.recv(100)]
    except BlockingIOError:
        return []


def _accepted(tcp: socket.socket) -> list[Any]:
    try:
        return [tcp.accept()]
    except BlockingIOError:
        return []


@pytest.mark.parametrize("name", ATTEMPTS)
def test_the_attempt_is_refused(name: str, tried: Data) -> None:
    assert tried["ended"].get("status") == "success", tried["stderr"]
    assert tried["ended"]["ctx"][f"t{list(ATTEMPTS).index(name)}"] == "error"


def test_nothing_outside_has_changed(tried: Data) -> None:
    assert tried["after"] == tried["before"]
    assert tried["datagrams"] == []
    assert tried["connections"] == []


def test_there_are_as_many_attempts_as_the_audit_made() -> None:
    assert len(ATTEMPTS) >= 100
