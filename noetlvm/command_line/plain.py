"""Reads the usual spellings of options without typer, whose import takes longer than most commands.

Usual are `--flag`, `--option value`, `--option=value`, `-o value` and arguments. Everything else (`-qo x`, a separate
value that begins with a dash, a wrong value, help, missing or surplus words) is left to typer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any

from noetlvm.command_line.declared import REQUIRED, Command, CommandProgram, Option, Parameter, parameters
from noetlvm.command_line.process import CommandError

_DIGITS_MAX = 18


class _UnusualError(Exception):
    """The words are left to typer."""


def run_words(program: CommandProgram, words: Sequence[str]) -> int:
    """Run the command that a command line names and return the exit code."""
    if words and words[0] in program.commands:
        command = program.find(words[0])
        given = read_words(command, words[1:])
        if given is not None:
            return command(**given)
    elif words and words[0].isalpha():
        raise CommandError(_unknown_command(program, words[0]))
    from noetlvm.command_line.typer_app import run_with_typer

    return run_with_typer(program, words)


def _unknown_command(program: CommandProgram, word: str) -> str:
    from noetlvm.nearest import did_you_mean

    hint = " ".join(filter(None, (did_you_mean(word, program.commands), f"`{program.name} --help` lists the commands")))
    return f"there is no command `{word}`; {hint}"


def read_words(command: Command, words: Sequence[str]) -> dict[str, Any] | None:
    """Return a command's parameters as the words set them, defaults included; None if a spelling is unusual."""
    declared = parameters(command)
    options = {flag: parameter for parameter in declared for flag in parameter.flags}
    given: dict[str, Any] = {}
    positional: list[str] = []
    rest = iter(words)
    try:
        for word in rest:
            if word in options:
                _set(options[word], None, rest, given)
            elif word.startswith("--"):
                flag, equals, value = word.partition("=")
                if not equals or flag not in options:
                    return None
                _set(options[flag], value, rest, given)
            elif word.startswith("-") and word != "-":
                return None
            else:
                positional.append(word)
        _assign([parameter for parameter in declared if not parameter.flags], positional, given)
        return {parameter.name: _value_or_default(parameter, given) for parameter in declared}
    except _UnusualError:
        return None


def _set(parameter: Parameter, attached: str | None, rest: Iterator[str], given: dict[str, Any]) -> None:
    """Set an option to the value attached with `=`, else to the next word."""
    if parameter.type is bool:
        if attached is not None:
            raise _UnusualError
        value: Any = True
    elif attached is not None:
        value = _convert(parameter, attached)
    else:
        word = next(rest, "-")
        if word.startswith("-"):
            raise _UnusualError
        value = _convert(parameter, word)
    if parameter.is_list:
        given.setdefault(parameter.name, []).append(value)
    elif parameter.name in given:
        raise _UnusualError
    else:
        given[parameter.name] = value


def _convert(parameter: Parameter, word: str) -> Any:
    kind, declared = parameter.type, parameter.declared
    if kind is str:
        return word
    if kind is int and isinstance(declared, Option) and word.isascii() and word.isdigit() and len(word) <= _DIGITS_MAX:
        number = int(word)
        if declared.min is None or number >= declared.min:
            return number
    if isinstance(kind, type) and issubclass(kind, Enum) and word in [member.value for member in kind]:
        return kind(word)
    raise _UnusualError


def _assign(arguments: list[Parameter], positional: list[str], given: dict[str, Any]) -> None:
    words = list(positional)
    for argument in arguments:
        if argument.is_list and words:
            given[argument.name], words = words, []
        elif words:
            given[argument.name] = words.pop(0)
    if words:
        raise _UnusualError


def _value_or_default(parameter: Parameter, given: dict[str, Any]) -> Any:
    value = given.get(parameter.name, parameter.default)
    if value is REQUIRED:
        raise _UnusualError
    return value
