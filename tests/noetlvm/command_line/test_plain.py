"""What is written plainly is read without typer, and means what typer says it means. Everything else is typer's."""

from __future__ import annotations

import subprocess
import sys
from enum import Enum
from typing import Annotated, Any

import pytest

from noetlc.cli.app import PROGRAM as COMPILER
from noetlvm.cli.app import PROGRAM as MACHINE
from noetlvm.command_line.declared import (
    REQUIRED,
    Command,
    CommandProgram,
    Option,
    Parameter,
    parameters,
    read_words,
    run_words,
)
from noetlvm.command_line.process import CommandError
from noetlvm.command_line.typer_app import run_with_typer

COMMANDS = [(program, name) for program in (COMPILER, MACHINE) for name in program.commands]
Read = dict[str, Any]


class Recorder:
    """Looks like a command, and only notes what it is called with."""

    def __init__(self, command: Command) -> None:
        self.__code__, self.__defaults__ = command.__code__, command.__defaults__
        self.__annotations__, self.__globals__ = command.__annotations__, command.__globals__  # type: ignore[attr-defined]
        self.__doc__ = command.__doc__
        self.calls: list[Read] = []

    def __call__(self, **given: Any) -> int:
        self.calls.append(given)
        return 7


class OneCommand(CommandProgram):
    """A program whose commands are all the same one."""

    command: Command

    def find(self, name: str) -> Command:
        return self.command


def read_by_typer(program: CommandProgram, name: str, words: list[str]) -> Read:
    recorder = Recorder(program.find(name))
    other = next(each for each in program.commands if each != name)
    only = OneCommand(program.name, program.version, program.about, program.package, (name, other), command=recorder)
    assert run_with_typer(only, [name, *words]) == 7
    (read,) = recorder.calls
    return read


def needed(command: Command, *, but: str = "") -> list[str]:
    """Return the words without which a command cannot be called."""
    missing = [each for each in parameters(command) if each.default is REQUIRED and each.name != but]
    return [word for each in missing for word in (*each.flags[-1:], f"some-{each.name}")]


@pytest.mark.parametrize("program", [COMPILER, MACHINE], ids=lambda program: program.name)
def test_help_of_a_program_lists_every_command_without_importing_any(program: CommandProgram) -> None:
    script = f"""
import sys
from {program.package}.app import PROGRAM
from noetlvm.command_line.typer_app import run_with_typer
code = run_with_typer(PROGRAM, ["--help"])
print(code, [name for name in PROGRAM.commands if f"{{PROGRAM.package}}.{{name}}" in sys.modules])
"""
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert printed.endswith("0 []\n")
    assert [name for name in program.commands if f"\n  {name} " not in printed] == []


def spellings(parameter: Parameter) -> list[list[str]]:
    """Return every plain way to write a parameter, with each value that it may have or some of them."""
    if not parameter.flags:
        more = [["a.yaml", "-", "b.yaml"]] if parameter.is_list else []
        return [["a.yaml"], *more]
    if parameter.type is bool:
        return [[flag] for flag in parameter.flags]
    if isinstance(parameter.type, type) and issubclass(parameter.type, Enum):
        values = [str(member.value) for member in parameter.type]
    else:
        values = ["7", "007", "1000000"] if parameter.type is int else ["word", "a b", "", "ä=ö,x"]
    made = [[flag, value] for flag in parameter.flags for value in values]
    made += [[f"{flag}={value}"] for flag in parameter.flags if flag.startswith("--") for value in values]
    return [*made, [word for words in made for word in words]] if parameter.is_list else made


