"""A small HTTP server for the examples: orders, payments, hotel rooms, jobs, files, an address that fails at first.

Run a playbook against it: python examples/server.py noetlvm run examples/retry.yaml
Or let it run in a terminal of its own: python examples/server.py
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

PORT = 8765
RECORDS = {"/orders": 230, "/refunds": 70}
OPEN_ORDERS = 12
ROOMS = {"Lutetia": 3, "Ritz": 4, "Grand": 2}
POLLS = 3
"""How often a job is asked for until it is done."""

Answer = tuple[int, Any]


class Ledger:
    """The charges of a payment service: one for each idempotency key, however often it is requested."""

    def __init__(self, watch: Callable[[int, bool], None] = lambda order, is_repeated: None) -> None:
        self.charges: dict[str, int] = {}
        self.repeated: list[int] = []
        self.watch = watch
        """Called for each request, with its order, before the answer: it may delay that."""
        self._lock = threading.Lock()

    def charge(self, key: str, order: int) -> None:
        with self._lock:
            is_repeated = key in self.charges
            self.charges[key] = order
            if is_repeated:
                self.repeated.append(order)
        self.watch(order, is_repeated)


class Examples(BaseHTTPRequestHandler):
    """Answers with JSON."""

    protocol_version = "HTTP/1.1"
    seen: ClassVar[Counter[str]] = Counter()
    lock = threading.Lock()
    ledger = Ledger()
    received: bytes = b""

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self.received = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._answer()

    def log_message(self, format: str, *args: object) -> None:
        """Keep the terminal for the playbook."""

    def _answer(self) -> None:
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        route = next((route for route in ROUTES if url.path.startswith(route)), None)
        status, body = ROUTES[route](self, url.path, query) if route else (404, {"error": "there is nothing here"})
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _count(self, what: str) -> int:
        with self.lock:
            self.seen[what] += 1
            return self.seen[what]

    def page(self, path: str, query: dict[str, str]) -> Answer:
        """One page of records. The second page fails when it is first asked for."""
        number, size = int(query.get("page", 1)), int(query.get("pageSize", 50))
        if number == 2 and self._count(self.path) == 1:
            return 503, {"error": "come back in a moment"}
        total = RECORDS[path]
        first, last = (number - 1) * size, min(number * size, total)
        items = [{"id": at + 1, "amount": (at * 37) % 100} for at in range(first, last)]
        return 200, {"items": items, "paging": {"page": number, "hasMore": last < total}}

    def open_orders(self, _path: str, _query: dict[str, str]) -> Answer:
        """The orders that are to be paid."""
        return 200, [{"id": at + 1, "amount": 10 + (at * 37) % 50} for at in range(OPEN_ORDERS)]

    def charge(self, _path: str, _query: dict[str, str]) -> Answer:
        """Charge an order, once for each idempotency key."""
        order = json.loads(self.received)
        self.ledger.charge(self.headers["Idempotency-Key"], order["id"])
        return 200, {"amount": order["amount"]}

    def rooms(self, _path: str, query: dict[str, str]) -> Answer:
        """The rooms of a hotel."""
        hotel = query.get("hotel", "")
        return 200, [{"hotel": hotel, "room": 100 + at} for at in range(ROOMS.get(hotel, 0))]

    def file(self, path: str, _query: dict[str, str]) -> Answer:
        """A file, unless its name says that it is not there."""
        if "missing" in path:
            return 404, {"error": "no such file"}
        return 200, {"name": path.rpartition("/")[2], "bytes": 10 * len(path)}

    def unstable(self, path: str, _query: dict[str, str]) -> Answer:
        """Fails twice, then answers, over and over."""
        if self._count(path) % 3:
            return 503, {"error": "too busy"}
        return 200, {"answer": 42}

    def job(self, path: str, _query: dict[str, str]) -> Answer:
        """A job that is done after a few questions."""
        if self.command == "POST":
            return 202, {"submitted": path.rpartition("/")[2]}
        return 200, {"state": "running" if self._count(path) % POLLS else "done"}


ROUTES: dict[str, Callable[[Examples, str, dict[str, str]], Answer]] = {
    "/orders": Examples.page,
    "/refunds": Examples.page,
    "/open-orders": Examples.open_orders,
    "/charges": Examples.charge,
    "/rooms": Examples.rooms,
    "/files": Examples.file,
    "/unstable": Examples.unstable,
    "/jobs": Examples.job,
}


class Server(ThreadingHTTPServer):
    """A client that is gone before it has its answer is no error here: `make demo` kills one."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def start(port: int = 0) -> Server:
    """Serve in the background, on any free port if none is named."""
    server = Server(("127.0.0.1", port), Examples)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main() -> int:
    """Serve until Ctrl-C; given a command, until that ends, and tell it where the server is."""
    command = sys.argv[1:]
    if command:
        server = start()
        address = f"api_url=http://127.0.0.1:{server.server_port}"
        return subprocess.run([*command, "--set", address], check=False).returncode
    server = Server(("127.0.0.1", PORT), Examples)
    print(f"serving on http://127.0.0.1:{PORT}; Ctrl-C ends it", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
