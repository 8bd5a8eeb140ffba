"""A server process: its store, its results, its wake-ups, and the application on a socket."""

from __future__ import annotations

import ctypes
import json
import logging
import socket
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from noetlvm.command_line.process import CommandError
from noetlvm.language.placement import StoreName
from noetlvm.results.files import FileResults
from noetlvm.results.interface import ResultStore
from noetlvm.results.offered import OfferedResults
from noetlvm.rounds.credentials import Resolve
from noetlvm.rounds.tracing import TracingError, tracing_of
from noetlvm.service.driver import Driver, ServerPorts
from noetlvm.service.leases import Leases
from noetlvm.service.store_threads import StoreCalls, StoreThread
from noetlvm.store.interface import LockedError, Store, TokenStore
from noetlvm.store.sqlite import SqliteGuest, SqliteStore
from noetlvm.wake.interface import LocalWakeUps, WakeUps

_Answer = TypeVar("_Answer")

SQLITE = "sqlite:"
FILES = "files:"
NATS = ("nats://", "tls://")
POSTGRESQL = ("postgresql://", "postgres://")
_PORT_MAX = 65535


def open_store(name: str) -> tuple[Store, ResultStore]:
    """Open the store that `--store` names, and where its large results are. Raises CommandError, StoreError."""
    if name.startswith(SQLITE) and len(name) > len(SQLITE):
        path = Path(name[len(SQLITE) :])
        return SqliteStore(path), FileResults.of_database(path)
    if name.startswith(POSTGRESQL):
        from noetlvm.results.postgres import PostgresResults
        from noetlvm.store.postgres import PostgresStore

        store = PostgresStore(name)
        return store, PostgresResults(store.database)
    raise CommandError(f"`{name}` is not a store: give sqlite:FILE or postgresql://USER@HOST/DATABASE")


def open_tokens(name: str) -> TokenStore:
    """Open the tokens of the store that `--store` names, also while a server runs on it."""
    try:
        return open_store(name)[0]
    except LockedError:
        return SqliteGuest(Path(name[len(SQLITE) :]))


def offered_results(store_name: str, own: ResultStore, names: Sequence[str]) -> OfferedResults:
    """Return the store of results that belongs to `--store`, and those that `--results` names. Raises CommandError."""
    stores = {StoreName("files" if store_name.startswith(SQLITE) else "postgres"): own}
    for name in names:
        kind, opened = _opened_results(name)
        if kind in stores:
            raise CommandError(f"--results {name}: the server has the store `{kind}` already")
        stores[kind] = opened
    return OfferedResults(stores)


def _opened_results(name: str) -> tuple[StoreName, ResultStore]:
    if name.startswith(FILES) and len(name) > len(FILES):
        return StoreName("files"), FileResults(Path(name[len(FILES) :]))
    address, _, bucket = name.rpartition("/")
    if address.startswith(NATS) and address not in ("nats:/", "tls:/") and bucket:
        from noetlvm.results.nats_object import NatsObjectResults

        return StoreName("nats_object", bucket), NatsObjectResults(address, bucket)
    raise CommandError(f"`{name}` is not a result store: give files:FOLDER or nats://HOST:PORT/BUCKET")


async def connect_wake_ups(store_name: str, wake: str | None) -> WakeUps:
    """Return what carries wake-ups between servers: NATS if one is named, else PostgreSQL, else the process."""
    if wake is not None:
        if not wake.startswith(NATS):
            raise CommandError(f"`{wake}` is not an address for wake-ups: give nats://HOST:PORT")
        from noetlvm.wake.nats import NatsWakeUps

        return await NatsWakeUps.connect(wake)
    if store_name.startswith(POSTGRESQL):
        from noetlvm.wake.notify import NotifyWakeUps

        return NotifyWakeUps(store_name)
    return LocalWakeUps()


def address_of(listen: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT."""
    host, _, port = listen.rpartition(":")
    if not host or not port.isdigit() or int(port) > _PORT_MAX:
        raise CommandError(f"`{listen}` is not an address: give HOST:PORT, such as 127.0.0.1:8080")
    return host.strip("[]"), int(port)


def bound_socket(listen: str) -> socket.socket:
    """Return a socket that listens on HOST:PORT; port 0 takes a free one."""
    host, port = address_of(listen)
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        reason = str(error.strerror).partition(" (while")[0]  # it continues with the address
        raise CommandError(f"cannot listen on {listen}: {reason}") from None


def serve(
    store_name: str,
    listen: str,
    resolve: Resolve,
    *,
    wake: str | None,
    on_ready: Callable[[str], None],
    lease_seconds: float,
    results: Sequence[str] = (),
    poll_seconds: float = 1.0,
    opened: Callable[[str], tuple[Store, ResultStore]] = open_store,
) -> int:
    """Serve until a signal ends it, and return the exit code. `on_ready` gets the URL."""
    from noetlvm.service.access import TokenAccess
    from noetlvm.service.app import service_app
    from noetlvm.service.web_server import WebServer

    limit_arenas()
    address_of(listen)  # before a store is opened, and perhaps made
    is_remote = store_name.startswith(POSTGRESQL)
    decisions, lease_thread = StoreThread("decisions"), StoreThread("leases")
    store, own = opened(store_name)
    beside = opened(store_name)[0] if is_remote else store  # over connections of its own
    try:
        bound = bound_socket(listen)
        host, port = bound.getsockname()[:2]
        url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        driver = Driver(
            store,
            offered_results(store_name, own, results),
            resolve,
            ServerPorts(
                lambda: connect_wake_ups(store_name, wake), poll_seconds, StoreCalls(decisions, is_remote=is_remote)
            ),
            leases=Leases(beside, store.now, lease_seconds, StoreCalls(lease_thread, is_remote=is_remote)),
        )
        tracing = tracing_of(store)
        if tracing is not None:
            driver.listeners.add(tracing.observe)
        WebServer(service_app(driver, TokenAccess(beside)), lambda: on_ready(url)).run(sockets=[bound])
        if tracing is not None:
            tracing.close()
    except TracingError as problem:
        raise CommandError(str(problem)) from None
    finally:
        for thread in (decisions, lease_thread):
            thread.close()
        beside.close()
        store.close()
    return 0


def limit_arenas() -> None:
    """Let threads share the memory that the C library takes: with an arena each, a server grows for hours."""
    with suppress(OSError, AttributeError):  # another C library has no such setting
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


_M_ARENA_MAX = -8
"""Of `mallopt` in glibc."""


class LogLines(logging.Formatter):
    """Formats a record as a line of JSON.

    Of an exception it has the kind and the calls that led to it. Its message may hold data, and so a secret.
    """

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {"time": record.created, "level": record.levelname.lower(), "logger": record.name}
        line["message"] = record.getMessage().strip()
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            calls = traceback.extract_tb(error.__traceback__)
            line["exception"] = type(error).__qualname__
            line["calls"] = [f"{call.filename}:{call.lineno} {call.name}" for call in calls]
        return json.dumps(line, ensure_ascii=False)


def log_to_stderr(level: str) -> None:
    """Write structured logs."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
