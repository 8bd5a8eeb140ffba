"""The command `noetlvm`: what it prints, and its exit codes."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import noetlvm
from noetlvm.__main__ import main
from noetlvm.cli.app import PROGRAM
from noetlvm.command_line.typer_app import typer_app
from noetlvm.language.tool_kinds import builtin_kinds

ROOT = Path(noetlvm.__file__).parents[1]


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(typer_app(PROGRAM, PROGRAM.commands), arguments)
    return result.exit_code, result.stdout, result.stderr


def test_version_is_answered_without_typer(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["noetlvm", "--version"])
    monkeypatch.setitem(sys.modules, "noetlvm.cli.app", None)
    main()
    assert capsys.readouterr().out == f"noetlvm {noetlvm.__version__}\n"


def test_version_is_an_option_among_others_too() -> None:
    assert run("--version") == (0, f"noetlvm {noetlvm.__version__}\n", "")


def test_tools_lists_every_kind_with_its_summary() -> None:
    code, out, _ = run("tools")
    assert code == 0
    for kind in builtin_kinds().values():
        assert f"{kind.name.ljust(8)}  {kind.summary}\n" in out


def test_tools_says_which_kinds_lack_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "httptools" else name)
    code, out, _ = run("tools")
    assert code == 0
    assert out.endswith(
        "`http` needs the package `httptools`, which is not installed; run: pip install 'noetlc[http]'\n"
    )


def test_a_kind_is_shown_with_inputs_settings_alternatives_and_an_example() -> None:
    code, out, _ = run("tools", "http")
    assert code == 0
    assert "url      string  required  Address of the request.\n" in out
    assert "auth     string            Name of a keychain entry to connect with.\n" in out
    assert "Give at most one of json, form, body.\n" in out
    assert 'timeout           number or object  {"connect": 10, "read": 60}' in out
    assert out.endswith(builtin_kinds()["http"].example)


def test_a_kind_without_inputs_is_shown_without_tables() -> None:
    code, out, _ = run("tools", "noop")
    assert code == 0
    assert "meaning" not in out


def test_tools_as_json_lists_every_kind() -> None:
    code, out, _ = run("tools", "--json")
    assert code == 0
    assert [kind["name"] for kind in json.loads(out)] == list(builtin_kinds())


def test_one_kind_as_json_is_one_object() -> None:
    code, out, _ = run("tools", "postgres", "--json")
    assert code == 0
    kind = json.loads(out)
    assert kind["helpers"] == ["pg"]
    assert kind["inputs"][0]["language"] == "sql"


@pytest.mark.parametrize(
    ("name", "hint"), [("htp", "did you mean `http`?"), ("zzz", "known kinds: noop, http, postgres")]
)
def test_an_unknown_kind_gets_a_hint_and_exit_code_2(
    name: str, hint: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["noetlvm", "tools", name])
    code = main()
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert f"there is no tool kind `{name}`" in err
    assert hint in err


def test_an_unknown_command_gets_exit_code_2() -> None:
    assert run("bogus")[0] == 2


@pytest.mark.parametrize("arguments", [("--help",), ("run", "--help"), ("tools", "--help")])
def test_help_shows_an_example(arguments: tuple[str, ...]) -> None:
    code, out, _ = run(*arguments)
    assert code == 0
    assert "Example" in out


def test_a_terminal_gets_a_table_with_a_title(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from noetlvm.cli.tools import tools

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert tools("shell") == 0
    out = capsys.readouterr().out
    assert "Inputs" in out
    assert "─" in out


def test_the_package_imports_nothing() -> None:
    program = "import sys; before = set(sys.modules); import noetlvm; print(sorted(set(sys.modules) - before))"
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert output.stdout == "['noetlvm']\n"


@pytest.mark.parametrize("name", PROGRAM.commands)
def test_arguments_are_shown_as_people_write_them(name: str) -> None:
    text = CliRunner().invoke(typer_app(PROGRAM, [name]), [name, "--help"]).output
    usage, _, arguments = text.partition("\n")
    assert "{" not in usage
    assert "[[" not in usage
    assert not re.search(r"<(list|str|int)", arguments)
