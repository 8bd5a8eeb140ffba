"""No secret is left behind: a run that tries to leak one in every form, and a search of every artefact it leaves."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.canary import find_canaries

ROOT = Path(__file__).parents[3]
SECRET = "cAnary-7f3e9d2b41aa86c5"
LATE = "lAte-cAnary-55Kq9mB2nL"

PLAYBOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: leaky, path: tests/leaky }
workload: { server: "", leaked: "" }
keychain:
  - { name: token, kind: secret_manager }
workflow:
  - step: start
    tool:
      - print_it:
          kind: python
          args: { token: "{{ keychain.token }}" }
          code: |
            def main(token):
                import base64, json, urllib.parse
                half = len(token) // 2
                return {
                    "raw": token,
                    "base64": base64.b64encode(token.encode()).decode(),
                    "url": urllib.parse.quote(token, safe=""),
                    "hex": token.encode().hex(),
                    "reversed": token[::-1],
                    "split": [token[:half], token[half:]],
                    "json": json.dumps({"inner": json.dumps(token)}),
                    "base64 twice": base64.b64encode(base64.b64encode(f"me:{token}".encode())).decode(),
                    "base64 in a URL": urllib.parse.quote(base64.b64encode(f"u:{token}".encode()).decode(), safe=""),
                    "hex in base64": base64.b64encode(token.encode().hex().encode()).decode(),
                    "bulk": token * 10000,
                }
      - learn_another: { kind: secrets, secret: late_token }
      - print_that:
          kind: python
          args: { late: "{{ _prev }}" }
          code: |
            print(late[::-1])
            result = {"late": [late[:9], "between", late[9:]], "bytes": repr(late.encode())}
      - echoed:
          kind: http
          url: "{{ workload.server }}/{{ workload.leaked }}"
          auth: token
          spec: { policy: { rules: [{ else: { then: { do: continue } } }] } }
      - raised:
          kind: python
          args: { token: "{{ keychain.token }}" }
          code: "raise KeyError('x' * 3980 + token)"
          spec: { policy: { rules: [{ else: { then: { do: continue } } }] } }
      - refused:
          kind: duckdb
          command: "SELECT * FROM read_csv($file)"
          params: { file: "/nowhere/{{ keychain.token }}" }
          spec: { policy: { rules: [{ else: { then: { do: continue } } }] } }
      - fail_with_it:
          kind: shell
          command: ["sh", "-c", "echo $TOKEN; echo $TOKEN >&2; exit 3"]
          env: { TOKEN: "{{ keychain.token }}" }
"""


class Echo(BaseHTTPRequestHandler):
    """Gives back what it was sent, in a header and in the body of an error."""

    def do_GET(self) -> None:
        sent = f"{self.path} {self.headers}".encode()
        self.send_response(500)
        self.send_header("X-Sent", self.headers["Authorization"])
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def echo() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("as_json", [False, True], ids=["for-people", "json"])
def test_no_artefact_holds_a_secret_in_any_form(tmp_path: Path, echo: str, as_json: bool) -> None:
    (tmp_path / "leaky.yaml").write_text(PLAYBOOK, encoding="utf-8")
    secrets = tmp_path / "elsewhere"
    secrets.mkdir()
    (secrets / "secrets.json").write_text(f'{{"token": "{SECRET}"}}', encoding="utf-8")
    left = tmp_path / "left"
    left.mkdir()
    commands = (
        ["noetlc", "compile", "leaky.yaml", "-o", str(left / "leaky.nbc")],
        ["noetlvm", "run", str(left / "leaky.nbc"), "--db", str(left / "run.db"), "--keychain"]
        + [f"file:{secrets / 'secrets.json'}", "--set", f"server={echo}", "--set", f"leaked={SECRET}"]
        + (["--json"] if as_json else []),
        ["noetlvm", "show", "--db", str(left / "run.db")],
        ["noetlvm", "events", "--json", "--db", str(left / "run.db")],
    )
    codes = []
    for number, command in enumerate(commands):
        done = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "LATE_TOKEN": LATE},
            capture_output=True,
            check=False,
        )
        (left / f"stdout-{number}").write_bytes(done.stdout)
        (left / f"stderr-{number}").write_bytes(done.stderr)
        codes.append(done.returncode)
    assert codes == [0, 1, 0, 0], [(left / f"stderr-{n}").read_text() for n in range(4)]
    assert b"exit" in (left / "stdout-2").read_bytes() + (left / "stderr-1").read_bytes()
    assert find_canaries(left, SECRET) == []
    assert find_canaries(left, LATE) == []


def test_the_search_finds_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "note").write_text(f"x{SECRET}y", encoding="utf-8")
    assert find_canaries(tmp_path, SECRET) != []
