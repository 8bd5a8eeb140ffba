from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from noetlc import __version__

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.commands import Answer

    Noetlc = Callable[..., Answer]

ROOT = Path(__file__).resolve().parents[3]
BROKEN = "kind: Playbook\nworkflow: [\n"
WHOLE = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: demo, path: demo}
workload: {rows: 1}
workflow:
  - step: start
    tool:
      - count: {kind: noop, rows: "{{ workload.rows + 1 }}"}
"""


def start(*arguments: str, folder: Path, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run `python …` as a user would, in a process of its own."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def imported_by(folder: Path, *arguments: str) -> set[str]:
    """Return the modules that a command has loaded when it ends."""
    program = f"import sys; sys.argv = ['noetlc', *{arguments!r}]; from noetlc.__main__ import main; main()"
    ending = "; print('MODULES', *sys.modules)"
    printed = start("-c", program + ending, folder=folder).stdout.rpartition("MODULES")[2]
    return set(printed.split())


def test_the_version_is_reported_without_loading_anything(tmp_path: Path) -> None:
    assert start("-m", "noetlc", "--version", folder=tmp_path).stdout == f"noetlc {__version__}\n"
    ours = {name for name in imported_by(tmp_path, "--version") if name.startswith("noetl")}
    expected = {"noetlc", "noetlc.__main__", "noetlvm", "noetlvm.command_line", "noetlvm.command_line.process"}
    assert ours <= expected


@pytest.mark.parametrize("program", ["noetlc", "noetlvm"])
def test_a_version_that_cannot_be_printed_is_reported_in_one_line(program: str, tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", program, "--version"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (2, f"{program}: cannot read or write: No space left on device\n")


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        (("lint", "a.yaml"), "noetlc.lint.check"),
        (("lint", "a.yaml", "--format", "json", "--select", "P1,P5", "--fail-on", "note"), "noetlc.lint.check"),
        (("lint", "a.yaml", "--format=json", "--select=P1,P5", "--fail-on=note"), "noetlc.lint.check"),
        (("compile", "a.yaml", "-o", "a.nbc", "--quiet"), "noetlc.compile"),
        (("canon", "a.yaml"), "noetlc.canon.canonicalize"),
        (("explain", "P211"), "noetlc.rules.catalogue"),
    ],
)
def test_no_command_loads_a_slow_library(tmp_path: Path, arguments: tuple[str, ...], needed: str) -> None:
    (tmp_path / "a.yaml").write_text(WHOLE)
    start("-m", "noetlc", "lint", "a.yaml", folder=tmp_path)  # builds the parse tables, for which it needs lark
    slow = {"typer", "click", "rich", "lark", "jinja2", "networkx", "importlib.metadata", "asyncio", "dataclasses"}
    (tmp_path / "a.yaml").write_text(f"{WHOLE}\n")
    loaded = imported_by(tmp_path, *arguments)
    assert needed in loaded
    assert loaded & slow == set()


def test_graph_of_a_bundle_does_not_import_the_compiler(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(WHOLE)
    start("-m", "noetlc", "compile", "a.yaml", "-o", "a.nbc", folder=tmp_path)
    loaded = imported_by(tmp_path, "graph", "a.nbc")
    assert "noetlc.net.program" in loaded
    compiler = ("noetlc.compile", "noetlc.canon", "noetlc.codegen", "noetlc.rules", "noetlc.syntax.yaml_reader", "yaml")
    assert [name for name in loaded if name.startswith(compiler)] == []


def test_a_second_run_loads_neither_rules_nor_yaml(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(BROKEN)
    start("-m", "noetlc", "lint", "a.yaml", folder=tmp_path)
    loaded = imported_by(tmp_path, "lint", "a.yaml")
    assert loaded & {"noetlc.lint.check", "noetlc.rules.catalogue", "yaml"} == set()


def test_text_that_is_not_yaml_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(BROKEN)
    done = start("-m", "noetlc", "lint", "a.yaml", "--format", "json", folder=tmp_path)
    assert done.returncode == 1
    assert "P003" in {finding["code"] for finding in json.loads(done.stdout)}


def test_tool_kinds_of_the_configuration_are_known(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(WHOLE.replace("noop", "our_tool"))
    before = start("-m", "noetlc", "lint", "a.yaml", "--format", "concise", folder=tmp_path)
    assert "our_tool" in before.stdout
    (tmp_path / "noetlc.toml").write_text('tool-kinds = ["our_tool"]\n')
    after = start("-m", "noetlc", "lint", "a.yaml", "--format", "concise", folder=tmp_path)
    assert "our_tool" not in after.stdout


def test_a_reader_that_stops_reading_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(BROKEN)
    program = (
        "import subprocess, sys; p = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.PIPE)"
    )
    program += "; p.stdout.close(); print(p.stderr.read().decode()); p.wait()"
    done = start("-c", program, sys.executable, "-m", "noetlc", "lint", "a.yaml", folder=tmp_path)
    assert done.stdout.strip() == ""


def test_a_defect_is_reported_in_a_few_words(tmp_path: Path, noetlc: Noetlc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noetlc.lint.run.LintRun.run", lambda _: 1 / 0)
    answer = noetlc("lint")
    assert answer.code == 2
    assert "internal error: ZeroDivisionError" in answer.err
    assert "Please report it" in answer.err
    assert "Traceback" not in answer.err


def test_a_developer_can_see_the_traceback(noetlc: Noetlc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noetlc.lint.run.LintRun.run", lambda _: 1 / 0)
    monkeypatch.setenv("NOETLC_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        noetlc("lint")


@pytest.mark.parametrize("arguments", [("lint",), ("lint", "-q")])
def test_an_interruption_is_no_traceback(
    noetlc: Noetlc, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("noetlc.lint.run.LintRun.run", interrupt)
    answer = noetlc(*arguments)
    assert answer.code == 130
    assert "Traceback" not in answer.err


def test_help_has_examples_and_exit_codes(noetlc: Noetlc) -> None:
    answer = noetlc("lint", "--help")
    assert answer.code == 0
    assert "noetlc lint flows/etl.yaml --fix" in answer.out
    assert "Exit codes: 0 clean, 1 findings, 2 could not run." in answer.out


def test_every_command_is_listed_with_a_sentence(noetlc: Noetlc) -> None:
    answer = noetlc("--help")
    for command in ("lint", "explain"):
        assert f"  {command} " in answer.out


def test_the_shell_can_complete_options(tmp_path: Path) -> None:
    environment = {"_NOETLC_COMPLETE": "complete_bash", "COMP_WORDS": "noetlc lint --form", "COMP_CWORD": "2"}
    assert start("-m", "noetlc", folder=tmp_path, environment=environment).stdout.split() == ["--format"]
