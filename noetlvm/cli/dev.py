"""`noetlvm dev`: a server, two workers and a fresh token in one command."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from noetlvm.bridge import looks_like_playbook, yaml_files
from noetlvm.cli.remote import SERVER, TOKEN
from noetlvm.cli.request import Keychain
from noetlvm.cli.run import bundle_of
from noetlvm.client.calls import ServiceError
from noetlvm.client.client import Client
from noetlvm.command_line.declared import Argument, Option
from noetlvm.command_line.process import SUCCESS, CommandError
from noetlvm.service.process import open_store
from noetlvm.service.tokens import create_token

if TYPE_CHECKING:
    from noetlvm.client.client import Client

Spawn: TypeAlias = Callable[..., "subprocess.Popen[str]"]

LOOK_SECONDS = 0.5
"""Seconds between scans of the folder for changed playbooks."""
WORKERS = 2
_PR_SET_PDEATHSIG = 1
STATE = ".noetlvm"
"""Folder, inside the one with the playbooks, that holds the database."""


def dev(
    folder: Annotated[str, Argument(metavar="[FOLDER]", help="Folder with playbooks.")] = ".",
    listen: Annotated[str, Option(metavar="HOST:PORT", help="Address; port 0 selects a free port.")] = "127.0.0.1:0",
    slots: Annotated[int, Option(min=1, metavar="N", help="Number of pipelines that each worker runs at once.")] = 4,
    keychain: Keychain = None,
) -> int:
    """Run a server and two workers on this machine; register the playbooks of a folder when they are new or changed.

    It prints the URL and a token as shell commands for other terminals, and the address of a web page that shows
    executions live. Ctrl-C ends it; executions continue at the next start.

    Example: noetlvm dev playbooks
    """
    playbooks = Path(folder)
    if not playbooks.is_dir():
        raise CommandError(f"{folder} is not a folder")
    state = playbooks / STATE
    state.mkdir(mode=0o700, exist_ok=True)
    store = f"sqlite:{state / 'dev.db'}"
    token = _token(store)
    stopping = _Stopping()
    with _processes() as spawn, stopping:
        options = [word for source in keychain or () for word in ("--keychain", source)]
        server = spawn("server", "--store", store, "--listen", listen, "--json", *options)
        url = _url(server)
        print(f"export {SERVER}={url}\nexport {TOKEN}={token}", flush=True)
        print(f"in a browser: {url}/#token={token}", file=sys.stderr, flush=True)
        os.environ |= {SERVER: url, TOKEN: token}
        workers = [spawn("worker", "--slots", str(slots), *options) for _ in range(WORKERS)]
        try:
            _register_until_stopped(playbooks, url, token, [server, *workers], stopping)
        except KeyboardInterrupt:
            return SUCCESS
        if stopping.is_requested:
            return SUCCESS
    raise CommandError("a process has ended; its messages are above")


class _Stopping:
    """Whether a signal has ended the command.

    The signal also interrupts what the process waits for. That alone is not enough: Python ignores an exception inside
    a finalizer.
    """

    def __init__(self) -> None:
        self.is_requested = False

    def __enter__(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._stop)

    def __exit__(self, *_error: object) -> None:
        """The processes are ended once; a second signal does not interrupt that."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)

    def _stop(self, _number: int, _frame: object) -> None:
        self.is_requested = True
        raise KeyboardInterrupt


def _token(store: str) -> str:
    opened, _ = open_store(store)
    try:
        return create_token(opened, ["admin", "worker"], opened.now()).token
    finally:
        opened.close()


@contextmanager
def _processes() -> Iterator[Spawn]:
    """Give a function that starts a command of `noetlvm`; all of them end with the context."""
    started: list[subprocess.Popen[str]] = []

    def spawn(*words: str) -> subprocess.Popen[str]:
        # -P: a module in the current folder must not replace one of the standard library.
        command = [sys.executable, "-P", "-m", "noetlvm", *words, "--log-level", "warning"]
        # A process group of its own: Ctrl-C reaches them through this process, in order.
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=_end_with_parent
        )
        started.append(process)
        return process

    try:
        yield spawn
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def _end_with_parent() -> None:
    """Have the kernel end this process when the one that started it is killed (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _url(server: subprocess.Popen[str]) -> str:
    assert server.stdout is not None
    line = server.stdout.readline()
    if not line:
        raise CommandError("the server did not start; its messages are above")
    return str(json.loads(line)["url"])


def _register_until_stopped(
    folder: Path, url: str, token: str, processes: list[subprocess.Popen[str]], stopping: _Stopping
) -> None:
    """Register playbooks whenever they change, until a process ends or a signal comes."""
    seen: dict[str, int] = {}
    with Client(url, token) as client:
        while not stopping.is_requested and all(process.poll() is None for process in processes):
            stamps = dict(_stamps(folder))
            for file in (file for file, stamp in stamps.items() if seen.get(file) != stamp):
                _register(client, file)
            seen = stamps
            time.sleep(LOOK_SECONDS)


def _stamps(folder: Path) -> Iterator[tuple[str, int]]:
    """Yield the YAML files of a folder, and when each was last changed."""
    for file in yaml_files(str(folder)):
        with suppress(OSError):  # an editor may replace it right now
            yield file, Path(file).stat().st_mtime_ns


def _register(client: Client, file: str) -> None:
    """Register a playbook; what is wrong with it is printed as `noetlvm run` does."""
    try:
        if not looks_like_playbook(Path(file).read_bytes()):
            return
        entry = client.register(bundle_of([file]).data)
    except (CommandError, ServiceError, OSError) as error:
        print(f"{file}: not registered{f': {error}' if str(error) else ''}", file=sys.stderr)
    else:
        print(f"{file}: registered as {entry['path']}, version {entry['version']}", file=sys.stderr)
