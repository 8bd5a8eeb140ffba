"""Commands of the machine load what they need and nothing that is slow to load."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from noetlvm.bridge import compile_texts
from tests.commands import Command

ROOT = Path(__file__).parents[3]
PLAYBOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: demo, path: demo}
workflow:
  - step: start
    tool: {kind: noop}
"""
SLOW = {"typer", "click", "rich", "httptools", "lark", "yaml", "noetlc", "dataclasses", "importlib.metadata"}


def imported_by(folder: Path, *arguments: str) -> set[str]:
    """Return the modules that a command has loaded when it has succeeded."""
    program = f"import sys; sys.argv = ['noetlvm', *{arguments!r}]; from noetlvm.__main__ import main; "
    program += "code = main(); print('MODULES', *sys.modules); sys.exit(code)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NOETLVM_DB": str(folder / "executions.db")}
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, cwd=folder, env=environment, capture_output=True, text=True
    )
    return set(done.stdout.rpartition("MODULES")[2].split())


@pytest.fixture
def folder(tmp_path: Path, noetlvm: Command) -> Path:
    (tmp_path / "demo.nbc").write_bytes(compile_texts([PLAYBOOK]))
    assert noetlvm("run", "demo.nbc", "--quiet").code == 0
    return tmp_path


@pytest.mark.parametrize("options", [(), ("--json",), ("--set", "a=1", "--max-parallel", "2", "--quiet")])
def test_a_run_loads_no_slow_library(folder: Path, options: tuple[str, ...]) -> None:
    loaded = imported_by(folder, "run", "demo.nbc", *options)
    assert "noetlvm.engine.engine" in loaded
    assert loaded & SLOW == set()


@pytest.mark.parametrize(
    "arguments",
    [("list", "--limit", "3"), ("show",), ("show", "--json"), ("events", "--json"), ("ctx", "--at", "2"), ("replay",)],
)
def test_a_look_at_what_happened_loads_no_event_loop_either(folder: Path, arguments: tuple[str, ...]) -> None:
    loaded = imported_by(folder, *arguments)
    assert "noetlvm.store.sqlite" in loaded
    assert loaded & (SLOW | {"asyncio"}) == set()
