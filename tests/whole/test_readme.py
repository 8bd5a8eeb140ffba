"""The README is executed: what it shows is what the commands print. `pytest --update` rewrites it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[2] / "README.md"
CONSOLE = re.compile(r"(?<=^```console\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)


def run(command: str, folder: Path) -> str:
    program, *rest = shlex.split(command)
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100", "NOETLC_CACHE": str(folder / "cache")}
    environment["PYTHONPATH"] = str(README.parent)
    done = subprocess.run(
        [sys.executable, "-m", program, *rest],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        check=False,
    )
    return steady(done.stdout)


def steady(text: str) -> str:
    """Put fixed values in place of what is different in every run: identifiers and durations."""
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "01a1e318-d8a3-775f-97a4-06bbd6c33213", text)
    return re.sub(r"\d+\.\d\d s", "0.10 s", text)


def executed(text: str, folder: Path) -> str:
    """Return the README with each console block as it comes out today."""

    def block(match: re.Match[str]) -> str:
        commands = [line[2:] for line in match[1].splitlines() if line.startswith("$ ")]
        return "".join(f"$ {command}\n{run(command, folder)}" for command in commands)

    return CONSOLE.sub(block, text)


def test_the_readme_shows_what_the_commands_print(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    text = README.read_text(encoding="utf-8")
    playbooks = re.findall(r"^Save this as `(\w+\.yaml)`:\n\n```yaml\n(.*?)```", text, re.DOTALL | re.MULTILINE)
    assert [name for name, _ in playbooks] == ["orders.yaml", "hello.yaml", "count.yaml"]
    for name, content in playbooks:
        (tmp_path / name).write_text(content, encoding="utf-8")
    now = executed(text, tmp_path)
    if request.config.getoption("--update"):
        README.write_text(now, encoding="utf-8")
    assert README.read_text(encoding="utf-8") == now
