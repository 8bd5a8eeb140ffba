"""The deployment examples call commands that exist, with options that they take."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from noetlvm.cli.dev import dev
from noetlvm.cli.server import server
from noetlvm.cli.token import token
from noetlvm.cli.worker import worker
from noetlvm.command_line.declared import parameters

ROOT = Path(__file__).parents[3]
FILES = sorted((ROOT / "examples" / "deploy").iterdir())
CALL = re.compile(
    r"(?:noetlvm |command: \[|args: \[|- )(server|worker|token create)\b((?:[\s,-]+--[a-z-]+=?[^\s,\]']*)+)"
)
COMMANDS = {"server": server, "worker": worker, "token": token, "dev": dev}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_option_of_an_example_exists(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    found = CALL.findall(text)
    for command, options in found:
        known = {flag for one in parameters(COMMANDS[command.split()[0]]) for flag in one.flags}
        used = {word.partition("=")[0] for word in shlex.split(options.replace(",", " ")) if word.startswith("--")}
        assert used <= known, command
    assert found or file.name == "Containerfile"
