"""No secret is left behind: a run that tries to leak one in every form, and a search of every artefact it leaves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from noetlvm.keychain.canary import find_canaries

ROOT = Path(__file__).parents[2]
SECRET = "cAnary-7f3e9d2b41aa86c5"

PLAYBOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: leaky, path: tests/leaky }
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
                    "bulk": token * 10000,
                }
      - fail_with_it:
          kind: shell
          command: ["sh", "-c", "echo $TOKEN; echo $TOKEN >&2; exit 3"]
          env: { TOKEN: "{{ keychain.token }}" }
"""


@pytest.mark.parametrize("as_json", [False, True], ids=["for-people", "json"])
def test_no_artefact_holds_the_secret_in_any_form(tmp_path: Path, as_json: bool) -> None:
    (tmp_path / "leaky.yaml").write_text(PLAYBOOK, encoding="utf-8")
    secrets = tmp_path / "elsewhere"
    secrets.mkdir()
    (secrets / "secrets.json").write_text(f'{{"token": "{SECRET}"}}', encoding="utf-8")
    left = tmp_path / "left"
    left.mkdir()
    commands = (
        ["noetlc", "compile", "leaky.yaml", "-o", str(left / "leaky.nbc")],
        ["noetlvm", "run", str(left / "leaky.nbc"), "--db", str(left / "run.db"), "--keychain"]
        + [f"file:{secrets / 'secrets.json'}"]
        + (["--json"] if as_json else []),
        ["noetlvm", "show", "--db", str(left / "run.db")],
        ["noetlvm", "events", "--json", "--db", str(left / "run.db")],
    )
    codes = []
    for number, command in enumerate(commands):
        done = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=False,
        )
        (left / f"stdout-{number}").write_bytes(done.stdout)
        (left / f"stderr-{number}").write_bytes(done.stderr)
        codes.append(done.returncode)
    assert codes == [0, 1, 0, 0], [(left / f"stderr-{n}").read_text() for n in range(4)]
    assert b"exit" in (left / "stdout-2").read_bytes() + (left / "stderr-1").read_bytes()
    assert find_canaries(left, SECRET) == []


def test_the_search_finds_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "note").write_text(f"x{SECRET}y", encoding="utf-8")
    assert find_canaries(tmp_path, SECRET) != []
