"""The page on testing playbooks is executed: its files are written out, and its tests pass."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from noetlvm.testing.script import _FATES, _WORDS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in re.findall(r"```\w+\n# (\w+\.\w+)\n(.*?)```", PAGE, re.DOTALL):
        (tmp_path / name).write_text(content, encoding="utf-8")
    return tmp_path


def test_its_tests_pass(folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "."]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    written = PAGE.count("\ndef test_")
    assert f"{written} passed" in done.stdout, done.stdout + done.stderr


def test_its_playbook_has_no_warnings(folder: Path) -> None:
    command = [sys.executable, "-m", "noetlc", "lint", "--no-cache", "--fail-on", "warning", "order.yaml"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_it_names_every_word_of_a_script() -> None:
    table = PAGE.partition("| answer | outcome |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`([a-z]+)\b", table)) >= {*_WORDS, *_FATES}
