"""Scripts whose address is written out and that can be read are in the bundle; the worker reads the others."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from noetlc import script_text
from noetlc.session import Session
from noetlvm import bridge

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: a, path: a}\nworkload: {file: count.py}\n"


def compiled(folder: Path, script: str) -> bytes:
    (folder / "flows").mkdir(exist_ok=True)
    playbook = folder / "flows" / "a.yaml"
    playbook.write_text(f"{HEAD}workflow:\n  - step: start\n    tool: {{kind: python, script: {script}}}\n")
    return bridge.compile_playbooks([str(playbook)], quiet=True)


@pytest.mark.parametrize(
    "script", ["{uri: ./count.py}", "{uri: count.py, source: {type: file}}", "{uri: count.py, source: file}"]
)
def test_a_file_beside_the_playbook_is_in_the_bundle(tmp_path: Path, script: str) -> None:
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "count.py").write_text("result = {'sum': 1 + 1}  # {{ no template }}\n")
    assert b"{{ no template }}" in compiled(tmp_path, script)


@pytest.mark.parametrize("script", ["{uri: absent.py}", "{uri: 'https://127.0.0.1:1/x.py'}", "{uri: 'gs://b/x.py'}"])
def test_what_cannot_be_read_here_is_left_to_the_worker(tmp_path: Path, script: str) -> None:
    assert b"uri" in compiled(tmp_path, script)


def test_an_address_that_is_a_template_is_left_to_the_worker(tmp_path: Path) -> None:
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "count.py").write_text("result = 'secret sauce'\n")
    assert b"secret sauce" not in compiled(tmp_path, "{uri: '{{ workload.file }}'}")


def test_a_text_without_files_around_it_reads_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "count.py").write_text("result = 'secret sauce'\n")
    text = f"{HEAD}workflow:\n  - step: start\n    tool: {{kind: python, script: {{uri: count.py}}}}\n"
    assert b"secret sauce" not in bridge.compile_texts([text])
    Path("a.yaml").write_text(text)
    assert b"secret sauce" in Session(["a.yaml"]).compile().data


class _Scripts(BaseHTTPRequestHandler):
    """`/count.py` is a script; `/moved` leads to it, `/out` elsewhere; `/large`, `/slow` do not end, `/cut` early."""

    def do_GET(self) -> None:
        self.send_response(302 if self.path in ("/moved", "/out") else 200 if self.path != "/missing" else 404)
        if self.path == "/cut":
            self.send_header("Content-Length", "100")
        self.send_header("Location", "/count.py" if self.path == "/moved" else Path(__file__).as_uri())
        self.end_headers()
        try:
            if self.path in ("/count.py", "/cut"):
                self.wfile.write(b"result = 'from the web'\n")
            while self.path in ("/large", "/slow"):
                self.wfile.write(b"#" * (65536 if self.path == "/large" else 1))
                if self.path == "/slow" and self.server_stopped.wait(0.05):
                    return
        except OSError:
            """The reader has had enough."""

    server_stopped = threading.Event()

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    _Scripts.server_stopped.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Scripts)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    _Scripts.server_stopped.set()
    server.shutdown()


@pytest.mark.parametrize(
    "script",
    [
        "{{uri: '{web}/count.py'}}",
        "{{uri: '{web}/moved'}}",
        "{{uri: count.py, source: {{type: http, endpoint: '{web}/'}}}}",
        "{{uri: '{web}/count.py', source: http}}",
    ],
)
def test_a_web_address_that_is_written_out_is_read_once_by_the_compiler(tmp_path: Path, web: str, script: str) -> None:
    bundle = compiled(tmp_path, script.format(web=web))
    assert b"from the web" in bundle
    assert b"uri" not in bundle


@pytest.mark.parametrize("name", ["missing", "out", "large", "slow", "cut"])
def test_a_web_address_without_a_script_in_time_and_size_is_left_to_the_worker(
    tmp_path: Path, web: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script_text, "WEB_SECONDS_MAX", 1.0)
    assert b"uri" in compiled(tmp_path, f"{{uri: '{web}/{name}'}}")


def test_headers_are_for_the_worker(tmp_path: Path, web: str) -> None:
    script = f"{{uri: '{web}/count.py', source: {{type: http, headers: {{X-Key: a}}}}}}"
    assert b"from the web" not in compiled(tmp_path, script)
