"""What the acceptance tests run against: an HTTP server, a PostgreSQL server, and the engine over SQLite and files."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from noetlvm.bridge import compile_texts
from noetlvm.engine.engine import Engine, EngineOptions
from noetlvm.machine.loaded import Bundle
from noetlvm.results.files import FileResults
from noetlvm.rounds.credentials import Credentials
from noetlvm.rounds.recovery import folded
from noetlvm.store.sqlite import SqliteStore
from noetlvm.tools.runner import ToolRunner
from tests.servers import new_database
from tests.whole.acceptance.witnesses import Api, Run

HEAD = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: acceptance, path: acceptance/playbook }
keychain: [{ name: pg, kind: postgres_credential }]
"""


@pytest.fixture
def api() -> Iterator[Api]:
    state = Api()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            status, data = state.respond(url.path, dict(parse_qsl(url.query)))
            body = json.dumps(data).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield state
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def dsn(postgres_server: str) -> str:
    return new_database(postgres_server)


@pytest.fixture
def sql(dsn: str) -> Iterator[Callable[..., list[Any]]]:
    """Run SQL beside the playbook, in a database whose tables the test begins without."""
    import psycopg

    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")

        def execute(command: str) -> list[Any]:
            cursor = connection.execute(command)
            return cursor.fetchall() if cursor.description else []

        yield execute


@pytest.fixture
def execute(tmp_path: Path, api: Api, dsn: str) -> Callable[..., Run]:
    """Run steps through the engine, with `workload.api` as the server's address and `pg` as the database."""

    def run(steps: str, **workload: Any) -> Run:
        bundle = Bundle.of(compile_texts([f"{HEAD}workload: {{ api: '' }}\nworkflow:\n{steps}"]))
        store, results = SqliteStore(tmp_path / "executions.db"), FileResults(tmp_path / "results")
        entries = {"pg": {"dsn": dsn}}
        try:
            engine = Engine(
                store, results, ToolRunner(), EngineOptions(resolve=lambda declared: Credentials(entries, [dsn]))
            )
            id = engine.start(bundle, {"api": api.url, **workload})
            asyncio.run(asyncio.wait_for(engine.run(), 200))
            events = list(store.events(id))
            live = engine.ending(id)
            state = folded(store, id)
            assert (state.status, state.ctx, state.result) == (live.status, live.ctx, live.result)
        finally:
            store.close()
        return Run(live, events, tmp_path)

    return run
