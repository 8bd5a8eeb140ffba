"""Step §9.1 with a tool that sends again by itself: the case of the conformance suite, against a real server."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.commands import Command

CASE = Path(__file__).parents[3] / "conformance" / "run" / "tool-retries-before-policy"
ADDRESS = "https://api.example.org/items"


@pytest.fixture
def flaky() -> Iterator[tuple[str, Counter[str]]]:
    """A server that fails twice for each path, and how often each was requested."""
    received: Counter[str] = Counter()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            received[self.path] += 1
            self.send_response(503 if received[self.path] < 3 else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", received
        server.shutdown()


def test_the_tool_sends_again_before_the_policy_decides(
    noetlvm: Command, tmp_path: Path, flaky: tuple[str, Counter[str]]
) -> None:
    address, received = flaky
    text = CASE.with_suffix(".yaml").read_text(encoding="utf-8").replace("delay: 100", "delay: 0")
    for name in ("enough", "short"):
        text = text.replace(ADDRESS, f"{address}/{name}", 1)
    (tmp_path / "retries.yaml").write_text(text, encoding="utf-8")
    answer = noetlvm("run", "retries.yaml", "--json")
    expected = json.loads(CASE.with_suffix(".expect.json").read_text(encoding="utf-8"))
    assert (answer.data["status"], answer.data["ctx"]) == (expected["status"], expected["ctx"])
    assert received == {"/enough": 3, "/short": 3}
