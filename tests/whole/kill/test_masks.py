"""Kill -9 while a pipeline holds a secret: what was recorded of it never reaches a tool (S64)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import wait_until

SECRET = "c4n4ry/Zx9+Qw7Lm3Tp5"
PATIENCE_SECONDS = 120

PLAYBOOK = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: masked, path: masked }
workload: { folder: "" }
keychain: [{ name: token, kind: bearer_token }]
workflow:
  - step: start
    loop: { in: [1], iterator: n }
    tool:
      - login:
          kind: shell
          command: [cat, "{{ workload.folder }}/secret"]
          spec:
            policy:
              rules: [{ else: { then: { do: continue, set_iter: { tok: "{{ outcome.result.stdout }}" } } } }]
      - wait: { kind: shell, command: [sh, "{{ workload.folder }}/wait.sh", "{{ workload.folder }}"] }
      - use: { kind: shell, command: [sh, -c, 'printf %s "$0" > "$1"', "{{ iter.tok }}", "{{ workload.folder }}/seen"] }
"""


def command(folder: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "noetlvm", *words, "--db", str(folder / "runs.db")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "playbook.yaml").write_text(PLAYBOOK, encoding="utf-8")
    (tmp_path / "secret").write_text(SECRET, encoding="utf-8")
    return tmp_path


def started(folder: Path) -> subprocess.Popen[bytes]:
    words = command(folder, "run", str(folder / "playbook.yaml"), "--set", f"folder={folder}")
    return subprocess.Popen(
        words,
        env=os.environ | {"TOKEN": SECRET},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def test_undisturbed_a_tool_gets_the_secret(folder: Path) -> None:
    (folder / "wait.sh").write_text("true", encoding="utf-8")
    assert started(folder).wait(PATIENCE_SECONDS) == 0
    assert (folder / "seen").read_text(encoding="utf-8") == SECRET


def test_after_kill_9_no_tool_gets_the_mask_and_the_error_names_the_task(folder: Path) -> None:
    (folder / "wait.sh").write_text('test -e "$1/waits" || { touch "$1/waits"; exec sleep 60; }', encoding="utf-8")
    process = started(folder)
    try:
        wait_until((folder / "waits").exists)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE_SECONDS)
    resumed = subprocess.run(
        command(folder, "resume"),
        env=os.environ | {"TOKEN": SECRET},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert resumed.returncode == 1, resumed.stderr
    assert not (folder / "seen").exists()
    said = " ".join((resumed.stdout + resumed.stderr).split())
    assert "iter.tok (a secret, which is not recorded: run the task `login` again)" in said
    assert SECRET not in said
