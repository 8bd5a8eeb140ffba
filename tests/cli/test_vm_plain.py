"""The commonest way to call `run` needs no option parser, and means the same as with one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from noetlvm.cli.drive import Manner
from noetlvm.cli.plain import plain_run
from tests.cli.conftest import Command

Runs = list[tuple[tuple[str, ...], dict[str, Any], Manner]]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    """Gather what would be run."""
    found: Runs = []

    def run_files(files: list[str], payload: dict[str, Any], manner: Manner, ctx: dict[str, Any] | None = None) -> int:
        found.append((tuple(files), payload | (ctx or {}), manner))
        return 0

    monkeypatch.setattr("noetlvm.cli.run.run_files", run_files)
    return found


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "x.yaml"),
        ("run", "x.yaml", "y.yaml", "--json"),
        ("run", "--db", "z.db", "x.nbc", "-q"),
        ("run", "--quiet", "x.nbc", "--db", "z.db", "--json"),
    ],
)
def test_both_ways_to_read_options_agree(
    arguments: tuple[str, ...], runs: Runs, noetlvm: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert plain_run(arguments) == 0
    monkeypatch.setattr("noetlvm.cli.plain.plain_run", lambda _arguments: None)
    assert noetlvm(*arguments).code == 0
    plain, parsed = runs
    assert plain == parsed


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("run",),
        ("run", "--help"),
        ("run", "x.yaml", "--set", "a=1"),
        ("run", "x.yaml", "--db"),
        ("run", "x.yaml", "--db=z.db"),
        ("list",),
    ],
)
def test_everything_else_is_left_to_typer(arguments: tuple[str, ...], runs: Runs) -> None:
    assert plain_run(arguments) is None
    assert runs == []


def test_a_plain_run_imports_no_option_parser(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = (
        "import sys; from noetlvm.__main__ import main; sys.argv = ['noetlvm', 'run', 'nothing.nbc']; main(); "
        "sys.exit(any(name in sys.modules for name in ('typer', 'rich', 'httpx', 'lark', 'noetlc')))"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, env={"PYTHONPATH": str(root)})
