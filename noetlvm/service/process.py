"""A server process: its store, its results, its wake-ups, and the application on a socket."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from noetlvm.command_line.process import CommandError
from noetlvm.results.interface import ResultStore
from noetlvm.server.credentials import Resolve
from noetlvm.store.interface import Store

SQLITE = "sqlite:"
POSTGRESQL = ("postgresql://", "postgres://")


def open_store(name: str) -> tuple[Store, ResultStore]:
    """Open the store that `--store` names, and where its large results are. Raises CommandError, StoreError."""
    if name.startswith(SQLITE) and len(name) > len(SQLITE):
        from noetlvm.results.files import FileResults
        from noetlvm.store.sqlite import SqliteStore

        path = Path(name[len(SQLITE) :])
        return SqliteStore(path), FileResults(path.with_name(f"{path.name}.results"))
    if name.startswith(POSTGRESQL):
        from noetlvm.results.postgres import PostgresResults
        from noetlvm.store.postgres import PostgresStore

        return PostgresStore(name), PostgresResults(name)
    raise CommandError(f"`{name}` is no store: give sqlite:FILE or postgresql://USER@HOST/DATABASE")


def bound_socket(listen: str) -> socket.socket:
    """Return a socket that listens on HOST:PORT; port 0 takes a free one."""
    host, _, port = listen.rpartition(":")
    if not host or not port.isdigit():
        raise CommandError(f"`{listen}` is no address: give HOST:PORT, such as 127.0.0.1:8080")
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host.strip("[]"), int(port)), family=family, backlog=2048)
    except OSError as error:
        raise CommandError(f"cannot listen on {listen}: {error.strerror}") from None


def serve(
    store_name: str, listen: str, resolve: Resolve, *, as_json: bool, on_ready: Callable[[str], None] | None = None
) -> int:
    """Serve until a signal ends it, and return the exit code."""
    import uvicorn

    from noetlvm.service.app import service_app
    from noetlvm.service.driver import Driver

    store, results = open_store(store_name)
    try:
        bound = bound_socket(listen)
        host, port = bound.getsockname()[:2]
        url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        driver = Driver(store, results, resolve)
        app = service_app(driver)
        server = uvicorn.Server(
            uvicorn.Config(app, log_config=None, access_log=False, ws="websockets-sansio", timeout_keep_alive=30)
        )

        def ready() -> None:
            print(json.dumps({"url": url}) if as_json else f"noetlvm serves {store_name} on {url}", flush=True)
            if on_ready is not None:
                on_ready(url)

        _when_started(server, ready)
        server.run(sockets=[bound])
    finally:
        store.close()
    return 0


def _when_started(server: Any, ready: Callable[[], None]) -> None:
    """Call `ready` once the server accepts connections."""
    startup = server.startup

    async def started(*arguments: Any, **options: Any) -> None:
        await startup(*arguments, **options)
        if server.started:
            ready()

    server.startup = started


def log_to_stderr(level: str) -> None:
    """Write structured logs: one JSON object a line."""
    import logging

    class Lines(logging.Formatter):
        """Formats a record as JSON."""

        def format(self, record: logging.LogRecord) -> str:
            line = {"time": record.created, "level": record.levelname.lower(), "logger": record.name}
            return json.dumps(line | {"message": record.getMessage()}, ensure_ascii=False)

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
