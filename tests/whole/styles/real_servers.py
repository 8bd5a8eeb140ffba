"""The servers that the styles run on: HTTP with and without TLS, an object store, PostgreSQL and NATS."""

from __future__ import annotations

import json
import ssl
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import duckdb
import nats

from noetlvm.keychain.shapes import postgres_url
from tests.servers import nats_server

FOLDER = Path(__file__).parent
TOKEN = "styles-token-0123456789"
LOGIN = {"username": "ada", "password": "styles-password-0123"}
STORE = {"key_id": "STYLES-KEY-0123456789", "secret": "styles-store-secret-0123"}
PAGES: dict[int, list[int]] = {1: [1], 2: [2], 3: [3]}
SCRIPT = b"result = n * 2\n"
SALES = b"city,n\nBern,1\nOslo,2\nBern,2\n"
_CERTIFICATE = FOLDER.parents[1] / "noetlvm" / "tools" / "tls" / "self_signed.pem"


class Surroundings(NamedTuple):
    """Where the playbooks find what they use."""

    workload: dict[str, str]
    """By workload key: a playbook that declares it gets it with its request."""
    secrets: dict[str, Any]
    """By keychain entry."""


class _Api(BaseHTTPRequestHandler):
    """Answers with what it was sent; `/flaky/…` is busy twice, `/pages` has three pages, `/sales/…` is a bucket."""

    attempts: Counter[str] = Counter()

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        status, data = 200, self._echo()
        if url.path.startswith("/flaky/"):
            self.attempts[url.path] += 1
            status, data = (200 if self.attempts[url.path] > 2 else 503), {"attempt": self.attempts[url.path]}
        elif url.path == "/pages":
            page = int(parse_qs(url.query)["page"][0])
            data = {"rows": PAGES[page], "more": page < max(PAGES)}
        elif url.path == "/auth":
            data = {"authorized": self.headers["Authorization"] == f"Bearer {TOKEN}"}
        elif url.path == "/headers":
            data = self._credentials()
        elif url.path == "/missing":
            status = 404
        self._answer(302 if url.path == "/moved" else status, json.dumps(data).encode())

    do_POST = do_PUT = do_GET  # noqa: N815 - names that the base class looks for

    def _echo(self) -> dict[str, Any]:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0)).decode()
        return {"method": self.command, "query": urlsplit(self.path).query, "body": body}

    def _credentials(self) -> dict[str, str]:
        """Name what was sent, because the values are masked in a result."""
        word = str(self.headers["Authorization"] or "").partition(" ")[0].lower()
        return {"authorization": word, "x-key": "key" if self.headers["X-Key"] == TOKEN else ""}

    def _answer(self, status: int, body: bytes, type_: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", type_)
        self.send_header("Location", "/items")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


class _Files(_Api):
    """Serves a script, and an object to those who sign for it."""

    def do_GET(self) -> None:
        if self.path.startswith("/scripts/"):
            self._answer(200, SCRIPT, "text/x-python")
        elif self.path.startswith("/sales/"):
            is_signed = f"Credential={STORE['key_id']}/" in str(self.headers["Authorization"])
            self._answer(200 if is_signed else 403, SALES, "text/csv")
        else:
            super().do_GET()

    do_POST = do_PUT = do_HEAD = do_GET  # noqa: N815 - names that the base class looks for


@contextmanager
def surroundings(folder: Path, database: str) -> Iterator[Surroundings]:
    """Start the other servers; `folder` is for their files."""
    with ExitStack() as stack:
        plain = stack.enter_context(http_server())
        workload = {
            "api": f"http://127.0.0.1:{plain}",
            "tls": f"https://localhost:{stack.enter_context(http_server(tls=True))}",
            "folder": str(FOLDER),
        }
        store = {**STORE, "endpoint": f"127.0.0.1:{plain}", "url_style": "path", "use_ssl": "false", "region": "x"}
        secrets = {
            "pg": postgres_url(database),
            "bus": stack.enter_context(nats_server(folder / "nats")),
            "api_token": TOKEN,
            "login": LOGIN,
            "bucket": store,
            "lake": _lake(folder / "lake.duckdb"),
        }
        yield Surroundings(workload, secrets)


def _lake(path: Path) -> str:
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE people AS SELECT unnest(['Grace', 'Ada']) AS name")
    return str(path)


@contextmanager
def http_server(*, tls: bool = False) -> Iterator[int]:
    """Serve over HTTP, and give the port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Files) as server:
        server.daemon_threads = True
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(_CERTIFICATE)
            # The handshake is the handler's: a client that does not finish it must not stop the server's loop.
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_port
        finally:
            server.shutdown()


@asynccontextmanager
async def bus(address: str) -> Any:
    """Make the bucket and the object store, and answer requests to `styles.double`."""
    client = await nats.connect(address)
    await client.jetstream().create_key_value(bucket="styles")
    await client.jetstream().create_object_store("files")

    async def double(message: Any) -> None:
        await message.respond(json.dumps({"n": json.loads(message.data)["n"] * 2}).encode())

    await client.subscribe("styles.double", cb=double)
    await client.flush()
    try:
        yield
    finally:
        await client.close()
