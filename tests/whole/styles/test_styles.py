"""Playbooks in the styles that people use, on real tools and servers.

The right ones run with the result that their author would expect; a broken one has its findings and no others.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import nats
import pytest

from noetlc.finding import Finding, Severity
from noetlc.lint.check import check_bytes
from noetlc.lint.fixing import fix_text
from noetlvm.bridge import compile_texts
from noetlvm.engine.engine import Engine
from noetlvm.keychain.shapes import postgres_url, secret_texts
from noetlvm.machine.loaded import Bundle
from noetlvm.results.memory import MemoryResults
from noetlvm.server.active import Ending
from noetlvm.server.credentials import Credentials
from noetlvm.store.memory import MemoryStore
from noetlvm.tools.runner import ToolRunner
from noetlvm.worker.pipeline_run import SystemClock
from tests.servers import nats_server, postgres_server

FOLDER = Path(__file__).parent
TOKEN = "styles-token-0123456789"
PAGES: dict[int, list[int]] = {1: [1], 2: [2], 3: [3]}


class Style(NamedTuple):
    name: str
    text: str
    expect: dict[str, Any]

    @property
    def texts(self) -> list[str]:
        """The playbook, and the one that it runs."""
        return [self.text, *(file.read_text("utf-8") for file in FOLDER.glob(f"{self.name}.child.yml"))]


STYLES = [
    Style(file.stem, file.read_text("utf-8"), json.loads(file.with_suffix(".expect.json").read_text("utf-8")))
    for file in sorted(FOLDER.glob("*.yaml"))
]
RIGHT = [style for style in STYLES if not style.expect.get("broken")]


def named(style: Style) -> str:
    return style.name


class _Api(BaseHTTPRequestHandler):
    """Answers with what it was sent; `/flaky/…` is busy twice, `/pages` has three pages."""

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
        elif url.path == "/missing":
            status = 404
        self._answer(302 if url.path == "/moved" else status, data)

    do_POST = do_PUT = do_GET  # noqa: N815 - names that the base class looks for

    def _echo(self) -> dict[str, Any]:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0)).decode()
        return {"method": self.command, "query": urlsplit(self.path).query, "body": body}

    def _answer(self, status: int, data: object) -> None:
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Location", "/items")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def endings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Ending]]:
    """How every right playbook ends, all of them in one engine with real tools."""
    api = ThreadingHTTPServer(("127.0.0.1", 0), _Api)
    threading.Thread(target=api.serve_forever, daemon=True).start()
    try:
        with postgres_server() as postgres, nats_server(tmp_path_factory.mktemp("nats")) as bus:
            secrets = {"pg": postgres_url(postgres), "bus": bus, "api_token": TOKEN}
            yield asyncio.run(_run_all(f"http://127.0.0.1:{api.server_port}", secrets))
    finally:
        api.shutdown()


async def _run_all(api: str, secrets: dict[str, Any]) -> dict[str, Ending]:
    def resolve(declared: tuple[Any, ...]) -> Credentials:
        found = {entry.name: secrets[entry.name] for entry in declared}
        return Credentials(found, secret_texts(found)) if found else Credentials()

    async with asyncio.timeout(60):
        client = await nats.connect(secrets["bus"])
        await client.jetstream().create_key_value(bucket="styles")
        await client.close()
    engine = Engine(MemoryStore(), MemoryResults(), ToolRunner(), clock=SystemClock(), resolve=resolve)
    for style in RIGHT:
        payload = {"api": api} if "api: " in style.text else {}
        engine.start(Bundle.of(compile_texts(style.texts)), payload, style.name)
    await asyncio.wait_for(engine.run(), 300)
    return {style.name: engine.ending(style.name) for style in RIGHT}


def findings(text: str) -> list[Finding]:
    return list(check_bytes("style.yaml", text.encode()).findings)


def errors(text: str) -> int:
    return sum(finding.severity is Severity.ERROR for finding in findings(text))


def test_there_are_at_least_sixty_and_most_are_meant_to_be_right() -> None:
    assert len(STYLES) >= 60
    assert len(RIGHT) >= 40


@pytest.mark.parametrize("style", STYLES, ids=named)
def test_a_playbook_has_its_findings_and_no_others(style: Style) -> None:
    found = [f"{finding.severity} {finding.code}" for finding in findings(style.text)]
    assert found == style.expect["findings"]
    if style in RIGHT:
        assert not any(each.startswith("error") for each in found)


@pytest.mark.parametrize("style", RIGHT, ids=named)
def test_a_right_playbook_does_what_its_author_meant(style: Style, endings: dict[str, Ending]) -> None:
    ending = endings[style.name]
    assert (ending.status, ending.failures) == ("success", [])
    if "result" in style.expect:
        assert ending.result == style.expect["result"]
    for key, value in style.expect.get("ctx", {}).items():
        assert ending.ctx[key] == value


@pytest.mark.parametrize("unsafe", [False, True], ids=["safe", "unsafe"])
@pytest.mark.parametrize("style", STYLES, ids=named)
def test_fixes_converge_in_one_run_and_add_no_error(style: Style, unsafe: bool) -> None:
    fixed = fix_text(style.text, findings, unsafe=unsafe)
    assert fixed.problem is None
    assert fix_text(fixed.text, findings, unsafe=unsafe).text == fixed.text
    assert errors(fixed.text) <= errors(style.text)