@pytest.mark.parametrize(("program", "name"), COMMANDS, ids=[f"{program.name} {name}" for program, name in COMMANDS])
def test_both_readers_agree_on_every_option_of_every_command(program: CommandProgram, name: str) -> None:
    command = program.find(name)
    together = []
    for parameter in parameters(command):
        if parameter.type == tuple[str, str]:
            continue  # two values for one flag: typer's
        others = needed(command, but=parameter.name) if parameter.flags else []
        for words in spellings(parameter):
            if not parameter.flags:
                words = [*words, *needed(command)[len(words) :]]
            assert read_words(command, [*others, *words]) == read_by_typer(program, name, [*others, *words])
        together += spellings(parameter)[0]
    assert read_words(command, together) == read_by_typer(program, name, together)


@pytest.mark.parametrize(("program", "name"), COMMANDS, ids=[f"{program.name} {name}" for program, name in COMMANDS])
def test_help_fits_eighty_columns_and_has_an_example(
    program: CommandProgram, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run_with_typer(program, [name, "--help"]) == 0
    text = capsys.readouterr().out
    assert "Example" in text
    assert [line for line in text.splitlines() if len(line) > 80] == []


def test_options_may_stand_before_between_and_after_arguments() -> None:
    read = read_words(COMPILER.find("lint"), ["--quiet", "a.yaml", "--select", "P1", "b.yaml", "--select", "P5"])
    assert read is not None
    assert (read["paths"], read["select"], read["quiet"]) == (["a.yaml", "b.yaml"], ["P1", "P5"], True)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("lint", ["--format=bogus"]),
        ("lint", ["--quiet=yes"]),
        ("lint", ["--jobs=0"]),
        ("lint", ["-q=1"]),
        ("lint", ["--format", "bogus"]),
        ("lint", ["--format", "JSON"]),
        ("lint", ["--format"]),
        ("lint", ["--form", "json"]),
        ("lint", ["--output", "-"]),
        ("lint", ["--select", "--fix"]),
        ("lint", ["--color", "never", "--color", "always"]),
        ("lint", ["--jobs", "0"]),
        ("lint", ["--jobs", "-1"]),
        ("lint", ["--jobs", "1.5"]),
        ("lint", ["--jobs", "1_0"]),
        ("lint", ["--jobs", "²"]),
        ("lint", ["--jobs", "9" * 19]),
        ("lint", ["--help"]),
        ("lint", ["-h"]),
        ("lint", ["--", "a.yaml"]),
        ("compile", []),
        ("compile", ["a.yaml", "-qo", "x.nbc"]),
        ("compile", ["a.yaml", "-ox.nbc"]),
        ("asm", ["a.nasm"]),
        ("where", ["a.nbc"]),
        ("where", ["a.nbc", "step", "more"]),
        ("graph", ["a.yaml", "--path", "a", "b"]),
    ],
)
def test_what_is_not_plain_is_left_to_typer(name: str, words: list[str]) -> None:
    assert read_words(COMPILER.find(name), words) is None


def double(count: Annotated[int, Option(help="How many.")] = 1) -> int:
    return 2 * count


@pytest.mark.parametrize("words", [["double", "--count", "21"], ["double", "--count=21"]])
def test_a_command_answers_with_its_exit_code_either_way(words: list[str]) -> None:
    program = OneCommand("calculator", "1.0", "Calculates.", "", ("double", "triple"), command=double)
    assert run_words(program, words) == 42


@pytest.mark.parametrize(("words", "code"), [(["--bogus"], 2), (["--version"], 0), ([], 2)])
def test_what_is_no_command_is_left_to_typer(words: list[str], code: int, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_words(MACHINE, words) == code
    assert "noetlvm" in "".join(capfd.readouterr())


def test_a_command_that_is_none_gets_the_nearest_one() -> None:
    with pytest.raises(CommandError) as near:
        run_words(MACHINE, ["rnu", "a.yaml"])
    assert str(near.value) == "there is no command `rnu`; did you mean `run`? `noetlvm --help` lists the commands"
    with pytest.raises(CommandError) as far:
        run_words(COMPILER, ["dance"])
    assert str(far.value) == "there is no command `dance`; `noetlc --help` lists the commands"
